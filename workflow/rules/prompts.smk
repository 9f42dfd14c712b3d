"""The config as resolved, and the measured prompts.

Needs: the config; your own traffic, if it names one. Gives: config.resolved.json, prompts.jsonl.
"""


localrules:
    resolve,
    prompts,


rule resolve:
    output:
        f"{LAB.results}/config.resolved.json",
    log:
        f"{LAB.results}/logs/resolve.log",
    params:
        resolved=lambda wildcards: LAB.resolved(),
    message:
        "Writing down the config as resolved"
    script:
        "../scripts/resolve.py"


rule prompts:
    input:
        LAB.own_traffic,
    output:
        f"{LAB.results}/prompts.jsonl",
    log:
        f"{LAB.results}/logs/prompts.log",
    params:
        workload=lambda wildcards: LAB.matrix.workload(),
        code=LAB.code("prompts"),
    message:
        "Writing the prompts"
    script:
        "../scripts/prompts.py"
