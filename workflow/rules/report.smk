"""One self-contained page.

Needs: comparison, decision. Gives: report.html.
"""


localrules:
    report_page,


rule report_page:
    input:
        comparison=f"{LAB.results}/comparison.json",
        decision=f"{LAB.results}/decision.json",
    output:
        report(
            f"{LAB.results}/report.html",
            caption="../report/report.rst",
            category="Report",
        ),
    log:
        f"{LAB.results}/logs/report.log",
    params:
        code=LAB.code("report"),
    message:
        "Writing the report"
    script:
        "../scripts/report.py"
