"""What a config file may say: each key with type, default and meaning. Schema and reference page come from here.

Serves M12-M18, M23-M27, M31, M34, M39. Keys that are not listed here are refused (case E1).
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=80)]
"""A name that becomes part of a path: letters, digits, dot, dash, underscore. No slash, space or colon (case E4)."""
Positive = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0)]


class Block(BaseModel):
    """A block of the config. Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class EngineConfig(Block):
    """The server software, and how it is started."""

    software: Literal["vllm", "llama_cpp", "sglang", "nim", "openai"] = Field(
        description="Which server software. `openai` is any OpenAI-compatible endpoint."
    )
    version: str | None = Field(
        default=None,
        description="The version that the server must report; anything else is refused.",
        examples=["0.33.0"],
    )
    launcher: Literal["docker", "process", "attach"] = Field(
        default="docker",
        description="`docker`: one container per mode. `process`: a local program. `attach`: a running server.",
    )
    image: str | None = Field(default=None, description="docker: the image, with a tag or a digest.")
    command: list[str] | None = Field(
        default=None,
        description="process: the program and its first arguments; the lab adds the flags. "
        "Default: the engine's own program; for llama_cpp the embedded server.",
        examples=[["vllm", "serve"]],
    )
    base_url: str | None = Field(
        default=None, description="attach: where the server answers, e.g. http://127.0.0.1:8000."
    )
    served_model: str | None = Field(default=None, description="The model name in requests. Default: the engine's own.")
    args: dict[str, JsonValue] = Field(
        default={},
        description="Server flags without their dashes. They are the same in every mode (M17).",
        examples=[{"max-model-len": 8192}],
    )
    env: dict[str, str] = Field(
        default={},
        description="Environment of the server. No secrets: they are taken from yours.",
        examples=[{"OMP_NUM_THREADS": "8"}],
    )
    gpus: Annotated[int, Field(ge=0)] = Field(default=1, description="GPUs per server; 0 on a CPU.")
    ready_timeout_s: Seconds = Field(default=900.0, description="How long a start may take (loading, compiling).")
    stop_timeout_s: Seconds = Field(default=30.0, description="How long a server may take to end before it is killed.")


class CheckpointConfig(Block):
    """One checkpoint. Give exactly one of `hub`, `path`, `bundled`."""

    hub: str | None = Field(
        default=None, description="Hugging Face repository.", examples=["meta-llama/Llama-3.1-8B-Instruct"]
    )
    revision: str | None = Field(
        default=None,
        description="hub: the commit. A branch name is refused. Default: the commit that the first fetch finds, "
        "kept in config/checkpoints.lock.json from then on.",
    )
    path: str | None = Field(default=None, description="A local file or folder.")
    bundled: str | None = Field(
        default=None,
        description="A small model that comes from a package: `smollm2-135m-q4_1`, `smollm2-135m-q8_0` (eight bits) or "
        "`smollm2-135m-safetensors` (for vLLM).",
    )
    files: list[str] = Field(
        default=[],
        description="hub: patterns of the files to fetch. Default: all that serving needs.",
        examples=[["*.safetensors", "*.json"]],
    )
    gated: bool = Field(default=False, description="hub: asks for a token (HF_TOKEN) and an accepted licence.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [key for key in ("hub", "path", "bundled") if getattr(self, key)]
        if len(given) != 1:
            raise PydanticCustomError(
                "one_source",
                "give exactly one of hub, path, bundled (given: {given})",
                {"given": ", ".join(given) or "none"},
            )
        return self


class DiffersConfig(Block):
    """What this mode's server has different from the baseline's apart from the speculation, and why (M17)."""

    why: Annotated[str, StringConstraints(min_length=1)] = Field(
        description="One sentence; it is printed with every result."
    )
    args: dict[str, JsonValue] = Field(
        default={}, description="Server flags that differ.", examples=[{"async-scheduling": False}]
    )
    env: dict[str, str] = Field(
        default={}, description="Environment that differs.", examples=[{"VLLM_USE_V2_MODEL_RUNNER": "0"}]
    )


class ModeConfig(Block):
    """One mode. Without `speculative` it is a baseline."""

    speculative: dict[str, JsonValue] | None = Field(
        default=None,
        description="The method and its options in the engine's own words (vLLM: the JSON of --speculative-config). "
        "`model` names a checkpoint of this config. Without this key the mode is a plain server, a baseline.",
        examples=[{"method": "ngram", "num_speculative_tokens": 5}],
    )
    against: str | None = Field(
        default=None, description="The baseline it is compared with. Default: the one that fits."
    )
    target: str | None = Field(default=None, description="Another checkpoint than `target` (M21).")
    differs: DiffersConfig | None = Field(default=None, description="Declared differences from the baseline's server.")
    lossy: bool = Field(default=False, description="Says that you know that this method may change the text (M18).")
    sweep: dict[str, list[JsonValue]] | None = Field(
        default=None,
        description="One option of `speculative` and its values: one mode is made for each (M34).",
        examples=[{"num_speculative_tokens": [2, 3, 4, 6, 8]}],
    )
    base_url: str | None = Field(default=None, description="attach: where this mode's server answers.")
    gpus: Annotated[int, Field(ge=0)] | None = Field(default=None, description="GPUs, if not the engine's.")


class WorkloadConfig(Block):
    """What is asked: the generated prompts, or your own traffic."""

    prompts: str | None = Field(
        default=None, description="Your own traffic, a JSONL file (M14). Default: generated (M13)."
    )
    seed: int = Field(default=7, description="Seed of the generated prompts.")
    kinds: list[Name] | None = Field(
        default=None,
        description="Which kinds to measure. Default: all that the prompts have.",
        examples=[["code", "chat"]],
    )
    requests: Positive | None = Field(
        default=32, description="Requests per cell, the first n of each kind; null: all of them."
    )
    max_tokens: dict[str, Positive] = Field(
        default={},
        description="Caps answers per kind, below the prompts' own caps.",
        examples=[{"code": 128, "chat": 128, "json": 128}],
    )
    context_tokens: list[Positive] = Field(
        default=[],
        description="Long contexts (M15): each kind again with about so many tokens before the question.",
        examples=[[8000]],
    )
    ignore_eos: bool = Field(
        default=False, description="Always write up to the cap (engines that know it). Text is then artificial."
    )
    warmup: Positive | None = Field(
        default=None, description="Warm-up requests per cell, not recorded. Default: the concurrency, at least 2."
    )
    temperature: Annotated[float, Field(ge=0, le=2)] = Field(
        default=0.0, description="0 is greedy. Above it text changes by design and identity is not judged (M41)."
    )
    body: dict[str, JsonValue] = Field(
        default={},
        description="Further request fields, the same in every mode; none that the lab sets or counts "
        "itself (temperature, caps, `n`).",
        examples=[{"chat_template_kwargs": {"enable_thinking": False}}],
    )


class LoadConfig(Block):
    """How much is asked at once."""

    concurrency: list[Positive] = Field(
        default=[1, 4, 16], description="Closed loop: so many requests in flight.", examples=[[1, 4, 16]]
    )
    rates: list[Annotated[float, Field(gt=0)]] = Field(
        default=[], description="Open loop: Poisson arrivals per second.", examples=[[2.0]]
    )
    seed: int = Field(default=0, description="Seed of the arrival times.")
    total_s: Seconds = Field(default=300.0, description="Limit of one request.")
    first_byte_s: Seconds = Field(default=120.0, description="Limit until its first byte.")
    idle_s: Seconds = Field(default=60.0, description="Limit between two reads.")
    abort_after_failures: Positive = Field(default=8, description="Failures in a row that end a cell.")
    ttft_s: Seconds | None = Field(default=None, description="Objective for goodput: time to first token.")
    tpot_s: Seconds | None = Field(default=None, description="Objective for goodput: time per output token.")


class ProtocolConfig(Block):
    """How often, in which order, against which controls."""

    replicates: Positive = Field(default=2, description="Fresh servers per mode.")
    baseline_replicates: Annotated[int, Field(ge=2)] | None = Field(
        default=None, description="Fresh baseline servers. Default: as many as the modes have, at least 2 (M25)."
    )
    seed: int = Field(default=7, description="Seed of the order in which sessions run.")
    placebo: bool = Field(
        default=False, description="Adds a mode with the baseline's own arguments: it must show no gain."
    )


class DecisionConfig(Block):
    """The rule for a win, fixed before anything runs (M7)."""

    margin: Annotated[float, Field(ge=0, lt=1)] = Field(default=0.05, description="Smallest gain that counts.")
    concurrency: Positive | None = Field(
        default=None, description="The concurrency you really run. Default: the lowest that is measured."
    )
    identical: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.98, description="Smallest share of identical texts, relative to the baseline's own repeat."
    )
    noise_limit: Annotated[float, Field(gt=0)] = Field(
        default=0.10,
        description="From this noise between starts of one server on, or this drift of the baseline, a result is "
        "unreliable, unless the difference it shows is at least twice as large (M25).",
    )


class CostConfig(Block):
    """What a server hour costs, for cost per million completion tokens (B8)."""

    per_hour: Annotated[float, Field(gt=0)] = Field(
        description="Price of one hour of a server as `engine` describes it, with all its `engine.gpus` GPUs "
        "(on a CPU: of the machine). A mode with `gpus` of its own pays for those in proportion."
    )
    currency: str = Field(
        default="USD", description="What the price is in. Printed beside the numbers, never converted."
    )


class ClaimConfig(Block):
    """A speedup that somebody claims; shown beside what was measured here (M39)."""

    mode: str = Field(description="The mode it is about.")
    speedup: Annotated[float, Field(gt=0)] = Field(description='As a ratio: 3.0 for "3x".')
    source: Annotated[str, StringConstraints(min_length=1)] = Field(description="Who says so, and where.")
    kind: str | None = Field(default=None, description="The workload kind it is about. Default: all.")


class LabConfig(Block):
    """One matrix: an engine, its modes, a workload, loads, and the rule for a win."""

    name: Name = Field(description="Results go to results/<name>/.")
    engine: EngineConfig = Field(description="The server software, and how it is started.")
    checkpoints: dict[Name, CheckpointConfig] = Field(
        default={},
        description="Checkpoints by role. `target` is the model that is served; others are drafts and heads.",
        examples=[{"target": {"hub": "owner/name"}}],
    )
    modes: dict[Name, ModeConfig] = Field(
        description="The modes, in any order. Ties go to the simpler one: lookup before heads of the target before "
        "draft models, then the shorter draft.",
        examples=[{"baseline": {}, "ngram": {"speculative": {"method": "ngram", "num_speculative_tokens": 5}}}],
    )
    only: list[str] | None = Field(
        default=None, description="Run only these modes (and the baselines they need).", examples=[["ngram"]]
    )
    workload: WorkloadConfig = Field(default=WorkloadConfig(), description="What is asked.")
    load: LoadConfig = Field(default=LoadConfig(), description="How much is asked at once.")
    protocol: ProtocolConfig = Field(default=ProtocolConfig(), description="How often, and in which order.")
    decision: DecisionConfig = Field(default=DecisionConfig(), description="The rule for a win.")
    cost: CostConfig | None = Field(default=None, description="What a server hour costs.")
    claims: list[ClaimConfig] = Field(
        default=[],
        description="Claims to be shown beside the measurement.",
        examples=[[{"mode": "ngram", "speedup": 3.0, "source": "who says so"}]],
    )
