"""Errors that the user can correct."""

from __future__ import annotations


class Error(Exception):
    """Something that the caller can correct: what happened, and a hint.

    >>> import longwire
    >>> try:
    ...     longwire.paper("cislunr")
    ... except longwire.Error as error:
    ...     print(error.hint)
    did you mean `cislunar`?
    """

    what: str
    """Description of the error."""
    hint: str | None
    """Advice on what to do; None if there is none."""

    def __init__(self, what: str, hint: str | None = None) -> None:
        super().__init__(what, hint)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return self.what if self.hint is None else f"{self.what}\nhint: {self.hint}"
