"""Compare every mode with its baseline."""

from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lab.analysis import compare, tables
from specdec_lab.job import job

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with job(snakemake.log[0]):
    results = Path(snakemake.output.comparison).parent
    tables.write(compare.compare(results), results)
