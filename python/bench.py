"""Figures of sweeps: what a Dask cluster costs beside the threads of one process.

Run it in an environment with the package, built with --release, and Dask: python python/bench.py [WORKERS] [SECONDS]
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import longwire

SCENARIO = {
    "protocol": "tcpcl4/tuned",
    "workload": {"bytes": 1_000_000},
    "channel": [{"between": ["tx", "rx"], "profile": "cislunar", "ber": 1e-6}],
}


def timed(**arguments: Any) -> tuple[float, longwire.Result]:
    """Return the duration of a sweep, seconds, and its result."""
    began = time.perf_counter()
    result = longwire.sweep(SCENARIO, **arguments)
    return time.perf_counter() - began, result


def main() -> None:
    """Print the figures."""
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else os.cpu_count() or 1
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    # Every point has the same work: the key that is swept changes nothing.
    probe, _ = timed(grid={"title": ["probe"]}, runs=16, threads=1)
    runs = max(1, round(16 * seconds / probe))
    grid = {"title": [f"point {number}" for number in range(20 * workers)]}
    tasks = len(grid["title"])
    print(f"{tasks} tasks of {runs} runs, about {seconds:.1f} s each, on {workers} workers")
    alone, here = timed(grid=grid, runs=runs, threads=workers)
    print(f"threads of one process   {alone:8.1f} s   {tasks * runs / alone:8.1f} runs/s")

    from dask.distributed import Client

    with Client(n_workers=workers, threads_per_worker=1, dashboard_address=None) as client:
        # Imports and connections of the workers.
        timed(grid={"title": [f"warm-up {number}" for number in range(workers)]}, runs=1, on=client)
        there, result = timed(grid=grid, runs=runs, on=client)
        print(f"Dask                     {there:8.1f} s   {tasks * runs / there:8.1f} runs/s")
        print(f"overhead of Dask         {100 * (there / alone - 1):8.1f} %")
        many = {"title": [f"point {number}" for number in range(1000)]}
        small = {"workload.bytes": [100], **many}
        cost, _ = timed(grid=small, runs=1, on=client)
        bare, _ = timed(grid=small, runs=1, threads=workers)
        print(f"cost of a task           {1000 * (cost - bare) * workers / 1000:8.2f} ms of a worker, from 1000 tasks of one short run")
    assert result.json() == here.json() and result.html() == here.html(), "the bytes differ"
    print("the results are equal byte for byte")


if __name__ == "__main__":
    main()
