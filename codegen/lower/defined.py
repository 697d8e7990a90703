"""Which iterations of a loop compute anything that a `prefix`, or `prefixes`, defines.

A `prefix` restricts writes to elements below a number that is read from memory. Where all that an iteration
of a loop over blocks, or clusters, writes is in one element of it, the whole iteration has that condition,
for all of its threads, and its writes need none. An iteration of a loop over warpgroups writes several
elements: if `prefixes` defines not even the first of them, it defines none, and the iteration computes
nothing. Otherwise it computes all: a condition on each would be in the way of reads of where they are put.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codegen.ir import imperative as i
from codegen.lower.paths import Resolver
from codegen.lower.views import Path
from rise.nat import Atom, Facts, Nat, NatVariable, Operation, at_least, constant, variable
from rise.types import Array, Data, Pair

Condition = tuple[Nat, Nat]
# the first of the elements that an iteration writes, and the number that it has to be below
Necessary = tuple[Nat, i.Expression]


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
                number = next(iter(_indices(target, acceptor, probe, facts)), None)
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


def some_defined(target: i.Acceptor, type_: Data, index: str, size: Nat) -> Iterator[Necessary]:
    """What holds where an iteration writes an element that is defined: the first one is, by `prefixes`."""
    probe, facts = _probe(type_.element if isinstance(type_, Array) else type_, index, size)
    corner: dict[Atom, Nat] = {NatVariable(name): constant(0) for name in facts.ranges if name != index}
    place = target
    while not isinstance(place, i.AcceptVariable | i.Access | i.Tile):
        match place:
            case i.AcceptView("prefixes", indices=numbers) if numbers is not None:
                row, number, *_ = _indices(target, place, probe, facts)
                first = number.substitute(corner)
                alike = row == row.substitute(corner) and at_least(number - first, 0, facts)
                if alike and index in first.variables:
                    yield first, i.At(row, numbers, _element(numbers.type))
        place = place.array if isinstance(place, i.AcceptAt) else place.acceptor


def _element(type_: Data) -> Data:
    return type_.element if isinstance(type_, Array) else type_


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


def _indices(target: i.Acceptor, view: i.AcceptView, path: Path, facts: Facts) -> tuple[Nat, ...]:
    """The indices at which the operand of a view is written, for a path into the target."""
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

    return Resolver().write(upto(target), path, facts).indices


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
