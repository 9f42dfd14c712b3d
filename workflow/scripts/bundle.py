"""Pack everything behind the table into one archive."""

from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lab.bundle.pack import pack
from specdec_lab.job import job, say

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with job(snakemake.log[0]):
    say(f"bundle: {pack(Path(snakemake.output[0]).parent.parent)}")
