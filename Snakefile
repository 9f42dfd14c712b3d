"""Measures what speculative decoding gains on this hardware: one server session per mode and replicate, then a verdict.

Run `snakemake --cores 1 --resources gpu=1`; another matrix with `--configfile config/demo.yaml`.
"""

from snakemake.utils import min_version

min_version("9.17")


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/prompts.smk"
include: "workflow/rules/checkpoints.smk"
include: "workflow/rules/images.smk"
include: "workflow/rules/session.smk"
include: "workflow/rules/compare.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/bundle.smk"


localrules:
    all,


rule all:
    default_target: True
    input:
        f"{LAB.results}/decision.json",
        f"{LAB.results}/report.html",
        f"{LAB.results}/bundle/manifest.json",
