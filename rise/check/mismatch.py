"""The messages of unification: what was expected, what was found, and what may help."""

from __future__ import annotations

from dataclasses import dataclass

from rise.check.context import NOWHERE, Context
from rise.check.difference import difference, equation, shown
from rise.errors import TypeMismatch
from rise.frozen import filled_at_once
from rise.nat import Atom, Nat, Operation
from rise.source import Note, Origin
from rise.types import BOOL, Array, Function, Index, Scalar, Type, Unknown, Variable, is_data


@filled_at_once
@dataclass(frozen=True, slots=True)
class Demand:
    """The demand that an expression has a type: the expected one, the one found, the place, and the role."""

    expected: Type
    found: Type
    origin: Origin
    context: Context = NOWHERE

    @property
    def role(self) -> str:
        return self.context.role()

    @property
    def notes(self) -> tuple[Note, ...]:
        return self.context.notes()


def types_differ(demand: Demand, wanted: Type, found: Type) -> TypeMismatch:
    """R0301; `wanted` and `found` are the innermost parts that differ."""
    role = demand.role
    return TypeMismatch(
        "R0301",
        f"{role} has the wrong type",
        demand.origin,
        _hint(demand, wanted, found),
        difference(demand.expected, demand.found),
        demand.notes,
    )


def _hint(demand: Demand, wanted: Type, found: Type) -> str | None:
    if isinstance(demand.found, Function) and is_data(demand.expected):
        return "an argument is missing"
    if isinstance(demand.expected, Function) and is_data(demand.found):
        return "a function is needed here: `x => …`"
    if isinstance(wanted, Scalar) and isinstance(found, Scalar):
        return _conversion(wanted, found, whole=demand.expected == wanted or demand.found == found)
    rigid = next((t for t in (wanted, found) if isinstance(t, Variable)), None)
    if rigid is not None:
        return f"`{rigid}` may be any type here: the program must not depend on which"
    if isinstance(wanted, Index) and isinstance(found, Scalar):
        size = wanted.size if isinstance(wanted.size, Nat) and not wanted.size.unknowns else "n"
        return f"`natAsIndex({size})(i)` is a number i as an index"
    if isinstance(wanted, Scalar) and isinstance(found, Index):
        return "`indexToInt(i)` is an index i as a number"
    if isinstance(wanted, Array) and not isinstance(found, Array):
        return "an array is needed here"
    if isinstance(found, Array) and isinstance(wanted, Scalar):
        return "`map` applies a function to every element of an array"
    return None


def _conversion(wanted: Scalar, found: Scalar, whole: bool) -> str:
    """Nothing is converted silently; of two numbers the narrower is the one to convert."""
    if BOOL in (wanted, found):
        return "a truth value is no number: `select(c)(1)(0)` makes one of it"
    wider = max(wanted, found, key=lambda t: (t.is_float, t.bits))
    if not whole:
        return f"convert it with `{wanted}`, the elements of an array with `map({wanted})`"
    if wider == wanted:
        return f"convert it with `{wanted}(…)`"
    return f"convert the other with `{wider}(…)`, or this with `{wanted}(…)`, which rounds"


def function_for_data(demand: Demand, found: Type) -> TypeMismatch:
    """R0303"""
    role = demand.role
    return TypeMismatch(
        "R0303",
        f"{role} has to be data, not a function of type `{shown(found)}`",
        demand.origin,
        _data_hint(role, found),
        notes=demand.notes,
    )


def _data_hint(role: str, found: Type) -> str:
    if role.startswith("what"):
        return "`let` names data; a function is named by a definition"
    return "an argument may be missing" if isinstance(found, Function) else "a size or a type is missing"


def endless(type_: Type, unknown: Unknown, demand: Demand) -> TypeMismatch:
    """R0302"""
    return TypeMismatch(
        "R0302",
        f"the type `{shown(type_)}` would contain itself",
        demand.origin,
        "no function is applied to itself: there may be an argument too many",
        notes=demand.notes,
    )


def sizes_differ(left: Nat, right: Nat, demand: Demand) -> TypeMismatch:
    """R0402"""
    return TypeMismatch(
        "R0402",
        f"the sizes `{left}` and `{right}` differ",
        demand.origin,
        equation(left, right),
        difference(demand.expected, demand.found),
        demand.notes,
    )


def undetermined(left: Nat, right: Nat, demand: Demand) -> TypeMismatch:
    """R0403"""
    return TypeMismatch(
        "R0403",
        f"the sizes in `{shown(demand.found)}` cannot be inferred: "
        f"`{shown(left)}` has to be equal to `{shown(right)}`",
        demand.origin,
        "annotate the type of the value",
        notes=demand.notes,
    )


# --- quotients --------------------------------------------------------------------------------------


def exact(value: Nat) -> tuple[Nat, list[tuple[Nat, Nat]]]:
    """The value with exact quotients in place of rounded ones, and the divisions that have to be exact."""
    divisions: list[tuple[Nat, Nat]] = []
    replaced: dict[Atom, Nat] = {}
    for base in sorted(value.atoms, key=str):
        if isinstance(base, Operation) and base.operator == "quotient":
            quotient = base.left.exact_quotient(base.right)
            if quotient is not None:
                replaced[base] = quotient
                divisions.append((base.left, base.right))
    try:
        return value.substitute(replaced), divisions
    except ArithmeticError:  # the quotient is a divisor itself
        return value, []
