"""Measure one mode on one fresh server; what the store holds already is not measured again."""

from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lab.job import job
from specdec_lab.session.run import run

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with job(snakemake.log[0]):
    run(
        snakemake.params.spec,
        mode=snakemake.wildcards.mode,
        replicate=int(snakemake.wildcards.replicate),
        folder=Path(snakemake.output.session).parent,
        prompts_file=Path(snakemake.input[0]),
        places=int(snakemake.resources.gpu),
    )
