"""Programs: closed, well-typed, and such that their printed text is the same program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rise.expr import Definition, Expr, Identifier, Lambda, Literal, substitute
from rise.interpret.evaluate import free_identifiers
from rise.nat import constant
from rise.pretty import show_definition
from rise.testing.choose import Choose, choices
from rise.testing.data import SIZES, data_type
from rise.testing.terms import Generator, Parameters, primitive_call
from rise.testing.vocabulary import declarations, exact
from rise.types import BOOL, F16, F32, F64, I32, SCALARS, TF32, Array, Pair, Scalar, Type, as_data, is_data

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

FUEL = (1, 2, 3, 4, 5, 6, 7)
PROGRAM_SCALARS = (
    I32, F32, F16, I32, F32, BOOL, SCALARS["u8"], SCALARS["i64"], F64, SCALARS["bf16"], SCALARS["i16"], TF32,
    F32,
)  # fmt: skip


def programs(
    goal: Type | None = None,
    *,
    fuel: int | None = None,
    primitives: frozenset[str] | None = None,
    scalars: Sequence[Scalar] = PROGRAM_SCALARS,
    planted: Callable[[Choose], Expr] | None = None,
) -> SearchStrategy[Expr]:
    """Closed, well-typed programs: functions of the inputs that they need, often of several.

    goal:       the type of the result; by default any
    fuel:       how deep calls are nested; by default one to four
    primitives: what they are made of; by default what is exact on small whole numbers
    scalars:    the types of what is computed, the simplest first
    planted:    a term that the program is to contain, such as a redex of a rule (`redex`)
    """
    return choices().map(
        lambda choose: program(choose, goal, fuel, primitives, scalars, planted and planted(choose))
    )


def program(
    choose: Choose,
    goal: Type | None = None,
    fuel: int | None = None,
    primitives: frozenset[str] | None = None,
    scalars: Sequence[Scalar] = PROGRAM_SCALARS,
    planted: Expr | None = None,
    definitions: tuple[Definition, ...] = (),
) -> Expr:
    """One program; see `programs`."""
    parameters = _planting(planted)
    names = exact() if primitives is None else primitives
    generator = Generator(choose, names, scalars, parameters, definitions)
    wanted = goal or _goal(choose, scalars, parameters.planted)
    body = generator.function(wanted, {}, choose.pick(FUEL) if fuel is None else fuel, expected=False)
    if parameters.planted is not None and is_data(wanted) and not _contains(body, parameters.planted):
        body = _paired(parameters.planted, body)
    return closed(body, parameters)


def closed(body: Expr, parameters: Parameters) -> Expr:
    """The function of the parameters that were added."""
    for parameter in reversed(parameters.opened):
        body = Lambda(parameter, body)
    return body


def _goal(choose: Choose, scalars: Sequence[Scalar], planted: Expr | None) -> Type:
    if planted is not None and not choose.one_in(3):
        return planted.type
    goal = data_type(choose, choose.pick((0, 1)), scalars)
    for _ in range(choose.pick((0, 1, 2, 1))):
        goal = Array(constant(choose.pick(SIZES)), goal)
    if isinstance(goal, Array) and choose.one_in(12):
        return Pair(goal, Array(goal.size, choose.pick(scalars)))
    return goal


def _planting(planted: Expr | None) -> Parameters:
    """The free names of what is planted are the first parameters of the program."""
    parameters = Parameters()
    if planted is not None:
        opened: dict[str, Expr] = {i.name: parameters.open(i.type) for i in free_identifiers(planted)}
        parameters.planted = substitute(planted, opened)
    return parameters


def _contains(term: Expr, wanted: Expr) -> bool:
    from rise.expr import subterms

    return any(part is wanted for part in subterms(term))


def _paired(first: Expr, second: Expr) -> Expr:
    return primitive_call("pair", (as_data(first.type), as_data(second.type)), first, second)


def call_of(name: str) -> Callable[[Choose], Expr]:
    """Calls of one primitive, to be planted in `programs`; of arithmetic, for many numbers."""

    def made(choose: Choose) -> Expr:
        parameters = Parameters()
        generator = Generator(choose, exact() | {name}, PROGRAM_SCALARS, parameters)
        for _ in range(8):
            term = generator.call_of(name, {}, choose.below(2))
            if term is not None and is_data(term.type):
                return _for_many(term, parameters) if declarations()[name].elementwise else term
        return Literal(0, I32)

    return made


def _for_many(term: Expr, parameters: Parameters) -> Expr:
    """The term for all elements of an array in place of its last scalar parameter."""
    scalars = [i for i in free_identifiers(term) if isinstance(i.type, Scalar)]
    if not scalars:
        return term
    element, size = scalars[-1], constant(max(SIZES))
    xs = parameters.open(Array(size, as_data(element.type)))
    types = (size, as_data(element.type), as_data(term.type))
    return primitive_call("map", types, Lambda(element, term), xs)


def program_texts(definitions: int = 3, **options: object) -> SearchStrategy[str]:
    """The text of a file with at most that many definitions, the later ones calling the earlier."""
    return choices().map(lambda choose: _text(choose, choose.below(definitions) + 1))


def _text(choose: Choose, count: int) -> str:
    made: list[Definition] = []
    goal = data_type(choose, 1)
    for number in range(count):
        term = program(choose, goal, scalars=(I32, F32, F16), definitions=tuple(made))
        made.append(Definition(f"f{number}", (), term))
    return "\n\n".join(show_definition(d) for d in made) + "\n"


def parameters_of(term: Expr) -> list[Identifier]:
    """The outer parameters of a program."""
    found: list[Identifier] = []
    while isinstance(term, Lambda):
        found.append(term.parameter)
        term = term.body
    return found
