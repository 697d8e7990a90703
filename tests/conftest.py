"""Profiles of Hypothesis: `HYPOTHESIS_PROFILE=nightly pytest` looks twenty times as far.

Examples are derived from the tests, so that a run can be repeated; what fails is printed with a line
that reproduces it.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from codegen.passes import verify
from rise.depth import deep
from tests.support.nightly import LONG, NIGHTLY, is_left_out

TESTS = Path(__file__).parent

COMMON: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "print_blob": True,
    "suppress_health_check": list(HealthCheck),
}

settings.register_profile("ci", max_examples=100, derandomize=True, **COMMON)
settings.register_profile("nightly", max_examples=2000, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


YOUNG = 1_000_000  # objects that were made since the last collection of garbage


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """CI leaves out some cases of long tests."""
    if NIGHTLY:
        return
    cases: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.originalname in _long_tests(item.path):
            cases.setdefault((str(item.path), item.originalname), []).append(item)
    left_out = {
        item for found in cases.values() for n, item in enumerate(found) if is_left_out(n, len(found))
    }
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))


@cache
def _long_tests(file: Path) -> frozenset[str]:
    return frozenset(LONG.get(file.relative_to(TESTS).as_posix(), "").split())


def pytest_collection_finish() -> None:
    """Modules, rules and the tests themselves stay."""
    gc.disable()
    _collect()


def pytest_runtest_teardown() -> None:
    if gc.get_count()[0] > YOUNG:
        _collect()


def _collect() -> None:
    """What survives is mostly what caches keep: no later collection visits it."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Every test runs with the room for frames that the command line and the library's entry points take."""
    pyfuncitem.obj = deep(pyfuncitem.obj)


@pytest.fixture(autouse=True, scope="session")
def passes_are_verified() -> Iterator[None]:
    """Every kernel that a test makes is checked after every pass."""
    with verify.verifying():
        yield


def pytest_report_header() -> str:
    """The profile, which decides how many examples there are and whether they are new."""
    profile = os.environ.get("HYPOTHESIS_PROFILE", "ci")
    return f"hypothesis profile: {profile} ({settings.get_profile(profile).max_examples} examples a property)"


class Called:
    """One call of the command line: exit status, standard output, messages."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err


@pytest.fixture
def own_rules() -> Iterator[None]:
    """What a user's module declares is gone afterwards: it would be tested as one of ours."""
    from rewrites.library import rules
    from rewrites.rule import COMPUTED, RULES
    from rise.primitives.declare import REGISTRY

    rules()  # imports all of ours
    registries: tuple[dict[Any, Any], ...] = (RULES, COMPUTED, REGISTRY)
    before = [dict(registry) for registry in registries]
    yield
    for registry, content in zip(registries, before, strict=True):
        registry.clear()
        registry.update(content)


@pytest.fixture
def rise(capsys: pytest.CaptureFixture[str]) -> Any:
    """The command line as a function of its arguments."""
    from rise.cli import main

    def call(*arguments: str) -> Called:
        status = main(arguments)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Called(status, captured.out, captured.err)

    return call
