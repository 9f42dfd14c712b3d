"""Write the config as resolved."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lab.job import job
from specdec_lab.records.base import strict_dumps, write_text_atomic

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with job(snakemake.log[0]):
    write_text_atomic(Path(snakemake.output[0]), strict_dumps(json.loads(snakemake.params.resolved)))
