"""Fetch one checkpoint into the cache and record what it is; where it lies is no part of that."""

from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lab import checkpoints
from specdec_lab.job import job, say
from specdec_lab.records.base import strict_dumps, write_text_atomic
from specdec_lab.records.spec import CheckpointSpec

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with job(snakemake.log[0]):
    found = checkpoints.fetch(CheckpointSpec.model_validate_json(snakemake.params.spec), say=say)
    write_text_atomic(Path(snakemake.output[0]), strict_dumps(found.model_dump(mode="json", exclude={"path"})))
