"""Trials draw every parameter and are repeated by what they print; what becomes of some is known."""

from __future__ import annotations

import shlex
from dataclasses import replace
from itertools import islice

from strategies.registry import find
from tests.attack.outcome import Verdict
from tests.attack.schedules import Trial, outcome, programs, schedules

SMALL = Trial(
    "tests/attack/programs.rise", "chain", {"m": 16, "n": 16, "k": 16}, "tensor_core",
    {"block": (16, 16, 16), "warp": (16, 16), "fragment": (16, 8, 16)}, "sm_80", 0, emulate=False,
)  # fmt: skip


def test_every_parameter_and_every_program_is_drawn() -> None:
    trials = list(islice(schedules(1), 600))
    drawn = {name for trial in trials for name in trial.parameters}
    assert drawn == {setting.name for setting in find("tensor_core").settings}
    assert {(trial.file, trial.name) for trial in trials} == set(programs())


def test_a_seed_gives_the_same_trials_and_a_command_line_the_same_parameters() -> None:
    settings = {setting.name: setting for setting in find("tensor_core").settings}
    for one, other in zip(islice(schedules(2), 20), islice(schedules(2), 20), strict=True):
        assert one == other
        words = shlex.split(one.command())
        given = words[words.index("--set") + 1 : words.index("--target")]
        pairs = (word.split("=", 1) for word in given)
        assert {name: settings[name].read(text) for name, text in pairs} == one.parameters


def test_what_becomes_of_some() -> None:
    chain = outcome(SMALL)
    assert chain.code == "R0606" and "a chain of two products" in chain.detail
    odd = replace(SMALL, name="both", parameters={**SMALL.parameters, "vector": 3})
    assert outcome(odd).code == "R0609"
    ring = {
        "block": (64, 8, 16),
        "warp": (64, 8),
        "fragment": (64, 8, 16),
        "warp_specialised": True,
        "stages": 1,
    }
    alone = outcome(replace(SMALL, name="both", parameters=ring))
    assert alone.verdict is Verdict.REFUSED and "stages is 1" in alone.detail
    wide = {"block": (32, 16, 16), "warp": (32, 8), "fragment": (32, 8, 16)}
    narrow = outcome(replace(SMALL, file="examples/gemm.rise", name="matmul", parameters=wide))
    assert narrow.code == "R0606" and "no multiples of 32 bytes" in narrow.detail
    paired = {**SMALL.parameters, "epilogue": "direct"}
    assert outcome(replace(SMALL, name="pairs", parameters=paired)).verdict is Verdict.RIGHT
