"""Tables and verdicts, from the raw rows only.

Needs: every session. Gives: summary.txt, summary.csv, comparison.json, decision.json, decision.md, deploy/.
"""


localrules:
    compare,
    decide,


rule compare:
    input:
        config=f"{LAB.results}/config.resolved.json",
        sessions=LAB.session_files(),
    output:
        text=report(
            f"{LAB.results}/summary.txt",
            caption="../report/summary.rst",
            category="Table",
            labels={"file": "For people"},
        ),
        csv=report(
            f"{LAB.results}/summary.csv",
            caption="../report/summary.rst",
            category="Table",
            labels={"file": "For pandas"},
        ),
        comparison=f"{LAB.results}/comparison.json",
    log:
        f"{LAB.results}/logs/compare.log",
    params:
        code=LAB.code("compare"),
    message:
        "Comparing with the baseline"
    script:
        "../scripts/compare.py"


rule decide:
    input:
        rules.compare.output.comparison,
    output:
        decision=f"{LAB.results}/decision.json",
        text=report(
            f"{LAB.results}/decision.md",
            caption="../report/decision.rst",
            category="Decision",
            labels={"file": "What to deploy"},
        ),
        deploy=directory(f"{LAB.results}/deploy"),
    log:
        f"{LAB.results}/logs/decide.log",
    params:
        code=LAB.code("decide"),
    message:
        "Deciding per workload"
    script:
        "../scripts/decide.py"
