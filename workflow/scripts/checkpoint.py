"""Fetch one checkpoint into the cache and record what it is."""

from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lab import checkpoints
from specdec_lab.job import job
from specdec_lab.records.spec import CheckpointSpec

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with job(snakemake.log[0]):
    checkpoints.fetch(CheckpointSpec.model_validate_json(snakemake.params.spec)).write(Path(snakemake.output[0]))
