"""The twelve failures as data: number in mission.md, code, the texts that give it away, cause and fix.

`rank` 0 texts name the cause itself; rank 1 texts only name its family and count when no rank 0 text is found
anywhere; umbrella lines ("Engine core initialization failed") are never a cause (case C2). A cause or fix may use the
pattern's named groups. Failures without texts are found by measuring or by asking the system, not in a log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class KnownFailure:
    """One way to fail, and the answer to it."""

    number: int | None
    """Its place among the twelve; None for close relatives that are not among them."""
    code: str
    cause: str
    fix: str
    patterns: tuple[str, ...] = ()
    rank: int = 0

    def search(self, text: str) -> re.Match[str] | None:
        """The earliest match in a log."""
        hits = [hit for pattern in self.patterns if (hit := re.search(pattern, text, re.MULTILINE)) is not None]
        return min(hits, key=re.Match.start, default=None)


FAILURES: tuple[KnownFailure, ...] = (
    KnownFailure(
        1,
        "gated_repo",
        "the hub refuses the checkpoint: it is gated or private, and the token is missing or has no access",
        "accept the licence on the model's page with the token's account, set HF_TOKEN, and fetch again",
        (
            r"You are trying to access a gated repo",
            r"GatedRepoError",
            r"Cannot access gated repo for url",
            # The hub answers 401 for a repository that does not exist too, and says so in the next lines.
            r"\b(401|403) Client Error(?!(?s:.{0,600})Repository Not Found for url)",
            r"Invalid credentials in Authorization header",
            r"Access to model \S+ is restricted",
        ),
    ),
    KnownFailure(
        1,
        "model_not_found",
        "the engine finds no model under the name or path it was given",
        "check the checkpoint's path or repository name; a server is given a folder that was fetched "
        "before, never a hub name",
        (
            r"Repository Not Found for url",
            r"is not a local folder and is not a valid model identifier",
            r"Repo id must be in the form",
            r"Invalid repository ID or local directory specified",
            r"Cannot find an appropriate cached snapshot folder",
            r"We couldn't connect to 'https://huggingface\.co' to load",
            r"failed to open GGUF file",
            r"does not appear to have a file named",
        ),
    ),
    KnownFailure(
        2,
        "driver_too_old",
        "the NVIDIA driver is older than this engine's CUDA needs",
        "install a driver of the R580 line or later (CUDA 13); on data-centre cards with R535 or R570, "
        "VLLM_ENABLE_CUDA_COMPATIBILITY=1 may do",
        (
            r"The NVIDIA driver on your system is too old(?: \(found version \d+\))?",
            r"unsatisfied condition: cuda>=[\d.]+",
            r"compiled with an unsupported toolchain",
            r"Error 803",
            r"libcudart\.so\.1[3-9]\S*: cannot open shared object file",
            r"CUDA driver version is insufficient for CUDA runtime version",
        ),
    ),
    KnownFailure(
        2,
        "driver_mismatch",
        "the NVIDIA driver's library is of another version than the running kernel module",
        "restart this machine: the driver was updated while it ran",
        (r"[Dd]river/library version mismatch",),
    ),
    KnownFailure(
        2,
        "no_gpu_runtime",
        "no GPU can be used: the NVIDIA container toolkit is missing, or no GPU is visible to the server",
        "install the NVIDIA container toolkit (`nvidia-ctk runtime configure --runtime=docker`, restart Docker), "
        "then run `specdec doctor`",
        (
            r"could not select device driver",
            r"unresolvable CDI devices",
            r"Unknown runtime specified nvidia",
            r"Failed to infer device type",
            r"Failed to initialize NVML(?!.*version mismatch)",
            r"nvidia-container-cli: initialization error(?!.*version mismatch)",
            r"No CUDA GPUs are available",
            r"no CUDA-capable device is detected",
        ),
    ),
    KnownFailure(
        3,
        "speculation_json",
        "the engine cannot read the speculative config as JSON",
        "let the lab write it: put the options under `speculative:` as YAML; by hand, pass one argument of strict JSON "
        "(double quotes, true, false, null) to --speculative-config",
        (
            r"argument --speculative-config(?:/-sc)?: .*cannot be converted",
            r"'list' object has no attribute 'items'",
        ),
    ),
    KnownFailure(
        4,
        "suffix_dependency",
        "suffix decoding needs Arctic Inference, which this engine does not have",
        "use the image built from containers/vllm/suffix.Dockerfile, or install arctic-inference==0.1.1 beside vLLM",
        (r"Arctic Inference is required",),
    ),
    KnownFailure(
        4,
        "no_mtp_heads",
        "the target has no MTP layers, so it cannot draft for itself",
        "use a target with its own MTP heads (another target, with its own baseline), or another method",
        (r"Unsupported speculative method: 'mtp'",),
    ),
    KnownFailure(
        4,
        "unknown_method",
        "this engine version knows no such speculative method",
        "medusa and mlp_speculator are gone from vLLM 0.33: use eagle3, draft_model, ngram or suffix; for others see "
        "the list in config/README.md",
        (
            r"SpeculativeConfig\s+method\s+Input should be [^\n]*",
            r"Unsupported speculative method: '?(?P<what>[\w-]+)",
            r"Unknown speculative decoding method",
            r"Unknown speculative algorithm name",
            r"^\S*\s?ValueError: \S+ is not supported yet\.",
            r"argument --spec-type: unknown type",
            r"unknown speculative (?:decoding )?type",
        ),
    ),
    KnownFailure(
        4,
        "unknown_option",
        "this engine version knows no such option",
        "compare the option's spelling with the engine's own help; `specdec doctor --config` checks what the lab knows",
        (
            r"[\w.]+[^\S\n]*\n[^\S\n]+Unexpected keyword argument \[type=unexpected_keyword_argument",
            r"unrecognized arguments: [^\n]*",
            r"the argument has been removed",
            r"error: invalid argument: [^\n]*",
        ),
    ),
    KnownFailure(
        4,
        "runner_mismatch",
        "the model runner that was asked for cannot run this method",
        "leave VLLM_USE_V2_MODEL_RUNNER unset, so that vLLM picks the runner that can",
        (r"^(?!.*using the V1 model runner instead).*Model Runner V[12] does not (?:yet )?support",),
    ),
    KnownFailure(
        4,
        "no_eagle3_support",
        "this target model cannot feed an EAGLE3 head",
        "use a target whose model class supports EAGLE3, or another method",
        (r"Model does not support EAGLE3 interface", r"does not support eagle3 with pipeline parallelism"),
    ),
    KnownFailure(
        4,
        "wrong_head",
        "the head or draft checkpoint is not of the kind that this method loads",
        "check that the checkpoint was trained for this method and this target",
        (r"There is no module or parameter named", r"Duplicate layer name", r"must be divisible by n_predict"),
    ),
    KnownFailure(
        4,
        "speculation_incomplete",
        "the speculative config lacks something that its method needs",
        "give `num_speculative_tokens`, and `model` where the method drafts with one",
        (
            r"num_speculative_tokens was provided but without speculative model",
            r"`?num_speculative_tokens`? (?:was not provided|must be provided)",
            r"A speculative model was provided, but",
            r"prompt_lookup_min=\d+ must be <= prompt_lookup_max",
        ),
    ),
    KnownFailure(
        5,
        "vocabulary_mismatch",
        "draft and target do not share one vocabulary",
        "take a draft of the target's own family, with the same tokenizer (token to id map, not only size)",
        (
            r"Target and draft model should have the same vocabulary size",
            r"requires the draft model to share the same vocabulary",
            r"different token-to-id mappings",
            r"the target and draft vocabs are not compatible",
            r"draft model vocab type must match",
        ),
    ),
    KnownFailure(
        6,
        "context_too_long",
        "the asked context is longer than the model's own",
        "lower --max-model-len, in every mode alike",
        (r"User-specified max_model_len \(\d+\) is greater than the derived max_model_len",),
    ),
    KnownFailure(
        6,
        "out_of_memory",
        "the server ran out of memory while it started",
        "lower --gpu-memory-utilization or --max-model-len (in every mode alike), or end what else uses the GPU: "
        "`specdec doctor` names it",
        (
            r"CUDA out of memory",
            r"CUDA error: out of memory",
            r"cudaMalloc failed: out of memory",
            r"unable to allocate CUDA\d* buffer",
            r"failed to allocate CUDA\d* buffer",
            r"Not enough memory\. Please try to increase --mem-fraction-static",
            r"OutOfMemoryError",
            r"is less than desired GPU memory utilization",
            r"No available memory for the cache blocks",
            r"To serve at least one request with the model's max seq len",
            r"not enough GPU memory",
            r"when warming up sampler",
            r"Error in memory profiling",
            r"The worker already uses [\d.]+ GiB",
            r"Available memory on node",
            r"failed to allocate (?:buffer|compute)",
            r"std::bad_alloc",
            r"Cannot allocate memory",
        ),
    ),
    KnownFailure(
        7,
        "speculation_slow",
        "speculation was slower than the baseline here",
        "compare acceptance and drafting cost in the report: low acceptance means that the proposer does not fit this "
        "traffic; good acceptance with little gain means overhead (costly draft, full batches, long context)",
    ),
    KnownFailure(
        8,
        "outputs_differ",
        "texts differ from the baseline's at temperature 0",
        "look where they split: late and few is rounding (compare with the baseline's own repeat); early and many is a "
        "wrong set-up. Lossy verification must be off, and sampling defaults of the model must not be in use",
    ),
    KnownFailure(
        9,
        "no_counters",
        "the server's metrics show no speculation counters",
        "speculation is not on, or statistics are off (--disable-log-stats; llama-server without --metrics; SGLang "
        "without --enable-metrics)",
        (r"This server does not support metrics endpoint", r"failed to initialize speculative decoding context"),
    ),
    KnownFailure(
        10,
        "eagle3_zero",
        "the EAGLE3 head's acceptance is near zero",
        "the head was trained for another target, or the chat template differs from its training: check the pair and "
        "the template (thinking on or off), and whether the target is quantised",
    ),
    KnownFailure(
        11,
        "port_taken",
        "the port is in use by something else",
        "end what listens there, or let the lab choose a free port",
        (r"[Aa]ddress already in use", r"port is already allocated", r"couldn't bind (?:HTTP )?server socket"),
    ),
    KnownFailure(
        11,
        "never_healthy",
        "the server did not become healthy within its limit",
        "look at the last lines of its log; a first start also compiles and captures graphs: raise ready_timeout_s if "
        "it was still busy",
        (r"Timed out waiting for engine core processes", r"Waiting for \d+ .*core engine proc"),
        rank=1,
    ),
    KnownFailure(
        12,
        "memory_not_released",
        "GPU memory is still in use after the server was stopped",
        "end the process named above (titles VLLM::EngineCore, VLLM::Worker): `nvidia-smi "
        "--query-compute-apps=pid,process_name,used_memory --format=csv` lists them",
    ),
    KnownFailure(
        4,
        "speculation_invalid",
        "the engine refuses the speculative config",
        "see the excerpt for the rule that was broken; options and their limits are in config/README.md",
        (r"validation errors? for SpeculativeConfig[^\n]*\n[^\n]*\n?[^\n]*",),
        rank=1,
    ),
    KnownFailure(
        None,
        "bad_arguments",
        "the engine refuses its arguments",
        "see the excerpt for the rule that was broken",
        (r"validation errors? for \w+Config[^\n]*\n[^\n]*\n?[^\n]*", r"^\S+(?: \S+)?: error: argument [^\n]*"),
        rank=1,
    ),
)

UMBRELLAS = re.compile(
    r"Engine core initialization failed"
    r"|EngineCore failed to start"
    r"|WorkerProc (?:initialization failed|failed to start)"
    r"|exiting due to model loading error"
    r"|Failed to init server, please check the input params"
    r"|(?:see|See) (?:above|stack trace|root cause)"
)
"""Lines that only say that something went wrong further up."""


def known(code: str) -> KnownFailure:
    """The failure of that code; KeyError for an unknown one."""
    for failure in FAILURES:
        if failure.code == code:
            return failure
    raise KeyError(code)
