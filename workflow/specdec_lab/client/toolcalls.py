"""Tool calls of a stream: pieces of names and arguments become one text, as exact as the answer's (M5, case A3).

A model that calls a tool may answer nothing else, so two modes may differ in their calls alone. Names and arguments are
the model's own words and are kept as they came; a call's id is drawn at random by the server and is not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class CallPiece:
    """What one chunk says of one call: `index` and `id` tell to which call it belongs, None when it does not say."""

    index: int | None
    id: str | None
    name: str
    arguments: str


def pieces(delta: dict[str, Any]) -> tuple[CallPiece, ...]:
    """The pieces of calls in a delta: `tool_calls`, or `function_call` as servers sent it before there were several."""
    calls = delta.get("tool_calls")
    if isinstance(calls, list) and calls:
        return tuple(_piece(call) for call in calls if isinstance(call, dict))
    old = delta.get("function_call")
    return (_piece({"index": 0, "function": old}),) if isinstance(old, dict) else ()


def _piece(call: dict[str, Any]) -> CallPiece:
    said = call.get("function") or call.get("custom")
    said = said if isinstance(said, dict) else {}
    index, number = call.get("index"), call.get("id")
    return CallPiece(
        index=index if isinstance(index, int) and not isinstance(index, bool) else None,
        id=number if isinstance(number, str) and number else None,
        name=_text(said.get("name")),
        arguments=_text(said.get("arguments", said.get("input"))),
    )


def _text(value: Any) -> str:
    """The words of a field; a server that sends arguments as an object and not as text gives that object's JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


@dataclass(slots=True)
class _Call:
    index: int | None
    id: str | None
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ToolCalls:
    """The calls of one answer, put together piece by piece, in the order in which they began."""

    _calls: list[_Call] = field(default_factory=list)

    def take(self, piece: CallPiece) -> None:
        """Add a piece to its call, or begin a new one."""
        call = self._call_of(piece)
        if call is None:
            call = _Call(piece.index, piece.id)
            self._calls.append(call)
        if call.id is None:
            call.id = piece.id
        # Some servers repeat the whole name with every piece of the arguments.
        if piece.name != call.name:
            call.name += piece.name
        call.arguments.append(piece.arguments)

    def _call_of(self, piece: CallPiece) -> _Call | None:
        """The call that a piece goes on with; None if it begins one.

        Another id is another call, whatever its index: some servers give every call the index 0.
        """
        for call in reversed(self._calls):
            if piece.id is not None and call.id is not None:
                if piece.id == call.id:
                    return call
            elif piece.index is not None:
                if piece.index == call.index:
                    return call
            elif not piece.name or piece.name == call.name:
                return call
        return None

    def parts(self) -> list[str]:
        """The text of all calls in parts: a line per call, its name, a space, its arguments; empty without a call.

        Nothing closes a line, so that a call that was cut off is the beginning of the whole one.
        """
        out: list[str] = []
        for call in self._calls:
            out += ["\n" if out else "", call.name, " ", *call.arguments]
        return out
