"""What the tests have in common."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def scenario() -> dict[str, Any]:
    """A file over a link with errors, which takes a few milliseconds."""
    return {
        "protocol": "ltp/tuned",
        "workload": {"bytes": 9_000},
        "channel": [{"between": ["tx", "rx"], "profile": "cislunar"}],
    }


@pytest.fixture
def grid() -> dict[str, Any]:
    """Three points of it."""
    return {"channel.ber": [0, 1e-6, 3e-5]}


def everything(result: Any) -> tuple[str, ...]:
    """All bytes of a result."""
    return (result.json(), result.records_csv(), result.runs_csv(), result.html(), result.summary())
