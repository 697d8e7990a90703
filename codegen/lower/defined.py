"""Which iterations of a loop over blocks, or clusters, compute anything that a `prefix` defines.

A `prefix` restricts writes to elements below a number that is read from memory. Where all that an iteration
writes is in one element of it, the whole iteration has that condition, for all of its threads, and its writes
need none.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.ir import imperative as i
from codegen.lower.paths import Resolver
from codegen.lower.views import Path
from rise.nat import Facts, Nat, NatVariable, Operation, constant, variable
from rise.types import Array, Data, Pair

Condition = tuple[Nat, Nat]


def only_defined(
    target: i.Acceptor, type_: Data, index: str, size: Nat
) -> tuple[i.Acceptor, list[Condition]]:
    """The target of an iteration, without the views that restrict all of it alike; and their conditions.

    type_: of all iterations' results; size: how many iterations there are
    """
    probe, facts = _probe(type_.element if isinstance(type_, Array) else type_, index, size)
    conditions: list[Condition] = []

    def without(acceptor: i.Acceptor) -> i.Acceptor:
        match acceptor:
            case i.AcceptView("prefix", _, inner, indices=i.Variable(count)):
                number = _first(target, acceptor, probe, facts)
                if number is not None and _ascends(number, index):
                    conditions.append((number, variable(count)))
                    return without(inner)
                return replace(acceptor, acceptor=without(inner))
            case i.AcceptView() | i.AcceptMap() | i.AcceptMember():
                return replace(acceptor, acceptor=without(acceptor.acceptor))
            case i.AcceptAt():
                return replace(acceptor, array=without(acceptor.array))
            case _:
                return acceptor

    return without(target), conditions


def _probe(type_: Data, index: str, size: Nat) -> tuple[Path, Facts]:
    """The path to some number in an element of that type, and the ranges of its indices."""
    path: list[Nat | str] = []
    facts = Facts().with_range(index, 0, size)
    while isinstance(type_, Array | Pair):
        if isinstance(type_, Pair):
            path.append("fst")
            type_ = type_.first
        else:
            name = f"probe_{len(path)}"
            facts = facts.with_range(name, 0, type_.size)
            path.append(variable(name))
            type_ = type_.element
    return tuple(path), facts


def _first(target: i.Acceptor, view: i.AcceptView, path: Path, facts: Facts) -> Nat | None:
    """The first index at which the operand of a view is written, for a path into the target."""
    name = "result"

    def upto(acceptor: i.Acceptor) -> i.Acceptor:
        match acceptor:
            case i.AcceptView() if acceptor is view:
                return i.AcceptVariable(name, acceptor.type)
            case i.AcceptView() | i.AcceptMap() | i.AcceptMember():
                return replace(acceptor, acceptor=upto(acceptor.acceptor))
            case i.AcceptAt():
                return replace(acceptor, array=upto(acceptor.array))
            case _:
                return acceptor

    indices = Resolver().write(upto(target), path, facts).indices
    return indices[0] if indices else None


def _ascends(number: Nat, index: str) -> bool:
    """Whether a number never falls as an index grows, and depends on nothing else.

    Of the iterations of a persistent block the first ones are executed then, as pipelines count on it. An
    array behind another one begins with a constant, the number of elements in front of it; one of a single
    element has no other number.
    """
    first = number.substitute({NatVariable(index): constant(0)})
    if first.value is None:
        return False
    number = number - first
    if number in (constant(0), variable(index)):
        return True
    match number.terms:
        case ((((Operation("quotient", left, right), 1),), 1),):
            return left == variable(index) and right.value is not None
    return False
