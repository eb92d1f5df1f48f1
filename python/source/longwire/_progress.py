"""Reports of progress: a line on standard error, or a function of the caller."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO, Union

Report = Callable[[int, int], object]
"""Function that gets the number of completed units and the total, as far as it is known."""

Progress = Union[bool, Report, None]
"""True for a line on standard error, a function, or None for neither."""


def report(progress: Progress, unit: str = "runs") -> Report | None:
    """Return the function to call."""
    if progress is True:
        return Line(sys.stderr, unit)
    return progress or None


class Line:
    """Line that shows how far a computation is, how fast, and how long it still takes.

    >>> import io
    >>> out = io.StringIO()
    >>> line = Line(out, "runs", clock=iter([0.0, 2.0, 4.0]).__next__)
    >>> line(50, 200)
    >>> line(200, 200)
    >>> out.getvalue().split("\\r")[1:]
    ['50 of 200 runs, 25 %, 25 runs/s, 6 s left', '200 of 200 runs, 100 %, 50 runs/s        \\n']
    """

    def __init__(self, out: TextIO, unit: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._unit = unit
        self._clock = clock
        self._began = clock()
        self._shown = ""

    def __call__(self, done: int, total: int) -> None:
        rate = done / max(self._clock() - self._began, 1e-3)
        words = f"{done} of {total} {self._unit}, {100 * done // max(total, 1)} %"
        if done:
            words += f", {rate:.{1 if rate < 10 else 0}f} {self._unit}/s"
        if 0 < done < total:
            words += f", {(total - done) / rate:.0f} s left"
        if words != self._shown:
            # Blanks cover the rest of a longer line; clearing a line is not possible in every notebook.
            end = "\n" if done >= total else ""
            print("\r" + words.ljust(len(self._shown)) + end, end="", file=self._out, flush=True)
            self._shown = words
