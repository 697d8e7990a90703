"""The table of passes, and the check between them, which notices a pass that breaks a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from codegen import pipeline
from codegen.ir import imperative as i
from codegen.ir.kernel import Kernel
from codegen.ir.launch import Launch
from codegen.passes import verify
from codegen.passes.order import PASSES, STRUCTURE, Pass
from codegen.pipeline import generate
from rise.errors import RiseError
from rise.nat import constant, variable
from rise.types import F32, I32, Array, Space
from strategies.matmul.tensor_core import tensor_core
from tests.support.programs import program, succeeded

PRODUCT = """fun((A: 64.96.f16, B: 48.96.f16) => A |> map(fun(r => B |> map(fun(c =>
  zip(r)(c) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0))))))"""


def made() -> Kernel:
    """A product on tensor cores, whose tiles come through shared memory."""
    return generate(
        succeeded(tensor_core(block=(32, 48, 32), warp=(16, 16))(program(PRODUCT))).term, "product"
    )


def test_a_pass_comes_after_those_that_it_needs() -> None:
    names = [each.name for each in PASSES]
    assert len(set(names)) == len(names)
    for number, each in enumerate(PASSES):
        assert set(each.needs) <= set(names[:number]), each.name
    assert sum(len(each.needs) for each in PASSES) > 15


def test_a_pass_says_what_it_does_in_a_sentence() -> None:
    for each in PASSES:
        assert each.meaning[0].isupper() and each.meaning.endswith("."), each.name
        assert all(reason and not reason.endswith(".") for reason in each.needs.values()), each.name


def test_every_stage_of_a_kernel_is_in_the_table() -> None:
    names = [name for name, _ in made().stages]
    assert names == ["translate", "resolve", "kernel", *(each.name for each in PASSES if not each.checks)]


# --- the check between passes ---------------------------------------------------------------------------

XS = i.Variable("xs", Array(constant(8), F32))
YS = i.Variable("ys", Array(constant(8), F32))
ZERO = i.Number(0.0, F32)


def at(buffer: str, *indices: str) -> i.Access:
    return i.Access(buffer, tuple(map(variable, indices)), F32)


def loop(body: i.Command, index: str = "k") -> i.For:
    return i.For(index, constant(8), body)


def threads(body: i.Command, index: str) -> i.ParallelFor:
    return i.ParallelFor(i.Level.THREAD, 0, index, constant(8), body)


def shared(body: i.Command) -> i.New:
    return i.New(Space.SHARED, "tile", XS.type, body)


RIGHT: dict[str, i.Command] = {
    "an assignment": loop(i.Assign(at("ys", "k"), at("xs", "k"))),
    "a copy": shared(loop(i.CopyAsync(at("tile", "k"), at("xs", "k")))),
    "threads": threads(i.Assign(at("ys", "t"), at("xs", "t")), "t"),
}
WRONG = {
    "an index that nothing binds": (loop(i.Assign(at("ys", "j"), ZERO)), "`j` is not in scope"),
    "an index after its loop": (
        i.sequence(loop(i.Assign(at("ys", "k"), ZERO)), i.Assign(at("ys", "k"), ZERO)),
        "`k` is not in scope",
    ),
    "a buffer that nothing declares": (loop(i.Assign(at("zs", "k"), ZERO)), "`zs` is not in scope"),
    "a buffer after its scope": (
        i.sequence(shared(i.Skip()), loop(i.Assign(at("tile", "k"), ZERO))),
        "`tile` is not in scope",
    ),
    "an index that shadows another": (loop(loop(i.Assign(at("ys", "k"), ZERO))), "shadows another `k`"),
    "a buffer that shadows another": (shared(shared(i.Skip())), "shadows another `tile`"),
    "too many indices": (loop(loop(i.Assign(at("ys", "k", "j"), ZERO), "j")), "has 2 indices"),
    "another element type": (
        loop(i.Assign(i.Access("ys", (variable("k"),), I32), ZERO)),
        "holds `f32` and is used as `i32`",
    ),
    "an input that is written": (loop(i.Assign(at("xs", "k"), ZERO)), "the input `xs` is written"),
    "an asynchronous copy into global memory": (
        loop(i.CopyAsync(at("ys", "k"), at("xs", "k"))),
        "is in Global memory, not in Shared",
    ),
    "an asynchronous copy from shared memory": (
        shared(loop(i.CopyAsync(at("tile", "k"), at("tile", "k")))),
        "is in Shared memory, not in Global",
    ),
    "an mbarrier that is an array": (
        shared(loop(i.WaitBarrier(at("tile", "k"), constant(0)))),
        "is not a ring of mbarriers",
    ),
    "blocks inside of threads": (
        threads(i.ParallelFor(i.Level.BLOCK, 0, "b", constant(2), i.Assign(at("ys", "b"), ZERO)), "t"),
        "cannot be inside",
    ),
}


def checked(body: i.Command) -> None:
    verify.check(i.Function("f", (YS,), (XS,), body), "some pass")


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_passes(name: str) -> None:
    checked(RIGHT[name])


def test_what_was_right_is_checked_again_in_another_scope() -> None:
    validator, inner = verify.Validator(), i.Assign(at("ys", "k"), ZERO)
    for body in (loop(inner), loop(inner), i.Sequence((loop(inner), loop(inner)))):
        validator.check(i.Function("f", (YS,), (XS,), body), "some pass")
    for wrong in (inner, loop(inner, "j"), i.Sequence((loop(inner), inner)), loop(loop(inner))):
        with pytest.raises(RiseError, match="R0799.*after the pass `another pass`"):
            validator.check(i.Function("f", (YS,), (XS,), wrong), "another pass")
    with pytest.raises(RiseError, match="R0799.*the input `ys` is written"):
        validator.check(i.Function("f", (), (XS, YS), loop(inner)), "another pass")


@pytest.mark.parametrize("name", WRONG)
def test_what_no_pass_may_make_is_noticed(name: str) -> None:
    body, message = WRONG[name]
    with pytest.raises(RiseError, match="R0799.*after the pass `some pass`") as raised:
        checked(body)
    assert message in str(raised.value)


def without_loops(function: i.Function) -> i.Function:
    """A pass that forgets the loops, and leaves their indices."""

    def go(command: i.Command) -> i.Command:
        return (
            go(command.body)
            if isinstance(command, i.For)
            else i.with_inner(command, tuple(map(go, i.inner(command))))
        )

    return replace(function, body=go(function.body))


def without_buffers(function: i.Function) -> i.Function:
    def go(command: i.Command) -> i.Command:
        inner = command.body if isinstance(command, i.New) and command.space is Space.SHARED else command
        return i.with_inner(inner, tuple(map(go, i.inner(inner))))

    return replace(function, body=go(function.body))


@pytest.mark.parametrize("broken", [without_loops, without_buffers])
@pytest.mark.parametrize("name", ["multicast", "distribute", "shares", "vectorise"])
def test_a_pass_that_breaks_a_kernel_is_named(
    name: str, broken: Callable[[i.Function], i.Function], monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaking(each: Pass) -> Pass:
        def run(function: i.Function, launch: Launch) -> tuple[i.Function, Launch]:
            function, launch = each.run(function, launch)
            return broken(function), launch

        return replace(each, run=run) if each.name == name else each

    monkeypatch.setattr(pipeline, "STRUCTURE", tuple(map(breaking, STRUCTURE)))
    monkeypatch.setattr(pipeline, "_LATEST", [])
    with pytest.raises(RiseError, match=f"after the pass `{name}`"):
        made()


def test_nothing_is_checked_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(verify.Validator, "check", never)
    monkeypatch.setattr(pipeline, "_LATEST", [])
    with verify.verifying(False):
        made()
    with pytest.raises(AssertionError), verify.verifying():
        monkeypatch.setattr(pipeline, "_LATEST", [])
        made()
