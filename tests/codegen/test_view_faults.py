"""Faults seeded into the translation of views and loops: the programs of test_translations notice each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import pytest

from codegen import pipeline
from codegen.cuda import scalars
from codegen.execute import available_backend
from codegen.ir import imperative as i
from codegen.ir import scalar_temporaries
from codegen.ir.launch import number
from codegen.lower import paths
from codegen.lower.primitives import arrays, levels
from codegen.lower.translate import ACCEPTING, CONTINUING
from codegen.lower.views import READING, WRITING, Choice
from codegen.pipeline import generate
from rise.errors import RiseError
from rise.nat import constant, nat
from tests.support.kernels import agrees
from tests.support.programs import program
from tests.support.translations import PROGRAMS

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Fault:
    name: str
    shown_by: str
    patch: Patch


def read(name: str, change: Callable[[Any, Any, Any], Any]) -> Patch:
    """Another way of reading through a view: `change` gets sizes, path and what is right."""
    right = READING[name]
    return lambda patch: patch.setitem(READING, name, lambda s, p: change(s, p, right(s, p)))


def write(name: str, change: Callable[[Any, Any, int], Any]) -> Patch:
    return lambda patch: patch.setitem(WRITING, name, change)


def exchanged(_: Any, __: Any, choice: Any) -> Any:
    """The two sides of a comparison."""
    return replace(choice, first=choice.second, second=choice.first) if isinstance(choice, Choice) else choice


def later(_: Any, __: Any, choice: Any) -> Any:
    """One element more on the first side."""
    return replace(choice, bound=nat(choice.bound) + 1) if isinstance(choice, Choice) else choice


def shifted(by: int) -> Callable[[Any, Any, Any], Any]:
    """The second operand's index, moved."""

    def change(_: Any, __: Any, choice: Any) -> Any:
        number, (index, *rest) = choice.second
        return replace(choice, second=(number, (nat(index) + by, *rest)))

    return change


def unclamped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(paths.Resolver, "_clamped", lambda self, index, size, facts: index)


def only_at_one_end(name: str) -> Patch:
    """Clamped by max, or by min, alone."""
    original = scalar_temporaries.ScalarTemporaries.index

    def index(self: Any, value: Any, size: Any = None) -> Any:
        def without(operator: Any) -> Any:
            return operator.operands[0] if operator.name == name else operator

        return original(self, i.rebuild(value, i.Operator, without), size)

    return lambda patch: patch.setattr(scalar_temporaries.ScalarTemporaries, "index", index)


def without_guards(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scalar_temporaries.ScalarTemporaries, "under", lambda *_: nullcontext())


def always_less(patch: pytest.MonkeyPatch) -> None:
    """What holds where a comparison holds is assumed where it fails."""
    patch.setattr(paths, "assuming_not_less", scalar_temporaries.assuming_less)


def one_for_all(patch: pytest.MonkeyPatch) -> None:
    """All indices in one variable: that of the first of them."""
    original = scalar_temporaries.ScalarTemporaries.scalar
    first: dict[str, Any] = {}

    def scalar(self: Any, stem: str, value: Any, total: bool = False) -> Any:
        return first.setdefault(stem, original(self, stem, value, total))

    patch.setattr(scalar_temporaries.ScalarTemporaries, "scalar", scalar)


def accumulated_before(patch: pytest.MonkeyPatch) -> None:
    """A scan that stores its accumulator before the element is added."""
    original = levels.scan

    def scan(*given: Any) -> i.Command:
        def turned(loop: i.For) -> i.For:
            if isinstance(loop.body, i.Sequence) and loop.label == "scanSeq":
                return replace(loop, body=i.Sequence(tuple(reversed(loop.body.commands))))
            return loop

        return i.rebuild(original(*given), i.For, turned)

    patch.setitem(ACCEPTING, "scanSeq", scan)


def turns(change: Callable[[int], int]) -> Patch:
    """Another number of turns."""
    return lambda patch: patch.setattr(arrays, "number", lambda *given: change(number(*given)))


def same_size(patch: pytest.MonkeyPatch) -> None:
    """Every turn has the size of the last one."""
    original = arrays.at_size
    patch.setattr(arrays, "at_size", lambda function, size, call: original(function, call.nat("m"), call))


def not_replaced(patch: pytest.MonkeyPatch) -> None:
    """What a turn wrote is not what the next one reads."""
    original = arrays.write_iterated

    def iterated(*given: Any) -> i.Command:
        def first(loop: i.For) -> i.For:
            body = loop.body
            one = isinstance(body, i.Sequence) and loop.label == "iterate"
            return replace(loop, body=body.commands[0]) if one else loop  # type: ignore[union-attr]

        return i.rebuild(original(*given), i.For, first)

    patch.setitem(ACCEPTING, "iterate", iterated)


def unchanged(patch: pytest.MonkeyPatch) -> None:
    """The pair as it was."""
    patch.setitem(
        CONTINUING,
        "mapFst",
        lambda translator, call, then: translator.continue_with(call.arguments[1], then, call.environment),
    )


def as_wide_as_int(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scalars, "WRAPPING", {})


FAULTS = [
    Fault("concat reads the second array first", "concat, read", read("concat", exchanged)),
    Fault("concat takes one element too many of the first", "concat, read", read("concat", later)),
    Fault("concat reads the second one too far", "concat, read", read("concat", shifted(1))),
    Fault("concat writes both to the front", "concat, written", write("concat", lambda s, p, _: p)),
    Fault("padCst pads one too few", "padCst of a value",
          read("padCst", lambda s, p, c: replace(c, bound=nat(c.bound) - 1))),
    Fault("padCst pads one too many", "padCst of a value", read("padCst", later)),
    Fault("padCst takes the array's end for the value", "padCst before, padClamp after transposing",
          read("padCst", lambda s, p, c: replace(c, second=later(s, p, c.second)))),
    Fault("nothing is clamped", "padClamp", unclamped),
    Fault("clamped from above only", "padClamp, left only", only_at_one_end("max")),
    Fault("clamped from below only", "padClamp, right only", only_at_one_end("min")),
    Fault("padClamp forgets what it adds in front", "padClamp",
          read("padClamp", lambda s, p, _: (0, (s.clamped(nat(p[0]), s["n"] + 1), *p[1:])))),
    Fault("gather reads where the index stands", "gather", read("gather", lambda s, p, _: (1, p))),
    Fault("gather reads the first index only", "gather",
          read("gather", lambda s, p, _: (1, (s.element(0, (constant(0),)), *p[1:])))),
    Fault("idx reads the first element", "an index from data",
          read("idx", lambda s, p, _: (1, (constant(0), *p)))),
    Fault("indices are read where there are none", "gather, padded: no index is read that there is not",
          without_guards),
    Fault("what is assumed is exchanged", "padClamp, then padCst", always_less),
    Fault("indices are stored once for all", "gather by gathered indices", one_for_all),
    Fault("scatter writes in order", "scatter", write("scatter", lambda s, p, _: p)),
    Fault("makeArray reads the next", "makeArray, read by a loop",
          read("makeArray", lambda s, p, c: later(s, p, c))),
    Fault("makeArray exchanges its halves", "makeArray of arrays", read("makeArray", exchanged)),
    Fault("makeArray writes all to the first place", "makeArray, written",
          write("makeArray", lambda _, p, __: (constant(0), *p))),
    Fault("reorder reads by the inverse", "reorder, read",
          read("reorder", lambda s, p, _: (0, (s.function("finv")(p[0]), *p[1:])))),
    Fault("padEmpty writes one further", "padEmpty, written",
          write("padEmpty", lambda _, p, __: (nat(p[0]) + 1, *p[1:]))),
    Fault("a scan stores too early", "scanSeq", accumulated_before),
    Fault("one turn too few", "iterate, many turns of one size", turns(lambda n: n - 1)),
    Fault("all turns of one size", "iterate, each turn shorter", same_size),
    Fault("turns do not follow each other", "iterate, many turns of one size", not_replaced),
    Fault("mapFst changes nothing", "mapFst and mapSnd, read", unchanged),
    Fault("narrow numbers do not wrap", "narrow numbers wrap", as_wide_as_int),
]  # fmt: skip


def outcome(shown_by: str) -> str:
    """How the kernel fares: `right`, or the way in which it is noticed to be faulty."""
    meaning = program(PROGRAMS[shown_by])
    try:
        kernel = generate(meaning, "f")
        return "right" if all(agrees(kernel, meaning, seed) for seed in (0, 1)) else "wrong"
    except (RiseError, ValueError, AttributeError) as error:
        return type(error).__name__


@pytest.mark.skipif(available_backend() is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_seeded_fault_is_noticed(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.patch(monkeypatch)
    monkeypatch.setattr(pipeline, "_LATEST", [])  # kernels made without the fault
    assert outcome(fault.shown_by) in ("wrong", "EmulationError", "TranslationError", "CompilationError")
