"""Write the measured prompts."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lab import prompts
from specdec_lab.job import job

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with job(snakemake.log[0]):
    prompts.write(Path(snakemake.output[0]), prompts.workload(**json.loads(snakemake.params.workload)))
