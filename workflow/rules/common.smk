"""Glue between the config and the rules; what it computes lives in specdec_lab.dag."""

from pathlib import Path

from snakemake.exceptions import WorkflowError
from specdec_lab.dag import Lab
from specdec_lab.records.errors import UserError

try:
    LAB = Lab.load(
        workflow.overwrite_configfiles,
        root=Path(workflow.basedir),
        overrides=workflow.config_settings.config,
    )
except UserError as error:
    raise WorkflowError(str(error))


wildcard_constraints:
    mode="|".join(map(re.escape, LAB.modes)),
    checkpoint="|".join(map(re.escape, LAB.checkpoints)) or "none",
    replicate=r"\d+",


onerror:
    from specdec_lab.session.aftermath import after_error

    after_error(LAB.results, LAB.asked)
