"""One archive with everything behind the table (M36).

Needs: the report and what it was made of. Gives: bundle/manifest.json; the archive <name>-<digest>.tar.gz lies beside
it and is not declared, because its name follows from what it holds and older ones are to stay.
"""


localrules:
    bundle,


rule bundle:
    input:
        sessions=LAB.session_files(),
        prompts=f"{LAB.results}/prompts.jsonl",
        config=f"{LAB.results}/config.resolved.json",
        comparison=f"{LAB.results}/comparison.json",
        decision=f"{LAB.results}/decision.json",
        page=f"{LAB.results}/report.html",
    output:
        f"{LAB.results}/bundle/manifest.json",
    log:
        f"{LAB.results}/logs/bundle.log",
    params:
        code=LAB.code("bundle"),
    message:
        "Packing the bundle"
    script:
        "../scripts/bundle.py"
