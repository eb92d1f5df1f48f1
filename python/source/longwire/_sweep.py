"""Sweeps on several machines: the tasks of a sweep, and what computes them.

Every task is self-contained bytes, and so are its outcomes. The seed of a run follows from the point and the number of the run,
and the outcomes are put together by point and run: the result does not depend on who computes what, in which order, or how often.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterator
from typing import Any, Protocol

from ._error import Error
from ._longwire import TaskList, play
from ._progress import Report

_TASKS_PER_PLACE = 2
"""Tasks that are under way for each place that computes one at a time: one computes, the next waits beside it."""


def play_task(task: bytes) -> bytes:
    """Compute a task; a function of Python, which every kind of worker can be sent."""
    return play(task)


class Lost(Exception):
    """A worker ended before its task was done, which says nothing about the task."""


class Workers(Protocol):
    """Workers of one kind."""

    def places(self) -> int:
        """Return the number of tasks that are computed at a time; it may change."""

    def submit(self, task: bytes) -> Any:
        """Begin a task, and return a handle that has a hash."""

    def finished(self, handles: list[Any]) -> list[Any]:
        """Wait until at least one of the handles is finished, and return those."""

    def outcomes(self, handle: Any) -> bytes:
        """Return the outcomes of a finished task.

        Raises Lost if its worker ended, and the exception of the task if that failed.
        """

    def cancel(self, handles: list[Any]) -> None:
        """Give up tasks whose outcomes nobody needs any more."""


def compute(tasks: TaskList, workers: Workers, retries: int, report: Report | None) -> None:
    """Compute all tasks. A task whose worker ended is tried again, `retries` times at most."""
    waiting: Iterator[int] = iter(range(len(tasks)))
    left = [retries] * len(tasks)
    under_way: dict[Any, int] = {}
    try:
        while True:
            # Back-pressure: neither tasks nor outcomes pile up, however many there are.
            room = max(workers.places(), 1) * _TASKS_PER_PLACE - len(under_way)
            for _, number in zip(range(room), waiting):
                under_way[workers.submit(tasks[number])] = number
            if not under_way:
                return
            for handle in workers.finished(list(under_way)):
                number = under_way.pop(handle)
                try:
                    tasks.add(number, workers.outcomes(handle))
                except Lost as lost:
                    if left[number] == 0:
                        raise Error(
                            f"task {number} was lost with its worker {retries + 1} times: {lost}",
                            "look for the end of the workers in their logs; perhaps their memory is too small for a run",
                        ) from lost
                    left[number] -= 1
                    under_way[workers.submit(tasks[number])] = number
            if report is not None:
                report(tasks.done, len(tasks))
    finally:
        workers.cancel(list(under_way))


def workers_of(on: Any) -> Workers:
    """Return the workers behind a Dask client, the module of Ray, or an executor."""
    if isinstance(on, concurrent.futures.Executor):
        return ExecutorWorkers(on)
    if hasattr(on, "scheduler_info") and hasattr(on, "submit"):
        return DaskWorkers(on)
    if getattr(on, "__name__", None) == "ray":
        return RayWorkers(on)
    raise Error(
        f"a {type(on).__name__} computes no tasks",
        "use a dask.distributed.Client, the module ray, or an executor of concurrent.futures",
    )


class DaskWorkers:
    """Workers of a Dask cluster."""

    def __init__(self, client: Any) -> None:
        if client.asynchronous:
            raise Error("the Dask client is asynchronous", "use a client without asynchronous=True")
        self._client = client

    def places(self) -> int:
        return sum(self._client.nthreads().values())

    def submit(self, task: bytes) -> Any:
        # Pure would make one task of two that are equal.
        return self._client.submit(play_task, task, pure=False)

    def finished(self, handles: list[Any]) -> list[Any]:
        from distributed import CancelledError, wait

        try:
            return list(wait(handles, return_when="FIRST_COMPLETED").done)
        except CancelledError:
            # Somebody else has cancelled a task, or the scheduler has been restarted.
            cancelled = [handle for handle in handles if handle.cancelled()]
            if not cancelled:
                raise
            return cancelled

    def outcomes(self, handle: Any) -> bytes:
        from distributed import CancelledError, KilledWorker
        from distributed.comm import CommClosedError

        try:
            return handle.result()
        except (KilledWorker, CancelledError, CommClosedError) as error:
            raise Lost(str(error)) from error

    def cancel(self, handles: list[Any]) -> None:
        if handles:
            self._client.cancel(handles, force=True)


class RayWorkers:
    """Workers of a Ray cluster, each task with one processor."""

    def __init__(self, ray: Any) -> None:
        if not ray.is_initialized():
            raise Error("Ray has not been started", "call ray.init() first")
        self._ray = ray
        # Lost tasks are counted here, and not twice.
        self._play = ray.remote(num_cpus=1, max_retries=0)(play_task)
        names = ["WorkerCrashedError", "ObjectLostError", "NodeDiedError", "OutOfMemoryError", "LocalRayletDiedError"]
        # Not every version of Ray has all of them.
        found = [getattr(ray.exceptions, name, None) for name in names]
        self._losses = tuple(loss for loss in found if loss is not None)

    def places(self) -> int:
        return int(self._ray.cluster_resources().get("CPU", 1))

    def submit(self, task: bytes) -> Any:
        return self._play.remote(task)

    def finished(self, handles: list[Any]) -> list[Any]:
        return self._ray.wait(handles, num_returns=1)[0]

    def outcomes(self, handle: Any) -> bytes:
        try:
            return self._ray.get(handle)
        except self._losses as error:
            raise Lost(str(error)) from error
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from error

    def cancel(self, handles: list[Any]) -> None:
        for handle in handles:
            self._ray.cancel(handle, force=True)


class ExecutorWorkers:
    """Workers of an executor, which ends with the first worker that does: nothing is lost alone."""

    def __init__(self, executor: concurrent.futures.Executor) -> None:
        self._executor = executor

    def places(self) -> int:
        return getattr(self._executor, "_max_workers", None) or 1

    def submit(self, task: bytes) -> Any:
        try:
            return self._executor.submit(play_task, task)
        except concurrent.futures.BrokenExecutor as error:
            raise _broken(error) from error

    def finished(self, handles: list[Any]) -> list[Any]:
        done, _ = concurrent.futures.wait(handles, return_when=concurrent.futures.FIRST_COMPLETED)
        return list(done)

    def outcomes(self, handle: Any) -> bytes:
        try:
            return handle.result()
        except concurrent.futures.BrokenExecutor as error:
            raise _broken(error) from error

    def cancel(self, handles: list[Any]) -> None:
        for handle in handles:
            handle.cancel()


def _broken(error: concurrent.futures.BrokenExecutor) -> Error:
    return Error(
        f"a worker of the executor ended, and the executor with it: {error}",
        "look for the end of the worker in its log; perhaps its memory is too small for a run",
    )
