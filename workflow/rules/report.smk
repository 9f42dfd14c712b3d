"""One self-contained page, its charts as files for slides, and the numbers for dashboards.

Needs: comparison, decision. Gives: report.html, charts/*.svg, specdec.prom. The cells that lie beside them are read too.
"""

from specdec_lab.report.files import CHARTS, NUMBERS


localrules:
    report_page,


rule report_page:
    input:
        comparison=f"{LAB.results}/comparison.json",
        decision=f"{LAB.results}/decision.json",
    output:
        page=report(
            f"{LAB.results}/report.html",
            caption="../report/report.rst",
            category="Report",
            labels={"file": "Everything on one page"},
        ),
        charts=[
            report(
                f"{LAB.results}/charts/{name}.svg",
                caption="../report/chart.rst",
                category="Charts",
                labels={"chart": title},
            )
            for name, title in CHARTS.items()
        ],
        numbers=f"{LAB.results}/{NUMBERS}",
    log:
        f"{LAB.results}/logs/report.log",
    params:
        code=LAB.code("report"),
    message:
        "Writing the report"
    script:
        "../scripts/report.py"
