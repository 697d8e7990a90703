"""The function of a fold, taken apart: what depends on the accumulator, and what does not.

Parts that do not depend on it are computed for many elements at once. What is left is an operator of
NumPy on the accumulator and one part (`a + x * x`), or a loop over scalars (`a * 0.5 + x`). A part
moves out only where every step computes it: so no mistake in the branch of a `select` is brought about
that the fold itself does not make.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rise.declaration import Denotation
from rise.expr import (
    Apply,
    Expr,
    Identifier,
    Lambda,
    Literal,
    Primitive,
    call,
    fresh_name,
    spine,
    with_children,
)
from rise.interpret.operations import Accumulate
from rise.interpret.scalar_loop import Loop, compiled_loop
from rise.interpret.value import Function
from rise.normal import simplify
from rise.types import Index, Pair, Scalar, Type, Vector

# positions of operands that are computed only where they are wanted, by name of the primitive
LAZY = {"select": (1, 2), "and": (1,), "or": (1,)}


@dataclass(frozen=True)
class Step:
    """One step: an operator on the accumulator and the only part, or else a loop over scalars."""

    parts: tuple[Function, ...]
    accumulate: Accumulate | None
    loop: Loop


@dataclass
class StepTerm:
    """fun(first, second => body), analysed when a long fold asks for it."""

    term: Lambda
    compiled: Callable[[Expr], Any]

    def bound(self, values: Mapping[str, Any]) -> Callable[[int], Step | None]:
        """The step for an accumulator at a position, its free identifiers having these values."""

        def at(position: int) -> Step | None:
            analysis = self._first if position == 0 else self._second
            if analysis is None:
                return None
            parts = tuple(analysis.function(code, values) for code in analysis.codes)
            return Step(parts, analysis.accumulate, analysis.loop)

        return at

    @cached_property
    def _first(self) -> Analysis | None:
        return _analysed(self.term, 0, self.compiled)

    @cached_property
    def _second(self) -> Analysis | None:
        return _analysed(self.term, 1, self.compiled)


@dataclass(frozen=True)
class Analysis:
    element: str
    codes: tuple[Any, ...]
    accumulate: Accumulate | None
    loop: Loop

    def function(self, code: Any, values: Mapping[str, Any]) -> Function:
        return lambda scope, x: code({**values, self.element: x}, scope)


def operator_step(denotation: Denotation) -> Callable[[int], Step | None]:
    """The step of a primitive that is the function of a fold."""

    def at(position: int) -> Step | None:
        accumulate = _accumulate(denotation, position == 1)
        return None if accumulate is None else Step((lambda scope, x: x,), accumulate, _no_loop)

    return at


def _accumulate(denotation: Denotation, swapped: bool) -> Accumulate | None:
    """How a fold runs with an operator; `swapped`: the accumulator is its second operand."""
    if swapped and not getattr(denotation, "commutative", False):
        return None
    return getattr(denotation, "accumulate", None)


def _no_loop(size: int, keep: bool, starts: list[Any], columns: list[Any]) -> Any:
    raise NotImplementedError


# --- analysis ---------------------------------------------------------------------------------------


def _analysed(term: Lambda, position: int, compiled: Callable[[Expr], Any]) -> Analysis | None:
    body = simplify(term)
    if not isinstance(body, Lambda) or not isinstance(body.body, Lambda):
        return None
    parameters = (body.parameter, body.body.parameter)
    accumulator, element = parameters[position], parameters[1 - position]
    if accumulator.name == element.name:
        return None
    taken = _Parts({accumulator.name}, set(body.body.body.free))
    rest = taken.out_of(body.body.body)
    codes = tuple(compiled(part) for part in taken.found.values())
    operator = _operator(rest, accumulator.name, taken.found)
    types = {name: part.type for name, part in taken.found.items()}
    loop = compiled_loop(rest, accumulator, types) if operator is None else _no_loop
    return None if loop is None else Analysis(element.name, codes, operator, loop)


def _operator(rest: Expr, accumulator: str, parts: Mapping[str, Expr]) -> Accumulate | None:
    """The operator, where what is left applies one to the accumulator and the only part."""
    match rest:
        case Apply(Apply(Primitive(declaration), Identifier(a)), Identifier(b)) if len(parts) == 1:
            if {a, b} == {accumulator, *parts}:
                return _accumulate(declaration.denotation, a != accumulator)
    return None


@dataclass
class _Parts:
    """Takes out of a term what does not depend on some names, and names it."""

    held: set[str]
    taken: set[str]

    def __post_init__(self) -> None:
        self.found: dict[str, Expr] = {}

    def out_of(self, term: Expr, strict: bool = True) -> Expr:
        """A function that is an operand may never be called: nothing in it is in a strict position."""
        if _is_taken(term) and self._moves(term, strict):
            return self._part(term)
        match term:
            case Lambda(parameter, body):
                return self._under(parameter, body, term, False)
            case Apply(Lambda() as function, argument):
                new = (self._under(function.parameter, function.body, function, strict), argument)
                return with_children(term, (new[0], self.out_of(argument, strict)))
            case Apply():
                return self._call(term, strict)
            case _:
                return term

    def _moves(self, term: Expr, strict: bool) -> bool:
        if not self.held.isdisjoint(term.free) or isinstance(term, Literal):
            return False
        return strict or _is_projection(term)

    def _part(self, term: Expr) -> Identifier:
        for name, known in self.found.items():
            if known == term:
                return Identifier(name, term.type)
        name = fresh_name(f"part_{len(self.found)}", self.taken)
        self.taken.add(name)
        self.found[name] = term
        return Identifier(name, term.type)

    def _under(self, parameter: Identifier, body: Expr, term: Lambda, strict: bool) -> Lambda:
        """In the body of a function the parameter is one of the names that a part may not use."""
        outer, self.held = self.held, self.held | {parameter.name}
        result = Lambda(parameter, self.out_of(body, strict), term.origin)
        self.held = outer
        return result

    def _call(self, term: Apply, strict: bool) -> Expr:
        """A primitive's operands: those that are not always computed are no strict positions."""
        found = call(term)
        lazy = LAZY.get(found[0], ()) if found else ()
        head, applications = spine(term)
        result = head if found else self.out_of(head, False)
        for i, application in enumerate(applications):
            operand = application.argument
            if found and found[0] == "let" and isinstance(operand, Lambda):
                operand = self._under(operand.parameter, operand.body, operand, strict)
            else:
                operand = self.out_of(operand, strict and i not in lazy)
            result = Apply(result, operand, application.origin)
        return result


def _is_taken(term: Expr) -> bool:
    """Whether a part may be this: numbers, and an element or a member that is a pair of them."""
    return isinstance(term.type, Scalar | Vector | Index) or (_is_projection(term) and _is_flat(term.type))


def _is_flat(type_: Type) -> bool:
    match type_:
        case Pair(first, second):
            return _is_flat(first) and _is_flat(second)
        case _:
            return isinstance(type_, Scalar | Index)


def _is_projection(term: Expr) -> bool:
    """A variable, or a member of one."""
    match term:
        case Identifier():
            return True
        case Apply(Primitive(declaration), operand):
            return declaration.name in ("fst", "snd") and _is_projection(operand)
        case _:
            return False
