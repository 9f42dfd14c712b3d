"""Glue between the config and the rules; what it computes lives in specdec_lab.dag."""

import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from specdec_lab.dag import Lab
from specdec_lab.lost import lost, make_again, only_looks
from specdec_lab.records.errors import UserError

try:
    LAB = Lab.load(
        workflow.overwrite_configfiles,
        root=Path(workflow.basedir),
        overrides=workflow.config_settings.config,
    )
except UserError as error:
    raise WorkflowError(str(error))


# A cell file that was deleted or cut off since: its session brings it back from the store.
if workflow.is_main_process and (gone := lost(LAB.session_files())):
    for path in gone:
        logger.warning(f"note: {path} is gone or cut off; a run brings it back.")
    if not only_looks(sys.argv[1:]):
        make_again(gone, Path(LAB.results, "comparison.json"))


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
