"""Decide per workload, and write what can be deployed."""

from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lab.analysis import decision
from specdec_lab.job import job

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with job(snakemake.log[0]):
    decision.write(Path(snakemake.output.decision).parent)
