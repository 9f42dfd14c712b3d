"""Write the report, its charts, and the numbers for dashboards."""

from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lab.job import job
from specdec_lab.report import html, prometheus

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with job(snakemake.log[0]):
    page = Path(snakemake.output.page)
    html.write(page.parent, page)
    prometheus.write(page.parent, Path(snakemake.output.numbers))
