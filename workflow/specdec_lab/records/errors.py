"""The one error a user can cause: what happened, where, and how to mend it."""

from __future__ import annotations


class UserError(Exception):
    """Cause, place and fix of something the user can mend. The command line prints the three and exits with 1.

    Give `code` where a machine may want to tell one error from another.
    """

    def __init__(self, cause: str, *, place: str = "", fix: str = "", code: str = "error") -> None:
        super().__init__(cause)
        self.cause = cause
        self.place = place
        self.fix = fix
        self.code = code

    def __str__(self) -> str:
        lines = [self.cause]
        if self.place:
            lines.append(f"  where: {self.place}")
        if self.fix:
            lines.append(f"  fix:   {self.fix}")
        return "\n".join(lines)
