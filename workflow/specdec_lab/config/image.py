"""Whether a text can name a container's image: what a registry would refuse after minutes is refused at once (E5)."""

from __future__ import annotations

import re

_HOST = r"(?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+|[A-Za-z0-9-]+(?=:\d))(?::\d+)?"
_PART = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_NAME = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*\Z")
_TAG = re.compile(r"\w[\w.-]{0,127}\Z", re.ASCII)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
FORM = (
    "Write `name:tag` in lower case, such as vllm/vllm-openai:v0.33.0, "
    "or `name@sha256:` and the 64 digits (0-9, a-f) of its digest."
)


def fault(reference: str) -> str | None:
    """What is wrong with a reference; None for `name`, `name:tag`, either with `@digest`, and for an image's id."""
    if _DIGEST.match(reference):
        return None
    if not reference or re.search(r"\s", reference):
        return "it is empty or has a blank in it"
    if "://" in reference:
        return "it is an address of the web"
    name, at, digest = reference.partition("@")
    if at and not _DIGEST.match(digest):
        return f"`{digest}` is no digest"
    stem, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        stem, colon, tag = name, "", ""
    if colon and not _TAG.match(tag):
        return f"`{tag}` is no tag" if tag else "there is no tag after the colon"
    if not _NAME.match(stem):
        return f"`{stem}` has capital letters" if _NAME.match(stem.lower()) else f"`{stem}` is no name of an image"
    return None
