"""One job = one fresh server = all cells of one mode and replicate, in order.

Needs: prompts, checkpoints. Gives: one JSON per cell and session.json; server.log and metrics.prom lie beside them and
are not declared, because Snakemake deletes what is declared when a job fails.
"""


rule session:
    input:
        lambda wildcards: LAB.session_inputs(wildcards.mode),
    output:
        session=f"{LAB.results}/sessions/{{mode}}/r{{replicate}}/session.json",
        cells=[
            f"{LAB.results}/sessions/{{mode}}/r{{replicate}}/{name}.json"
            for name in LAB.cell_names()
        ],
    log:
        f"{LAB.results}/logs/session_{{mode}}_r{{replicate}}.log",
    priority: lambda wildcards: LAB.priority(wildcards.mode, int(wildcards.replicate))
    resources:
        gpu=lambda wildcards: LAB.gpus(wildcards.mode),
    params:
        spec=lambda wildcards: LAB.session_spec(wildcards.mode),
        code=LAB.code("session"),
    message:
        "Measuring {wildcards.mode}, replicate {wildcards.replicate}"
    script:
        "../scripts/session.py"
