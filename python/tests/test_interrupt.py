"""Ctrl-C, and the lock of the interpreter."""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
import threading

import pytest

import longwire

# Takes longer than any machine needs to notice a signal.
MANY = 100_000


@pytest.fixture
def heeds_ctrl_c():
    """A process that a script has started in the background ignores the signal, unless it says otherwise."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_ends_a_computation_between_runs(scenario, heeds_ctrl_c):
    def interrupt(done, total):
        if done > 0:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        longwire.run(scenario, runs=MANY, progress=interrupt)
    # A grid of one round, too, and the process goes on.
    grid = {"workload.bytes": range(1_000, 9_000)}
    with pytest.raises(KeyboardInterrupt):
        longwire.run(scenario, grid=grid, runs=1, progress=interrupt)
    assert len(longwire.run(scenario, runs=2).runs) == 2


def test_a_process_ends_with_its_main_thread_although_a_run_is_under_way(scenario, heeds_ctrl_c):
    program = f"""
import os, signal, longwire
def interrupt(done, total):
    os.kill(os.getpid(), signal.SIGINT)
try:
    longwire.run({scenario!r}, runs={MANY}, progress=interrupt)
except KeyboardInterrupt:
    print("interrupted")
"""
    words = [sys.executable, "-c", program]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout) == (0, "interrupted\n"), ended


def test_other_threads_run_meanwhile(scenario, heeds_ctrl_c):
    """Another thread of Python, which needs several turns, ends a computation that would take very long. There is no progress report
    that would release the lock."""
    begun, ended = threading.Event(), threading.Event()

    def end():
        begun.wait()
        for _ in range(10):
            ended.wait(0.01)
        if not ended.is_set():
            _thread.interrupt_main()

    thread = threading.Thread(target=end)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            begun.set()
            longwire.run(scenario, runs=MANY)
    finally:
        ended.set()
        thread.join()


def test_several_threads_compute_at_once(scenario):
    results = [None, None]

    def compute(at):
        results[at] = longwire.run(scenario, runs=3, seed=at).json()

    threads = [threading.Thread(target=compute, args=(at,)) for at in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [longwire.run(scenario, runs=3, seed=at).json() for at in range(2)]
