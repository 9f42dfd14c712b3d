"""The generated workload: counts, bytes, padding and warm-up (M13, M15, M23)."""

from __future__ import annotations

from collections import Counter

import pytest

from specdec_lab import prompts
from specdec_lab.prompts.filler import estimate_tokens
from specdec_lab.records.errors import UserError
from specdec_lab.records.prompt import Message, Prompt

SEED_7 = "b196224a6b3cbeb35382df757b9870a9fd2284c458506e442bda44058317ca0d"


def texts(rows: list[Prompt]) -> set[str]:
    return {message.content for row in rows for message in row.messages}


def test_m13_seed_7_gives_the_same_bytes_everywhere() -> None:
    assert prompts.digest(prompts.generate(7)) == SEED_7


def test_m13_there_are_112_prompts_of_three_kinds_with_their_caps() -> None:
    rows = prompts.generate(7)
    assert Counter((row.kind, row.max_tokens) for row in rows) == {
        ("code", 400): 36,
        ("chat", 300): 40,
        ("json", 120): 36,
    }
    assert list(dict.fromkeys(row.kind for row in rows)) == ["code", "chat", "json"]
    assert len({row.id for row in rows}) == len(texts(rows)) == 112


def test_m13_code_is_six_functions_by_six_tasks() -> None:
    names = [row.id.rsplit("-", 1) for row in prompts.generate(7, ["code"])]
    assert len({function for function, _ in names}) == len({task for _, task in names}) == 6


def test_m13_every_edit_names_something_that_stands_in_its_function() -> None:
    from specdec_lab.prompts.code import FUNCTIONS

    for function in FUNCTIONS:
        assert function.rename[0] in function.source
        assert function.rename[1] not in function.source
        assert function.constant[0] in function.source
        compile(function.source, function.name, "exec")


def test_m13_another_seed_gives_another_file_of_the_same_shape() -> None:
    seven, eight = prompts.generate(7), prompts.generate(8)
    assert prompts.digest(seven) != prompts.digest(eight)
    assert Counter(row.kind for row in seven) == Counter(row.kind for row in eight)


def test_m13_the_first_prompts_of_a_kind_are_already_mixed() -> None:
    code = [row.id.rsplit("-", 1) for row in prompts.generate(7, ["code"])[:6]]
    assert len({function for function, _ in code}) == len({task for _, task in code}) == 6
    chat = [row.id.split("-")[1:] for row in prompts.generate(7, ["chat"])[:8]]
    assert len({topic for topic, _ in chat}) == 8
    assert len({template for _, template in chat}) == 2


def test_kinds_keep_their_order_however_they_are_asked_for() -> None:
    assert prompts.generate(7, ["json", "code"]) == [row for row in prompts.generate(7) if row.kind != "chat"]


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="'cod'") as caught:
        prompts.generate(7, ["cod"])
    assert "code, chat, json" in caught.value.fix


@pytest.mark.parametrize("tokens", [2000, 8000])
def test_m15_a_padded_workload_has_kinds_and_ids_of_its_own_and_the_asked_length(tokens: int) -> None:
    plain, padded = prompts.generate(7, ["chat"]), prompts.generate(7, ["chat"], context_tokens=tokens)
    assert {row.kind for row in padded} == {f"chat_ctx{tokens}"}
    assert not {row.id for row in plain} & {row.id for row in padded}
    for before, after in zip(plain, padded, strict=True):
        assert after.messages[0].content.endswith(before.messages[0].content)
        assert estimate_tokens(after.messages[0].content) == pytest.approx(tokens, rel=0.1)
    assert padded == prompts.generate(7, ["chat"], context_tokens=tokens)


def test_m15_padded_prompts_share_no_beginning_that_a_prefix_cache_could_keep() -> None:
    heads = {row.messages[0].content[:60] for row in prompts.generate(7, context_tokens=1000)}
    assert len(heads) == 112


def test_m15_a_context_shorter_than_the_prompts_is_refused() -> None:
    with pytest.raises(UserError, match="shorter"):
        prompts.generate(7, context_tokens=20)


OWN = [
    Prompt(
        id=f"t{number}",
        kind="support",
        messages=[
            Message(role="system", content="You answer questions on parcels. " * 5),
            Message(role="user", content=f"Parcel {number} has not arrived. " * (5 + number)),
        ],
        max_tokens=150 + number,
    )
    for number in range(20)
]
CASES = {
    "code": prompts.generate(7),
    "chat": prompts.generate(7),
    "json": prompts.generate(7),
    "chat_ctx3000": prompts.generate(7, ["chat"], 3000),
    "support": OWN,
}


@pytest.mark.parametrize("n", [1, 4, 16, 64])
@pytest.mark.parametrize("kind", CASES)
def test_m23_warmup_prompts_are_never_measured_and_are_like_the_measured_ones(kind: str, n: int) -> None:
    measured = CASES[kind]
    warm = prompts.warmup_for(kind, n, measured)
    assert len({row.id for row in warm}) == n
    assert {row.kind for row in warm} == {kind}
    assert not texts(warm) & texts(measured)
    usual = [estimate_tokens(row.messages[-1].content) for row in measured if row.kind == kind]
    for row in warm:
        assert min(usual) / 2 <= estimate_tokens(row.messages[-1].content) <= max(usual) * 2
        assert row.max_tokens <= max(other.max_tokens for other in measured if other.kind == kind)
    assert warm == prompts.warmup_for(kind, n, measured)


def test_m23_warmup_keeps_the_roles_of_own_traffic_and_shares_no_beginning_with_it() -> None:
    for row in prompts.warmup_for("support", 4, OWN):
        assert [message.role for message in row.messages] == ["system", "user"]
        assert not row.messages[0].content.startswith("You answer")


def test_m23_own_prompts_of_a_generated_kinds_name_get_warmup_of_their_own_length() -> None:
    long = [row.model_copy(update={"kind": "chat"}) for row in prompts.generate(7, ["code"], 4000)]
    for row in prompts.warmup_for("chat", 3, long):
        assert estimate_tokens(row.messages[0].content) == pytest.approx(4000, rel=0.2)


def test_m23_warming_up_for_a_kind_without_prompts_is_refused() -> None:
    with pytest.raises(UserError):
        prompts.warmup_for("chat", 3, OWN)
    assert prompts.warmup_for("support", 0, OWN) == []
