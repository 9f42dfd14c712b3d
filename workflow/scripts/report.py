"""Write the report."""

from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lab.job import job
from specdec_lab.report import html

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with job(snakemake.log[0]):
    out = Path(snakemake.output[0])
    html.write(out.parent, out)
