"""Request fields that `workload.body` may not set: the lab sends them itself, or they change what is counted (D5).

Such a field would go round the config's own key in silence: the report would say temperature 0 of answers drawn at 0.8,
or compare caps that no request had.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import engines
from ..records.spec import ServerSpec
from .models import LabConfig
from .problems import Problem

_CAP = "Use `workload.max_tokens`, by kind; prompts of your own say it in each row (`max_tokens`)."
_ONE = "Leave it out: one answer per request is read, timed and counted."
_FULL = "Use `workload.ignore_eos`: every answer then has its full length, and the results say so."
_PROMPT = "Leave it out: what is asked comes from the prompts (`workload.prompts`)."
_PLACES = {
    "model": "Use `engine.served_model`.",
    "messages": _PROMPT,
    "prompt": _PROMPT,
    "input": _PROMPT,
    "suffix": _PROMPT,
    "echo": "Leave it out: the prompt's own text would be counted as an answer.",
    "truncate_prompt_tokens": "Leave it out, and shorten the prompts themselves: their length is part of the result.",
    "stream": "Leave it out: the client always streams.",
    "temperature": "Use `workload.temperature`.",
    "seed": "Leave it out: the client sends one, the same with every request.",
    **dict.fromkeys(
        (
            "max_tokens",
            "max_completion_tokens",
            "max_output_tokens",
            "max_new_tokens",
            "max_length",
            "n_predict",
            "num_predict",
            "t_max_predict_ms",
        ),
        _CAP,
    ),
    **dict.fromkeys(("ignore_eos", "min_tokens", "min_new_tokens"), _FULL),
    **dict.fromkeys(
        ("n", "best_of", "n_cmpl", "num_return_sequences", "use_beam_search", "num_beams", "beam_width"), _ONE
    ),
    "cache_prompt": "Use `cache-prompt` in `engine.args`: whether earlier prompts help later ones is the server's.",
    "extra_body": "Write its fields into `workload.body` themselves: only the OpenAI client unpacks this one.",
}
"""Field -> where it belongs."""
_CAUSES = {
    _CAP: "a cap in the body would go round the prompts' own",
    _ONE: "it asks for several answers, or for several tries at one",
}


def problems(config: LabConfig) -> Iterator[Problem]:
    """Each field of `workload.body` that is not the body's to set."""
    software = config.engine.software
    counted = engines.get(software).body_extra(ServerSpec(engine=software, launcher="attach"))
    for name, value in config.workload.body.items():
        plain = name.lower().replace("-", "_")
        path = ("workload", "body", name)
        if plain in _PLACES:
            fix = _PLACES[plain]
            yield Problem(path, _CAUSES.get(fix, f"a request's `{name}` may not be set here"), fix)
        elif plain.startswith(("speculative", "spec_")):
            fix = "Write it into the mode's `speculative` block."
            yield Problem(path, "it would change the speculation of every mode", fix)
        elif name in counted:
            yield Problem(path, "the lab sets it, to count tokens", "Leave it out.")
        elif name == "stream_options" and (not isinstance(value, dict) or "include_usage" in value):
            fix = "Leave `include_usage` out: the client asks for it; without it no tokens are counted."
            yield Problem(path, "the counts of a stream may not be switched here", fix)
