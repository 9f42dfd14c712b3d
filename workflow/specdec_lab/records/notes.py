"""Remarks that a row of a cell can carry on its counts, in words; the client writes them, judging tells them."""

from __future__ import annotations

COUNTS: dict[str, str] = {
    "usage_contradicts": "the server's count fell, or was 0 although a text came: no count is taken from it",
    "usage_above_cap": "the server counted more tokens than the request allowed: no count is taken from it",
    "usage_below_chunks": "the server counted fewer tokens than chunks with text came, though each holds one at least: "
    "no count is taken from it, unless they differ by a tenth at most",
    "usage_parts_differ": "the server's total is not its prompt and completion tokens, or it counted more tokens of "
    "thought than tokens: no count is taken from it",
    "chunk_tokens_contradict": "the tokens told with the chunks do not add up to the server's count, or a chunk with "
    "text brought none: the decode rate rests on the count, and there is none if they differ by more than a tenth",
    "thoughts_unseen": "the server counted tokens of thought and none came, so it is not known when they were made: no "
    "decode rate",
}
"""Remarks on counts that contradict something. A row with one of them has no exact decode rate."""
