"""Traced values: what the parameters of a Python function are while it is read as a program.

Every operation on one gives another, which holds a node of `rise.syntax.surface` whose span is the
Python expression. Sizes, types and primitives are traced values too: which of them an argument is, the
checker decides, as it does for the text of a program.

Names that programs bind are told apart by a number (`x#12`) until a definition is complete: so a name
can neither capture another nor mean something outside of its function. `rise.embed.naming` gives them
their final names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rise.embed import errors
from rise.embed.entities import Binder, Entity, Symbol, Uses
from rise.embed.errors import TracingError
from rise.embed.operators import BINARY, REFLECTED, SIZE_FUNCTIONS, UFUNCS
from rise.embed.places import Place, here, unique, unpacked_into
from rise.expr import Definition
from rise.primitives.declare import lookup
from rise.source import Source, Span
from rise.syntax import surface as s
from rise.syntax.printer import print_expression, print_type
from rise.syntax.resolve import as_type
from rise.types import Kind

Node = s.Surface | s.TypeFunction  # the only type that is no argument


# a name with what tells it apart until a definition is complete
NUMBERED = re.compile(r"\b(\w+)(?:#\d+|%\w+|@\d+)")


class Traced:
    """An expression of a program. Shape and type are not known yet: the checker finds them.

    Operators: `+ - * / % **` and comparisons as in Python; `&` and `~` are and, not (`or_` is or);
    `x | f` applies f to x; `f >> g` is g after f; `x.fst`, `x.snd` or `a, b = x` take a pair apart;
    `xs[i]` is the element at an index.
    """

    __slots__ = ("_node", "_uses")
    __hash__ = object.__hash__

    def __init__(self, node: Node, uses: Uses | None = None) -> None:
        self._node = node
        self._uses: Uses = uses or {}

    # --- application --------------------------------------------------------------------------------

    def __call__(self, *arguments: Any) -> Traced:
        return _call(self, arguments, here())

    def __or__(self, function: Any) -> Traced:
        return _pipe(self, function)

    def __ror__(self, argument: Any) -> Traced:
        return _pipe(argument, self)

    def __rshift__(self, second: Any) -> Traced:
        return _compose(self, second)

    def __rrshift__(self, first: Any) -> Traced:
        return _compose(first, self)

    def __getitem__(self, index: Any) -> Traced:
        place = here()
        if isinstance(index, slice):
            message = "a slice stands where an index is needed"
            raise TracingError(
                errors.FOREIGN, message, place.span, "use `take(n)`, `drop(n)`, `slide(sz, sp)`"
            )
        array, at = lift(self, place.subject), lift(index, place.operand(0))
        chosen = s.Call(s.Name("idx", place.span), (at.expression,), place.span)
        return Traced(s.Call(chosen, (array.expression,), place.span), uses_of(array, at))

    # --- arithmetic: the operators of BINARY are added below ----------------------------------------------

    def __neg__(self) -> Traced:
        return _unary("-", self)

    def __invert__(self) -> Traced:
        return _unary("!", self)

    def __abs__(self) -> Traced:
        return _call(Traced(s.Name("abs", here().span)), (self,), here())

    def __pos__(self) -> Traced:
        return self

    def __floordiv__(self, other: Any) -> Traced:
        return _floor_quotient(self, other)

    def __rfloordiv__(self, other: Any) -> Traced:
        return _floor_quotient(other, self)

    # --- pairs ----------------------------------------------------------------------------------------

    @property
    def fst(self) -> Traced:
        """The first of a pair."""
        return _projection("fst", self)

    @property
    def snd(self) -> Traced:
        """The second of a pair."""
        return _projection("snd", self)

    def __iter__(self) -> Any:
        """`a, b = p`; of more names, the last has the rest, as pairs nest to the right."""
        wanted = unpacked_into()
        if wanted is None or wanted < 2:
            message = "Python cannot go through a value whose elements are not known yet"
            raise TracingError(errors.ITERATED, message, here().span, errors.ITERATION)
        return iter(_parts(self, wanted))

    # --- what cannot be traced --------------------------------------------------------------------------

    def __bool__(self) -> bool:
        raise errors.undecided()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # protocols of Python ask for what there is
            raise AttributeError(name)
        hint = f"write `x | {name}`, with `from rise.ops import {name}`" if lookup(name) else None
        message = f"a traced value has no attribute `{name}`"
        raise errors.MissingAttribute(
            errors.ATTRIBUTE, message, here().span, hint or "it has `fst` and `snd`"
        )

    __len__ = errors.unsupported(errors.ITERATED, "the length of a value is not known yet", errors.LENGTH)
    __contains__ = errors.unsupported(
        errors.ITERATED, "Python cannot search a value that is not known yet", errors.CONTAINS
    )
    __int__ = __float__ = __index__ = __complex__ = __round__ = errors.unsupported(
        errors.CONVERTED, "a value that is not known yet has no number", "convert with `f32(x)`, `i32(x)` …"
    )
    __array__ = errors.unsupported(
        errors.CONVERTED,
        "NumPy cannot compute with a value that is not known yet",
        "use the functions of `rise.ops`: `exp`, `sqrt`, `reduce(add, 0)` …",
    )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Traced:
        """NumPy hands over `array * traced`, where an array is an error, and `numpy.float64(2) * traced`."""
        operation = NUMPY.get(ufunc.__name__)
        if operation is None or method != "__call__" or len(inputs) != 2:
            self.__array__()
        return operation(*inputs)

    # --- the tree --------------------------------------------------------------------------------------

    @property
    def expression(self) -> s.Surface:
        """The node, if it can stand for a value or an argument."""
        if isinstance(self._node, s.TypeFunction):
            message = "the type of a function stands where a value or a data type is needed"
            raise TracingError(errors.FOREIGN, message, self._node.span)
        return self._node

    @property
    def type_node(self) -> s.SurfaceType:
        """The node read as a type or a size; R0203 where it can be neither."""
        return self._node if isinstance(self._node, s.TypeFunction) else as_type(self.expression)

    def __repr__(self) -> str:
        """The expression as the text of a program has it; parameters have their names in Python."""
        node = self._node
        text = print_type(node) if isinstance(node, s.TypeFunction) else print_expression(self.expression)
        return NUMBERED.sub(r"\1", text)


def uses_of(*values: Traced) -> Uses:
    """What the names in several values mean."""
    merged: dict[str, Entity] = {}
    for value in values:
        merged.update(value._uses)
    return merged


# --- building ---------------------------------------------------------------------------------------


# a name stands where it is used, see `lift`
NOWHERE = Span(Source("rise.ops", ""), 1, 1, 1, 1)


def named(name: str) -> Traced:
    """A primitive, a scalar type or a constant: what a name means that nothing binds."""
    return Traced(s.Name(name, NOWHERE))


def bound(binder: Binder) -> tuple[str, Traced]:
    """A name that no other binder has, and the parameter as a value."""
    name = f"{binder.stem}#{next(unique)}"
    return name, (Size if binder.kind is Kind.NAT else Traced)(s.Name(name, binder.span), {name: binder})


def symbol(name: str, kind: Kind) -> Traced:
    """A size or type that definitions abstract over; equal names mean the same one."""
    key = f"{name}%{kind.value}"
    return (Size if kind is Kind.NAT else Traced)(s.Name(key, NOWHERE), {key: Symbol(name, kind)})


def reference(definition: Definition) -> Traced:
    """A use of a definition."""
    key = f"{definition.name}@{id(definition)}"
    return Traced(s.Name(key, NOWHERE), {key: definition})


LEAVES = (s.Name, s.Number, s.Text, s.TypeApplication)


def lift(value: Any, place: Place) -> Traced:
    """A Python value as part of a program, standing at a place.

    Numbers and truth values are literals, texts the names of foreign functions, tuples pairs, Python
    functions functions. Anything else, NumPy arrays too, is an error R0152.
    """
    match value:
        case Traced():
            return type(value)(_moved(value._node, place.span), value._uses)
        case bool() | int() | float():
            return Traced(s.Number(_plain(value), place.span))
        case str():
            return Traced(s.Text(value, place.span))
        case tuple() if len(value) > 1:
            return _tuple([lift(v, place.operand(i)) for i, v in enumerate(value)], place.span)
        case Definition():
            return lift(reference(value), place)
        case _ if callable(value):
            from rise.embed.functions import traced_function

            return traced_function(value, place)
        case _:
            raise _foreign(value, place)


def _plain(value: bool | int | float) -> bool | int | float:
    """Of a subclass, as NumPy's float64 is one of float, the number."""
    return value if isinstance(value, bool) else int(value) if isinstance(value, int) else float(value)


def _moved(node: Node, span: Span) -> Node:
    """A name, a number, a type stands where it is used; an expression where it was written."""
    return replace(node, span=span) if isinstance(node, LEAVES) else node


def _foreign(value: Any, place: Place) -> TracingError:
    kind = type(value).__name__
    message = f"a Python value of type `{kind}` stands in a program"
    if type(value).__module__.startswith("numpy"):
        hint = "pass arrays as inputs: make it a parameter of the definition; `float(x)` of a number"
    elif isinstance(value, list):
        hint = "`makeArray(n)(a)(b)…` makes an array of values; a tuple makes a pair"
    elif value is None:
        hint = "a Python function that makes a part of a program has to `return` it"
    else:
        hint = "a program is made of numbers, tuples, functions, and the values of `rise.ops`"
    return TracingError(errors.FOREIGN, message, place.span, hint)


def _tuple(parts: Sequence[Traced], span: Span) -> Traced:
    """Pairs nest to the right; the inner pair stands where the whole does."""
    if len(parts) == 1:
        return parts[0]
    rest = _tuple(parts[1:], span)
    return Traced(s.Tuple(parts[0].expression, rest.expression, span), uses_of(parts[0], rest))


def _call(function: Any, arguments: Sequence[Any], place: Place) -> Traced:
    if not arguments:
        message = "a function is applied to nothing"
        raise TracingError(errors.PARAMETERS, message, place.span, "without parentheses it is a value")
    head = lift(function, place.subject)
    lifted = [lift(a, place.operand(i)) for i, a in enumerate(arguments)]
    node = s.Call(head.expression, tuple(a.expression for a in lifted), place.span)
    sized = all(isinstance(a, Size) or _is_number(a) for a in lifted)
    known = isinstance(head._node, s.Name) and head._node.name in SIZE_FUNCTIONS
    is_size = known and sized and any(isinstance(a, Size) for a in lifted)
    return (Size if is_size else Traced)(node, uses_of(head, *lifted))


def _is_number(value: Traced) -> bool:
    return isinstance(value._node, s.Number)


def _pipe(argument: Any, function: Any) -> Traced:
    place = here()
    left, right = lift(argument, place.operand(0)), lift(function, place.operand(1))
    if isinstance(right._node, s.Number | s.Tuple | s.Unary | s.Binary):
        message = "`x | f` applies a function, and this is none"
        raise TracingError(errors.OPERATOR, message, right._node.span, "the logical or is `or_(a, b)`")
    node = s.Call(right.expression, (left.expression,), place.span, piped=True)
    return Traced(node, uses_of(left, right))


def _compose(first: Any, second: Any) -> Traced:
    place = here()
    f, g = lift(first, place.operand(0)), lift(second, place.operand(1))
    return Traced(s.Compose(f.expression, g.expression, place.span), uses_of(f, g))


def _unary(operator: str, value: Traced) -> Traced:
    place = here()
    operand = lift(value, place.operand(0))
    return type(value)(s.Unary(operator, operand.expression, place.span), operand._uses)


def _binary(operator: str, left: Any, right: Any) -> Traced:
    place = here()
    a, b = lift(left, place.operand(0)), lift(right, place.operand(1))
    node = s.Binary(operator, a.expression, b.expression, place.span)
    sized = all(isinstance(x, Size) or _is_number(x) for x in (a, b))
    return (Size if sized and operator in "+-*/%^" else Traced)(node, uses_of(a, b))


def _floor_quotient(left: Any, right: Any) -> Traced:
    if all(isinstance(x, Size | int) for x in (left, right)):
        return _binary("/", left, right)
    message = "`//` is for sizes: on values, it would have to round down"
    raise TracingError(
        errors.OPERATOR, message, here().span, "`/` of integers truncates as in C; `floor(a / b)`"
    )


def _projection(name: str, pair: Traced) -> Traced:
    place = here()
    value = lift(pair, place.subject)
    return Traced(s.Call(s.Name(name, place.span), (value.expression,), place.span), value._uses)


def _parts(value: Traced, number: int) -> list[Traced]:
    if number == 1:
        return [value]
    return [_projection("fst", value), *_parts(_projection("snd", value), number - 1)]


class Size(Traced):
    """A size: made by `Nat("n")` and the arithmetic of sizes, where `//` rounds down."""

    __slots__ = ()
    __hash__ = object.__hash__


def _operator(sign: str, reflected: bool) -> Callable[[Traced, Any], Traced]:
    def apply(self: Traced, other: Any) -> Traced:
        return _binary(sign, other, self) if reflected else _binary(sign, self, other)

    return apply


for _name, _sign in BINARY.items():
    setattr(Traced, f"__{_name}__", _operator(_sign, reflected=False))
    if _name in REFLECTED:
        setattr(Traced, f"__r{_name}__", _operator(_sign, reflected=True))

NUMPY: Mapping[str, Callable[[Any, Any], Traced]] = {
    **{name: partial(_binary, sign) for name, sign in UFUNCS.items()},
    "bitwise_or": _pipe,
    "right_shift": _compose,
}
