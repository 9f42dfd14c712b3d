"""Checkpoints are fetched before any server starts, so that no download ever counts as a slow start.

Needs: network or a filled cache. Gives: one record per checkpoint; the files stay in the cache.
"""


localrules:
    checkpoint,


rule checkpoint:
    output:
        f"{LAB.results}/checkpoints/{{checkpoint}}.json",
    log:
        f"{LAB.results}/logs/checkpoint_{{checkpoint}}.log",
    # All cores: nothing is measured while something is downloaded. A scheduler's own limit may be none.
    threads: workflow.resource_settings.cores or 1
    params:
        spec=lambda wildcards: LAB.checkpoint_spec(wildcards.checkpoint),
        code=LAB.code("checkpoint"),
    message:
        "Fetching checkpoint {wildcards.checkpoint}"
    script:
        "../scripts/checkpoint.py"
