"""Secrets out of text: logs, argument lists, environment dumps, error messages (case E9). A pure function.

Three nets, each enough for what it is made for: values known to be secret (from the environment), values that stand
beside a secret's name, and values that look like a secret whatever stands beside them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

REDACTED = "[redacted]"
_MARK = "\ufdd0"
"""Stands for `[redacted]` while patterns run: a noncharacter, so that no pattern takes it for a value."""

_SECRET_NAME = (
    r"(?:[A-Za-z0-9]+[_-]){0,20}"
    r"(?:"
    r"api[_-]?keys?|apikey|access[_-]?key|secret[_-]?key|private[_-]?key|account[_-]?key|"
    r"(?:client[_-])?secrets?|password|passwd|passphrase|credentials?|"
    r"(?:hf|hub|hugging[_-]?face(?:[_-]hub)?|auth|access|bearer|refresh|session|id|github|gh|gitlab|ngc|wandb|"
    r"personal|deploy|job|registry|vault|slack|bot)[_-]?token"
    r")"
)
"""Names whose value is secret, behind up to twenty words: without an end, a long line of words joined by dashes would
be read anew from each of them. Plain `token` and `tokens` are not among them: they are this field's daily words."""

_COLOUR = re.compile(r"(?:\x1b|\\u001b|\\x1b|\\033|\\e)\[[0-9;]*[A-Za-z]", re.IGNORECASE)
"""A terminal's colour code, as it is or as JSON and Python write it."""
_VEILS = "".join(map(chr, range(0xFDD1, 0xFDF0)))
"""Noncharacters that stand for colour codes while patterns run."""
_GAP = rf"[\s{_VEILS}]*+"

_QUOTE = r"""(?:\\*["'])"""
_EMPTY = r"(?:None|null|True|False|true|false)\b"
_BARE = rf"""(?:[{_VEILS}]*[^\s"'\\,;&}}\]){_MARK}{_VEILS}])+"""
_OPEN = r"""(?P<open>(?P<escape>\\+)?(?P<quote>["']))"""
_QUOTED = (
    rf"(?P<quoted>(?(escape)"
    rf"(?:(?!(?P=escape)(?P=quote))(?:\\+.|[^\\\n{_MARK}]))+|"
    rf"(?:(?!(?P=quote))(?:\\.|[^\\\n{_MARK}]))+))"
)
"""What stands in quotes, up to the quote that ends it: one with as many backslashes as the opening one had. A quote
with more of them, or one of the other kind, is part of the value."""

_NAMED = re.compile(
    rf"(?P<head>(?<![A-Za-z0-9]){_SECRET_NAME}{_QUOTE}?{_GAP}(?:=>|[=:]){_GAP}\[?+{_GAP}(?:b(?=[\"']))?+)"
    rf"(?!{_EMPTY})(?:{_OPEN}{_QUOTED}|(?P<bare>{_BARE}))",
    re.IGNORECASE,
)
_LIST = re.compile(
    rf"(?P<head>(?<![A-Za-z0-9]){_SECRET_NAME}{_QUOTE}?{_GAP}[=:]{_GAP}\[)(?P<items>[^\]{_MARK}]+)(?=\])", re.IGNORECASE
)
_OPTION = re.compile(
    rf"(?P<head>--{_SECRET_NAME}{_QUOTE}?,?[\s{_VEILS}]++)(?!-)"
    rf"(?:{_OPEN}{_QUOTED}|(?P<bare>(?:[{_VEILS}]*[^\s\"'\\,\]{_MARK}{_VEILS}])+))",
    re.IGNORECASE,
)
_NAME_AND_VALUE = re.compile(
    rf"(?P<head>{_QUOTE}name{_QUOTE}{_GAP}:{_GAP}{_QUOTE}{_SECRET_NAME}{_QUOTE}{_GAP},{_GAP}{_QUOTE}value{_QUOTE}"
    rf"{_GAP}:{_GAP}){_OPEN}{_QUOTED}",
    re.IGNORECASE,
)
_HEADER = re.compile(
    rf"(?P<head>(?:proxy-)?authorization{_QUOTE}?{_GAP}[:=,]{_GAP}[(\[]*(?:b(?=[\"']))?{_QUOTE}?)"
    rf"(?P<scheme>(?:bearer|basic|token|digest)[\s{_VEILS}]++)?+(?:[{_VEILS}]*[^\s\"'\\,)\]}}{_MARK}{_VEILS}])+",
    re.IGNORECASE,
)
_BEARER = re.compile(rf"(?P<head>\bbearer[\s{_VEILS}]+)[A-Za-z0-9._~+/=-]{{8,}}", re.IGNORECASE)
_COOKIE = re.compile(r"(?P<head>\b(?:set-)?cookie\s*:\s*+)[^\r\n\"'\ufdd0]+", re.IGNORECASE)
_URL = re.compile(r"(?P<head>\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@\"']*:)[^\s/@\"'\ufdd0]+(?=@)", re.IGNORECASE)
_URL_KEY = re.compile(r"(?P<head>\b[a-z][a-z0-9+.-]{0,20}://)[^\s/:@\"'\ufdd0]{6,}(?=@)", re.IGNORECASE)
"""A URL whose user is the key itself (`https://KEY@host`); five letters or fewer are a user like `git`."""
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:hf|api_org)_(?=[A-Za-z0-9]*[A-Z0-9])[A-Za-z0-9]{8,}|"  # Hugging Face
    r"nvapi-[A-Za-z0-9_-]{16,}|"  # NVIDIA
    r"sk-(?:[a-z]+-)?[A-Za-z0-9_-]{16,}|"  # OpenAI-like
    r"gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|"  # code hosts
    r"AKIA[A-Z0-9]{16}|"  # AWS key id
    r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"  # a signed web token
    r")"
)
_SHAPE_STARTS = (
    "hf_",
    "api_org_",
    "nvapi-",
    "sk-",
    *(f"gh{kind}_" for kind in "opsur"),
    "github_pat_",
    "glpat-",
    "AKIA",
    "eyJ",
)
"""How each of these shapes begins: most texts hold none, and looking for a word is cheap."""
_SHORTEST_KNOWN = 6
"""A shorter value would hit ordinary words; its name still gives it away."""


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text with every secret replaced by `[redacted]`. `secrets` are known values; see `secret_values`.

    Doing it twice changes nothing. Never raises.
    """
    text, veiled = _veil(text.replace(REDACTED, _MARK))
    for form in _forms(secrets):
        text = text.replace(form, _MARK)
    text = _NAME_AND_VALUE.sub(lambda m: m["head"] + m["open"] + _MARK, text)
    text = _HEADER.sub(lambda m: m["head"] + (m["scheme"] or "") + _MARK, text)
    text = _BEARER.sub(lambda m: m["head"] + _MARK, text)
    text = _COOKIE.sub(lambda m: m["head"] + _MARK, text)
    text = _LIST.sub(lambda m: m["head"] + _MARK, text)
    text = _NAMED.sub(lambda m: m["head"] + (m["open"] or "") + _MARK, text)
    text = _OPTION.sub(lambda m: m["head"] + (m["open"] or "") + _MARK, text)
    text = _URL.sub(lambda m: m["head"] + _MARK, text)
    text = _URL_KEY.sub(lambda m: m["head"] + _MARK, text)
    return _unveil(_SHAPES.sub(_MARK, text).replace(_MARK, REDACTED), veiled)


def _veil(text: str) -> tuple[str, dict[str, str]]:
    """The text with a noncharacter for each colour code, and what each stands for.

    A code ends in a letter, behind which no name and no shape would be seen to begin. The first of each kind are put
    back afterwards; a text with more kinds than there are noncharacters loses the rest of its colours.
    """
    codes = list(dict.fromkeys(_COLOUR.findall(text)))
    veils = dict(zip(codes, _VEILS, strict=False))
    return _COLOUR.sub(lambda m: veils.get(m[0], _VEILS[-1]), text), {veil: code for code, veil in veils.items()}


def _unveil(text: str, veiled: Mapping[str, str]) -> str:
    for veil, code in veiled.items():
        text = text.replace(veil, code)
    return text


def redact_values(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without known secrets and without what looks like one, whatever stands beside it.

    For texts that were measured or written by people (answers, prompts, pages, code): what merely stands beside a
    secret's name is left there, because an answer that says `password = "x"` is a result and no secret.
    """
    for form in _forms(secrets):
        text = text.replace(form, REDACTED)
    if any(start in text for start in _SHAPE_STARTS):
        text, veiled = _veil(text)
        text = _unveil(_SHAPES.sub(REDACTED, text), veiled)
    return text


def is_secret_name(name: str) -> bool:
    """Whether a variable or option of this name holds a secret."""
    return re.fullmatch(_SECRET_NAME, name.lstrip("-"), re.IGNORECASE) is not None


def secret_values(environment: Mapping[str, str]) -> list[str]:
    """The secrets that this environment holds, longest first, so that none is cut by a shorter one."""
    values = {value for name, value in environment.items() if is_secret_name(name) and len(value) >= _SHORTEST_KNOWN}
    return sorted(values, key=lambda value: (-len(value), value))


def _forms(secrets: Iterable[str]) -> list[str]:
    """Each known secret as it may stand in a log: plain, in a URL, inside JSON."""
    forms = {
        form
        for secret in secrets
        if len(secret) >= _SHORTEST_KNOWN
        for form in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1])
    }
    return sorted(forms, key=lambda form: (-len(form), form))
