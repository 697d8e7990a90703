"""Faults that are seeded in the library: each replaces one function, and a property has to notice.

Denotations are replaced in the declarations of their primitives, other functions in the module that
calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis.strategies import SearchStrategy

from rise.expr import Expr, Identifier, Lambda, with_children
from rise.expr import children as children_of
from rise.interpret import operations
from rise.interpret.instance import Call
from rise.interpret.value import Data, Function, Leaf, aligned, each, forced, picked, pointwise
from rise.primitives.declare import primitive
from rise.testing import Choose, call_of, every_primitive, programs, redexes
from rise.testing.vocabulary import declarations
from tests.rise.properties import evaluators_agree, nested_maps, normal_form_preserves

# sums on tensor cores have no order that both evaluators could keep
ORDERED = tuple(sorted(every_primitive() - {"tensorMatMulAdd"}))
Property = Callable[[Expr], None]


@dataclass(frozen=True)
class Fault:
    """A mistake, and how it is made.

    check:       the property that has to fail
    planted:     the primitive that programs are to contain which test it alone
    denotations: by primitive
    functions:   by `module.name`
    """

    what: str
    check: Property = evaluators_agree
    planted: str = ""
    denotations: Mapping[str, Callable[..., Any]] | None = None
    functions: Mapping[str, Callable[..., Any]] | None = None


def programs_for(fault: Fault) -> tuple[SearchStrategy[Expr], SearchStrategy[Expr]]:
    """What the property runs on: programs that are made for the fault alone, and for any fault."""
    if fault.check is maps_agree:
        return nested_maps(), programs(planted=call_of_any)
    if fault.check is normal_form_preserves:
        return redexes(), programs()
    own = fault.planted or next(iter(fault.denotations or {}))
    return programs(planted=call_of(own)), programs(planted=call_of_any)


def call_of_any(choose: Choose) -> Expr:
    return call_of(choose.pick(ORDERED))(choose)


@contextmanager
def seeded(fault: Fault) -> Iterator[None]:
    """The library with the fault, and without it afterwards."""
    originals = {primitive(n): primitive(n).denotation for n in fault.denotations or {}}
    patches = [patch(name, wrong) for name, wrong in (fault.functions or {}).items()]
    try:
        for name, wrong in (fault.denotations or {}).items():
            object.__setattr__(primitive(name), "denotation", wrong)
        for each_ in patches:
            each_.start()
        yield
    finally:
        for each_ in patches:
            each_.stop()
        for declaration, right in originals.items():
            object.__setattr__(declaration, "denotation", right)


# --- substitution ---------------------------------------------------------------------------------


def substitute_capturing(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Binders are not renamed, so they capture free variables of the values."""
    match expr:
        case Identifier(name):
            return values.get(name, expr)
        case Lambda(parameter, body):
            inner = {n: v for n, v in values.items() if n != parameter.name}
            return Lambda(parameter, substitute_capturing(body, inner), expr.origin)
        case _:
            return with_children(expr, tuple(substitute_capturing(c, values) for c in children_of(expr)))


def substitute_hidden(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """A variable is replaced even where a binder hides it."""
    match expr:
        case Identifier(name):
            return values.get(name, expr)
        case _:
            return with_children(expr, tuple(substitute_hidden(c, values) for c in children_of(expr)))


# --- denotations ----------------------------------------------------------------------------------


RIGHT: dict[str, Callable[..., Data]] = {
    name: declaration.denotation for name, declaration in declarations().items()
}


def along(data: Data, change: Callable[[Any, int], Any]) -> Any:
    """Changes the arrays of data along their outermost axis."""
    return each(lambda leaf: Leaf(np.asarray(change(leaf.array, leaf.depth)), leaf.depth), data)


def rolled(by: int) -> Callable[[Any, int], Any]:
    return lambda array, axis: np.roll(array, by, axis=axis)


def with_sizes(call: Call, **names: str) -> Call:
    """The call with sizes under each other's names."""
    sizes = {**call.instance.sizes, **{new: call.size(old) for new, old in names.items()}}
    return Call(replace(call.instance, sizes=sizes), call.scope)


def fold_without_tail(call: Call, operator: Function, initial: Data, values: Data) -> Data:
    result: Data = initial
    for position in range(call.size("n") - (call.size("n") > 1)):
        result = forced(operator(call.scope, result)(call.scope, picked(values, position)))
    return result


def fold_from_zero(call: Call, operator: Function, initial: Data, values: Data) -> Data:
    return RIGHT["reduceSeq"](call, operator, each(lambda x: Leaf(x.array * 0, x.depth), initial), values)


def split_by_columns(call: Call, values: Data) -> Data:
    return RIGHT["transpose"](call, RIGHT["split"](with_sizes(call, n="m", m="n"), values))


def transpose_but_squares(call: Call, values: Data) -> Data:
    return values if call.size("n") == call.size("m") else RIGHT["transpose"](call, values)


def zip_swapped(call: Call, left: Data, right: Data) -> Data:
    return (right, left) if call.type("s") == call.type("t") else (left, right)


def select_swapped(call: Call, condition: Data, then: Any, otherwise: Any) -> Data:
    return RIGHT["select"](call, condition, otherwise, then)


select_swapped.lazy = (1, 2)  # type: ignore[attr-defined]


def together_unaligned(*leaves: Leaf) -> tuple[int, list[Any]]:
    """NumPy broadcasts from the last axis, and not where the batch axes are."""
    return max(leaf.depth for leaf in leaves), [leaf.array for leaf in leaves]


def closed_from_first(leaf: Leaf, depth: int, size: int) -> Leaf:
    """All elements are the first."""
    array = aligned(leaf, depth + 1)
    return Leaf(np.repeat(array.take([0], depth), size, depth), depth)


def maps_agree(program: Expr) -> None:
    evaluators_agree(program)


def clamped_to_first(call: Call, values: Data) -> Data:
    return RIGHT["padClamp"](call, along(values, lambda a, axis: np.take(a, [0] * a.shape[axis], axis)))


def mod_floored(call: Call, left: Data, right: Data) -> Data:
    return pointwise(np.remainder, left, right)


def div_floored(call: Call, left: Data, right: Data) -> Data:
    if call.scalar().is_float:
        return pointwise(np.divide, left, right)
    return pointwise(np.floor_divide, left, right)


def to_nearest_integer(a: Any, target: Any) -> Any:
    return RIGHT_CONVERSION(np.rint(a), target)


RIGHT_CONVERSION = operations._to_integer

FAULTS = (
    Fault("a substitution that captures", normal_form_preserves,
          functions={"rise.normal.substitute": substitute_capturing}),
    Fault("a substitution under a binder that hides", normal_form_preserves,
          functions={"rise.normal.substitute": substitute_hidden}),
    Fault("windows one late", denotations={"slide": lambda c, xs: RIGHT["slide"](c, along(xs, rolled(-1)))}),
    Fault("a reduction without its tail", denotations={"reduce": fold_without_tail}),
    Fault("a fold that starts from zero", denotations={"reduceSeq": fold_from_zero}),
    Fault("split by columns", denotations={"split": split_by_columns}),
    Fault("transpose dropped on squares", denotations={"transpose": transpose_but_squares}),
    Fault("zip swapped for equal types", denotations={"zip": zip_swapped}),
    Fault("branches of select swapped", denotations={"select": select_swapped}),
    Fault("padding on the wrong side",
          denotations={"padCst": lambda c, x, xs: RIGHT["padCst"](with_sizes(c, l="r", r="l"), x, xs)}),
    Fault("clamped to the first at both ends", denotations={"padClamp": clamped_to_first}),
    Fault("the head for the tail",
          denotations={"drop": lambda c, xs: RIGHT["take"](with_sizes(c, n="m"), xs)}),
    Fault("concatenated in the wrong order",
          denotations={"concat": lambda c, xs, ys: RIGHT["concat"](c, ys, xs)}),
    Fault("gathered backwards",
          denotations={"gather": lambda c, i, xs: RIGHT["gather"](c, along(i, np.flip), xs)}),
    Fault("scan that leaves the last one out",
          denotations={"scan": lambda c, f, z, xs: along(RIGHT["scan"](c, f, z, xs), rolled(1))}),
    Fault("maps that share one batch axis", maps_agree,
          functions={"rise.interpret.value.together": together_unaligned}),
    Fault("a value of an outer map computed once", maps_agree,
          functions={"rise.interpret.value._closed": closed_from_first}),
    Fault("remainder with the sign of the divisor", denotations={"mod": mod_floored}),
    Fault("conversion to the nearest integer", planted="cast",
          functions={"rise.interpret.operations._to_integer": to_nearest_integer}),
    Fault("NaN for the smaller of NaN and a number", denotations={"min": operations.binary("minimum")}),
    Fault("the first kept twice",
          denotations={"mapFst": lambda c, f, p: (f(c.scope, p[0]), p[c.type("r") != c.type("t")])}),
)  # fmt: skip
