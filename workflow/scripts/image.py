"""Find or pull the servers' image and record its digest."""

from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lab.job import job, say
from specdec_lab.launchers import images

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with job(snakemake.log[0]):
    images.locked(snakemake.params.reference, images.LOCK, say=say).write(Path(snakemake.output[0]))
