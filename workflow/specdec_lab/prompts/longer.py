"""Long contexts as a workload (M15): the same tasks behind notes that have nothing to do with them.

The gain at 2,000 tokens of context can be a loss at 30,000, so each kind can be measured again at other lengths.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..records.errors import UserError
from ..records.prompt import Message, Prompt
from .filler import estimate_tokens, filler

_HEAD = "These notes are background and have nothing to do with the task that follows them.\n\n"
_TAIL = "\n\nEnd of the notes. The task:\n\n"
_SHORTEST_NOTES = 40


def kind_name(kind: str, context_tokens: int | None) -> str:
    """The kind under which a lengthened workload is counted: `chat` at 8000 tokens is `chat_ctx8000`."""
    return kind if context_tokens is None else f"{kind}_ctx{context_tokens}"


def longer(prompts: Sequence[Prompt], context_tokens: int, seed: int) -> list[Prompt]:
    """Each prompt again with about `context_tokens` tokens in all, under a kind and an id of its own.

    The notes stand at the head of the last user message and are different for every prompt from the first line on, so
    that no prefix cache helps. A prompt that is that long already stays as it is. UserError if all of them are.
    """
    made = [_lengthened(prompt, context_tokens, seed) for prompt in prompts]
    if made and all(one.messages == prompt.messages for one, prompt in zip(made, prompts, strict=True)):
        shortest = min(tokens_of(prompt) for prompt in prompts)
        raise UserError(
            f"A context of {context_tokens} tokens is shorter than the prompts themselves (from about {shortest}).",
            place="workload: context_tokens",
            fix=f"Ask for at least {shortest + 100} tokens.",
        )
    return made


def tokens_of(prompt: Prompt) -> int:
    """About how many tokens a prompt has (an estimate, for choosing lengths only)."""
    return sum(estimate_tokens(message.content) for message in prompt.messages)


def _lengthened(prompt: Prompt, context_tokens: int, seed: int) -> Prompt:
    room = context_tokens - tokens_of(prompt) - estimate_tokens(_HEAD + _TAIL)
    last = max((place for place, message in enumerate(prompt.messages) if message.role == "user"), default=None)
    messages = list(prompt.messages)
    if last is not None and room >= _SHORTEST_NOTES:
        first, _, rest = filler(seed, f"{prompt.kind}:{prompt.id}", room).partition("\n")
        text = f"{first}\n{_HEAD}{rest}{_TAIL}{messages[last].content}"
        messages[last] = Message(role="user", content=text)
    kind = kind_name(prompt.kind, context_tokens)
    return Prompt(id=f"{prompt.id}@{context_tokens}", kind=kind, messages=messages, max_tokens=prompt.max_tokens)
