"""Experiments with protocols over links that are slow, lossy or intermittent.

Everything runs in virtual time, and the same seed gives the same bytes on every machine. Results have Arrow tables, which pyarrow,
pandas and polars take without a copy, and a page that a notebook shows.

>>> import longwire
>>> scenario = {
...     "protocol": "ltp/tuned",
...     "workload": {"bytes": 50_000},
...     "channel": [{"between": ["tx", "rx"], "profile": "cislunar", "ber": 1e-6}],
... }
>>> result = longwire.run(scenario, runs=3, seed=7)
>>> result.answer
'scenario: 1 point, 3 runs, 3 complete.'
>>> [round(seconds, 2) for seconds in result.runs["transfer_s"].to_list()]
[4.88, 4.88, 6.6]

A scenario or a link is the path of a file, or a dictionary with its keys. Errors that the caller can correct are `longwire.Error`, with
a hint. Ctrl-C ends a computation between two runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

from . import _longwire
from ._error import Error
from ._longwire import Column, Result, Table, __version__
from ._progress import Progress, Report, report as _report
from ._sweep import compute as _compute, workers_of as _workers_of

Path = Union[str, "os.PathLike[str]"]
"""Path of a file."""

Keys = Mapping[str, Any]
"""Keys of a file with their values: numbers, texts, lists and mappings, also of NumPy."""

__all__ = [
    "Column",
    "Error",
    "Progress",
    "Report",
    "Result",
    "Table",
    "__version__",
    "compare",
    "links",
    "model",
    "paper",
    "papers",
    "run",
    "sweep",
]


def run(
    scenario: Path | Keys,
    *,
    grid: Mapping[str, Iterable[Any]] | None = None,
    runs: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    traces: bool = False,
    name: str = "scenario",
    progress: Progress = None,
) -> Result:
    """Run a scenario with its sweeps, as `longwire run` does.

    scenario: file, or dictionary with the keys of such a file; `name` is then its name on the page.
    grid: further sweeps, dotted keys with their values.
    runs: runs of each point with different seeds; those of the scenario by default.
    seed: seed of the random numbers of all runs; that of the scenario by default.
    threads: number of threads, which does not change the result; all processors by default.
    traces: keep packet captures of the first runs, for `Result.write_traces`.
    progress: True for a line on standard error, or a function that gets the completed and the total number of runs.

    >>> import longwire
    >>> link = {"between": ["tx", "rx"], "profile": "cislunar", "ber": 0}
    >>> scenario = {"protocol": "tcpcl4/tuned", "workload": {"bytes": 1000}, "channel": [link]}
    >>> result = longwire.run(scenario, grid={"channel.delay-ms": [5, 1280]}, runs=1)
    >>> [(row["delay_ms"], row["delivered"]) for row in result.runs.rows()]
    [(5, 1.0), (1280, 1.0)]
    """
    return _longwire.run(
        _dictionary(scenario), name, _grid(grid), runs, seed, threads, traces, _report(progress)
    )


def sweep(
    scenario: Path | Keys,
    grid: Mapping[str, Iterable[Any]],
    *,
    runs: int | None = None,
    seed: int | None = None,
    on: Any = None,
    runs_per_task: int | None = None,
    retries: int = 3,
    threads: int | None = None,
    name: str = "scenario",
    progress: Progress = None,
) -> Result:
    """Run a scenario at all points of a grid, on this machine or on many.

    grid: dotted keys of the scenario, each with its values; the last key varies fastest.
    on: what computes: None for the threads of this process, a `dask.distributed.Client`, the module `ray` after `ray.init()`, or an
        executor of `concurrent.futures`. The workers need the same version of this package, and the files that the scenario names,
        at the same paths.
    runs_per_task: runs of a point in one task; all of them by default.
    retries: number of times that a task is tried again whose worker ended. Errors of a task itself are raised at once.
    progress: as in `run`, but with `on` it counts tasks.

    The result is that of one machine byte for byte, whatever computes it.

    >>> import longwire
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> scenario = {"workload": {"bytes": 9_000}, "channel": [{"between": ["tx", "rx"], "profile": "cislunar"}]}
    >>> grid = {"channel.ber": [0, 1e-6], "protocol": ["ltp/tuned", "tcpcl4/tuned"]}
    >>> here = longwire.sweep(scenario, grid, runs=2)
    >>> with ThreadPoolExecutor(2) as workers:
    ...     there = longwire.sweep(scenario, grid, runs=2, on=workers, runs_per_task=1)
    >>> here.json() == there.json() and here.runs_csv() == there.runs_csv() and here.html() == there.html()
    True
    >>> len(here.runs), here.runs.column_names[:6]
    (8, ['protocol', 'settings', 'ber', 'param_protocol', 'run', 'seed'])
    """
    if on is None:
        return run(scenario, grid=grid, runs=runs, seed=seed, threads=threads, name=name, progress=progress)
    workers = _workers_of(on)
    tasks = _longwire.TaskList(_dictionary(scenario), name, _grid(grid), runs, seed, runs_per_task)
    _compute(tasks, workers, retries, _report(progress, "tasks"))
    return tasks.result()


def compare(
    link: Path | Keys,
    files: Path | Sequence[Path],
    *,
    runs: int | None = None,
    seed: int = 1,
    receivers: int = 1,
    threads: int | None = None,
    traces: bool = False,
    name: str = "link",
    progress: Progress = None,
) -> Result:
    """Compare protocols and settings for transferring files over a link, as `longwire compare` does.

    link: name of a built-in link (see `links`), file of a profile, or dictionary with its keys; `name` is then its name on the page.
    files: files to transfer, all in every run.
    runs: runs of each protocol; as many as fit in about a minute by default.
    receivers: number of receivers on the channel, each of which gets all files.

    >>> import longwire
    >>> import pathlib, tempfile
    >>> letter = pathlib.Path(tempfile.mkdtemp(), "letter.txt")
    >>> _ = letter.write_text("Nothing accepted is ever lost.")
    >>> result = longwire.compare("lan", letter, runs=2)
    >>> result.ranking["rank"].to_list()[0], result.ranking["delivered"].to_list()[0]
    (1, 2)
    """
    given = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    return _longwire.compare(
        _dictionary(link), name, given, runs, seed, receivers, threads, traces, _report(progress)
    )


def paper(
    name: str,
    *,
    runs: int | None = None,
    seed: int = 1,
    threads: int | None = None,
    thin: bool = False,
    traces: bool = False,
    progress: Progress = None,
) -> Result:
    """Reproduce a published evaluation and compare its figures with ours, as `longwire paper` does.

    runs: runs of each case; the usual number of the paper by default.
    thin: only a part of the cases, to see the page soon; its figures have little meaning.

    >>> import longwire
    >>> result = longwire.paper("dtn-ax25", runs=1, thin=True)
    >>> result.title
    'Bundles over connected-mode AX.25: a published evaluation, reproduced'
    """
    return _longwire.reproduce(name, runs, seed, threads, thin, traces, _report(progress))


def model(
    preset: str = "ronan-2011",
    *,
    rates: Sequence[float] = (1200, 9600),
    bytes: int = 7182,
    file: Path | None = None,
    **changes: Any,
) -> Result:
    """Compute the throughput of connected-mode AX.25 in closed form, as `longwire model ax25` does.

    preset: `ronan-2011`, `zielinski`, `zielinski-t2` or `direwolf`.
    rates: channel rates, bit/s.
    bytes, file: length of the file, or a file to take it from.
    changes: parameters that differ from the preset, named as the options of the command with underscores; times are texts with a
        unit.

    >>> import longwire
    >>> result = longwire.model("direwolf", rates=[1200], txdelay="300ms", duplex="full")
    >>> rows = [row for row in result.records.rows() if row["metric"] == "goodput_bit_per_s"]
    >>> [(row["window"], round(row["mean"])) for row in rows][:2]
    [(1, 767), (2, 1059)]
    """
    return _longwire.model(preset, [float(rate) for rate in rates], bytes, file, changes)


def papers() -> dict[str, str]:
    """Return the names of all papers, each with its subject.

    >>> import longwire
    >>> "cislunar" in longwire.papers()
    True
    """
    return dict(_longwire.papers())


def links() -> list[str]:
    """Return the names of the built-in links.

    >>> import longwire
    >>> longwire.links()[:2]
    ['airborne-5m', 'ax25-1200']
    """
    return _longwire.links()


def _dictionary(given: Path | Keys) -> Any:
    """Return a mapping as a dictionary, anything else as it is."""
    return dict(given) if isinstance(given, Mapping) else given


def _grid(grid: Mapping[str, Iterable[Any]] | None) -> dict[str, list[Any]] | None:
    """Return a grid with lists, whatever its values are in."""
    if grid is None:
        return None
    is_list = lambda values: isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping))  # noqa: E731
    return {key: list(values) if is_list(values) else values for key, values in grid.items()}
