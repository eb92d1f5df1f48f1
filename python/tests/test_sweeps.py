"""Sweeps on several workers: the bytes of one process, whoever computes them and whoever dies."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import signal

import pytest

import longwire
from conftest import everything
from longwire import _sweep


class Killer:
    """Progress that kills a process once, when the first task is done and others are under way."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.done_at_death: int | None = None

    def __call__(self, done: int, total: int) -> None:
        if self.done_at_death is None and done > 0:
            self.done_at_death = done
            os.kill(self._pid, signal.SIGKILL)


@pytest.fixture
def here(scenario, grid):
    """The sweep in this process."""
    return everything(longwire.sweep(scenario, grid, runs=20, seed=5))


@pytest.fixture(params=[2, 4])
def dask(request):
    distributed = pytest.importorskip("distributed")
    import dask

    patient = {
        "distributed.comm.timeouts.connect": "300s",
        "distributed.comm.timeouts.tcp": "300s",
        "distributed.scheduler.worker-ttl": None,
    }
    with dask.config.set(patient):
        cluster = distributed.LocalCluster(
            n_workers=request.param, threads_per_worker=1, dashboard_address=None, silence_logs=50
        )
        with cluster, distributed.Client(cluster) as client:
            yield client


def test_dask_gives_the_same_bytes_although_a_worker_is_killed(dask, scenario, grid, here):
    killer = Killer(next(iter(dask.run(os.getpid).values())))
    result = longwire.sweep(scenario, grid, runs=20, seed=5, on=dask, runs_per_task=2, progress=killer)
    assert everything(result) == here
    assert killer.done_at_death < 30, "others were left"
    # Points as tasks, on those that are left.
    assert everything(longwire.sweep(scenario, grid, runs=20, seed=5, on=dask)) == here
    # An error of a task arrives as it is, and is not tried again.
    with pytest.raises(longwire.Error, match="no such protocol") as caught:
        longwire.sweep(scenario, {"protocol": ["ltp/tuned", "carrier-pigeon"]}, on=dask)
    assert caught.value.hint is not None


def test_ray_gives_the_same_bytes_although_a_worker_is_killed(scenario, grid, here, monkeypatch):
    # Alone on this machine, and without a file for its token.
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    ray = pytest.importorskip("ray")
    with pytest.raises(longwire.Error, match="Ray has not been started"):
        longwire.sweep(scenario, grid, on=ray)
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR", configure_logging=False)
    try:
        killer = Killer(ray.get(ray.remote(lambda: os.getpid()).remote()))
        result = longwire.sweep(scenario, grid, runs=20, seed=5, on=ray, runs_per_task=2, progress=killer)
        assert everything(result) == here
        assert killer.done_at_death < 30
        with pytest.raises(longwire.Error, match="no such protocol"):
            longwire.sweep(scenario, {"protocol": ["carrier-pigeon"]}, on=ray)
    finally:
        ray.shutdown()


def test_processes_give_the_same_bytes(scenario, grid, here):
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as workers:
        assert everything(longwire.sweep(scenario, grid, runs=20, seed=5, on=workers, runs_per_task=7)) == here


class Unsteady:
    """Workers that lose the first attempts of each task, and finish the latest task first."""

    def __init__(self, losses: int) -> None:
        self.losses = losses
        self.attempts: dict[bytes, int] = {}
        self.most = 0
        self.cancelled = 0
        self.number = 0
        self.tasks: dict[int, bytes] = {}

    def places(self):
        return 3

    def submit(self, task):
        self.number += 1
        self.tasks[self.number] = task
        return self.number

    def finished(self, handles):
        self.most = max(self.most, len(handles))
        return [max(handles)]

    def outcomes(self, handle):
        task = self.tasks[handle]
        self.attempts[task] = self.attempts.get(task, 0) + 1
        if self.attempts[task] <= self.losses:
            raise _sweep.Lost("the power failed")
        return longwire._longwire.play(task)

    def cancel(self, handles):
        self.cancelled += len(handles)


def test_lost_tasks_are_tried_again_and_never_more_are_under_way_than_there_is_room_for(scenario, grid, here):
    tasks = longwire._longwire.TaskList(scenario, "scenario", grid, 20, 5, 2)
    assert len(tasks) == 30
    unsteady = Unsteady(losses=2)
    _sweep.compute(tasks, unsteady, 2, None)
    assert everything(tasks.result()) == here
    assert unsteady.most == 6 and set(unsteady.attempts.values()) == {3} and unsteady.cancelled == 0
    tasks = longwire._longwire.TaskList(scenario, "scenario", grid, 20, 5, 2)
    unsteady = Unsteady(losses=2)
    with pytest.raises(longwire.Error, match="task 5 was lost with its worker 2 times: the power failed"):
        _sweep.compute(tasks, unsteady, 1, None)
    assert unsteady.cancelled == 5, "the others are given up"


def test_a_worker_that_ends_its_executor_is_an_error_with_a_hint(scenario, grid):
    spawn = multiprocessing.get_context("spawn")
    executor = concurrent.futures.ProcessPoolExecutor(2, mp_context=spawn, initializer=os._exit, initargs=(9,))
    with executor, pytest.raises(longwire.Error, match="a worker of the executor ended"):
        longwire.sweep(scenario, grid, runs=2, on=executor)


def test_outcomes_count_once_and_only_for_their_task(scenario, grid, here):
    tasks = longwire._longwire.TaskList(scenario, "scenario", grid, 20, 5, None)
    outcomes = [longwire._longwire.play(tasks[at]) for at in range(3)]
    tasks.add(0, outcomes[0])
    tasks.add(0, outcomes[0])
    assert (tasks.done, len(tasks)) == (1, 3)
    with pytest.raises(ValueError, match="not the outcomes of task 2"):
        tasks.add(2, outcomes[1])
    with pytest.raises(longwire.Error, match="not a complete share"):
        tasks.add(1, outcomes[1][:-1])
    with pytest.raises(longwire.Error, match="1 of 3 tasks are done"):
        tasks.result()
    other = outcomes[1].replace(longwire.__version__.encode(), b"0.0.1", 1)
    with pytest.raises(longwire.Error, match="from longwire 0.0.1, and this is"):
        tasks.add(1, other)
    tasks.add(2, outcomes[2])
    tasks.add(1, outcomes[1])
    assert everything(tasks.result()) == here


def test_files_of_a_scenario_are_found_from_any_folder(tmp_path, monkeypatch, grid):
    (tmp_path / "data").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "scenario.toml").write_text(
        "workload.files = ['data']\n[[channel]]\nbetween = ['tx', 'rx']\nprofile = 'cislunar'\n"
    )
    monkeypatch.chdir(tmp_path)
    tasks = longwire._longwire.TaskList("scenario.toml", "scenario", grid, 2, None, None)
    here = longwire.sweep("scenario.toml", grid, runs=2)
    monkeypatch.chdir("/")
    outcomes = [longwire._longwire.play(tasks[at]) for at in range(len(tasks))]
    monkeypatch.chdir(tmp_path)
    for at, each in enumerate(outcomes):
        tasks.add(at, each)
    assert everything(tasks.result()) == everything(here)


def test_ten_thousand_runs_give_the_same_bytes_on_two_workers():
    """A cheap scenario: a hundred bytes over a line without errors, at a hundred points."""
    scenario = {"protocol": "udp/paced", "workload": {"bytes": 100}, "channel": [{"between": ["tx", "rx"], "profile": "lan"}]}
    grid = {"channel.delay-ms": [float(delay) for delay in range(100)]}
    here = everything(longwire.sweep(scenario, grid, runs=100))
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as workers:
        there = longwire.sweep(scenario, grid, runs=100, on=workers)
    assert everything(there) == here and len(there.runs) == 10_000
