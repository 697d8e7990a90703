"""What generated programs are checked for, by `test_testing.py` and by the measurements of the kill table."""

from __future__ import annotations

from zlib import crc32

from hypothesis.strategies import SearchStrategy

from rise.check.program import check_expression
from rise.errors import RiseError
from rise.expr import Expr, Identifier, Lambda, size
from rise.nat import constant
from rise.normal import data_flow
from rise.pretty import show
from rise.testing import (
    NAMES,
    Choose,
    Counterexample,
    Generator,
    Parameters,
    assert_equivalent,
    assert_evaluators_agree,
    choices,
    differ,
    primitive_call,
)
from rise.testing.programs import closed
from rise.types import I32, Array
from rise.verify import verify

# where values from different depths of maps meet
NESTING = frozenset(
    "map generate reduceSeq scan add sub lt select padCst concat gather idx let zip fst snd".split()
)


def nested_maps() -> SearchStrategy[Expr]:
    """A map in a map, whose function uses the variables of both."""

    def made(choose: Choose) -> Expr:
        parameters = Parameters()
        generator = Generator(choose, NESTING, (I32,), parameters)
        m, n, names = constant(choose.pick((3, 2, 1))), constant(choose.pick((2, 3, 1))), NAMES[:2]
        body = generator.term(I32, dict.fromkeys(names, I32), 3)
        rows, columns = parameters.open(Array(m, I32)), parameters.open(Array(n, I32))
        inner = primitive_call("map", (n, I32, I32), Lambda(Identifier(names[1], I32), body), columns)
        function = Lambda(Identifier(names[0], I32), inner)
        return closed(primitive_call("map", (m, I32, Array(n, I32)), function, rows), parameters)

    return choices().map(made)


def evaluators_agree(program: Expr) -> None:
    """The interpreter and the slow one compute the same on awkward numbers."""
    assert_evaluators_agree(program, seeds=seeds_for(program))


def seeds_for(program: Expr) -> tuple[int, int]:
    """Other inputs for other programs, and the same in every run."""
    first = crc32(f"{program.type} {size(program)}".encode()) % 2**16
    return first, first + 100


def normal_form_preserves(program: Expr) -> None:
    """Gentle β and η keep the value: what substitution is for."""
    try:
        normal = data_flow(program)
        verify(normal)
        assert normal.free <= program.free, f"{sorted(normal.free)} escape"
        assert_equivalent(program, normal, seeds=(0,))
    except (AssertionError, RiseError) as problem:
        message = f"{problem} in the normal form of\n  {show(program, annotate=True)}"
        raise Counterexample(message, program, _loses_value, retype=True) from problem


def _loses_value(program: Expr) -> bool:
    normal = data_flow(program)
    try:
        verify(normal)
    except RiseError:
        return True
    return not normal.free <= program.free or differ(program, normal, seeds=(0,))


def printed_text_is_the_program(program: Expr) -> None:
    """The text parses, and the checker finds the same type and the same value."""
    parsed = check_expression(show(program, annotate=True))
    assert parsed.type == program.type, f"{parsed.type} for {program.type}"
    assert_equivalent(program, parsed, seeds=(0,))
