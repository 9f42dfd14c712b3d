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


# The first moment of a real run. Not when the config is read: a dry run, or a look at finished results on a machine
# that has no engine, needs no program and no checkpoint.
onstart:
    if not workflow.touch:
        planned = [
            (job.rule.name, job.wildcards_dict)
            for job in workflow.dag.needrun_jobs()
        ]
        try:
            LAB.require_here(planned, servers_here=workflow.local_exec)
        except UserError as error:
            raise WorkflowError(str(error))
        for remark in LAB.remarks:
            logger.warning(f"note: {remark}")


onerror:
    from specdec_lab.session.aftermath import after_error

    after_error(LAB.results, LAB.asked)
