"""The image of the servers is pulled before any of them starts, and its digest written down.

Needs: a Docker engine; a registry, unless the image is here already. Gives: image.json, and containers/images.lock.json,
against which a tag that has moved is refused.
"""


localrules:
    image,


rule image:
    output:
        f"{LAB.results}/image.json",
    log:
        f"{LAB.results}/logs/image.log",
    # All cores: nothing is measured while something is downloaded. A scheduler's own limit may be none.
    threads: workflow.resource_settings.cores or 1
    params:
        reference=LAB.image(),
    message:
        "Finding the image {params.reference}"
    script:
        "../scripts/image.py"
