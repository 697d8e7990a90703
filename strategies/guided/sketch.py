"""Sketches: programs with holes, as in guided equality saturation (Koehler et al., POPL 2024, section 3).

A sketch stands for the set of programs that satisfy it. In ELEVATE's manner each constructor is one line:

    anything            every program
    containsMap(n, s)   contains a map over n elements, at any level, whose function satisfies s
    containsReduce(n, s)
    holds(p, n, s)      contains an application of the primitive p to an array of n elements; what is
                        inside of it satisfies s
    containsTerm(e)     contains the term e, up to the names of bound variables
    a & b, a | b        satisfies both, satisfies one of them

The distance of a program to a sketch guides the search: 0 for those that satisfy it, and no others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import combinations

from rise.errors import StrategyError
from rise.expr import Apply, Expr, Primitive, alpha_equal, call, children, substitute_sizes, subterms
from rise.nat import Nat, NatLike, NatUnknown, NatVariable, atom, nat
from rise.notation import show_argument, show_nat
from rise.pretty import show
from rise.solve import solve
from rise.source import Origin
from rise.types import Array, Kind, Vector, is_data
from strategies.loops.nests import MAP, kind

# loops of any level, and arithmetic on vectors, which is a loop over their elements
LOOP, VECTOR = "loop", "vector"
# the weights of a distance: a missing loop counts more than all others in the wrong order
MISSING, ABSENT = 20, 200
WILDCARD = NatUnknown(0)
ANY_SIZE = atom(WILDCARD)


class Sketch:
    """A set of programs."""

    def satisfied(self, term: Expr) -> bool:
        """Whether a term is in the set."""
        raise NotImplementedError

    def away(self, term: Expr) -> int:
        """How far a term that is not in the set is from it."""
        raise NotImplementedError

    def parts(self) -> tuple[Sketch, ...]:
        """The sketches that it is made of."""
        return ()

    def at(self, sizes: Mapping[str, NatLike]) -> Sketch:
        """The sketch with numbers for sizes. R0640 where a number of it is not whole."""
        raise NotImplementedError

    def distance(self, term: Expr) -> int:
        """0 where the term satisfies the sketch, more the more of it is missing or in another order."""
        return 0 if self.satisfied(term) else max(1, self.away(term))

    def __and__(self, other: Sketch) -> Sketch:
        return Both(self, other)

    def __or__(self, other: Sketch) -> Sketch:
        return Either(self, other)

    def nodes(self) -> Iterator[Node]:
        """The loops and primitives that it names."""
        for part in self.parts():
            yield from part.nodes()

    @property
    def names(self) -> frozenset[str]:
        """The sizes that are variables."""
        sizes = (node.size for node in self.nodes() if node.size is not None)
        return frozenset(name for size in sizes for name in size.variables)


# --- what stands in a program -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """What a program has to apply: `map`, `reduce` or `loop` at any level, `vector`, or a primitive.

    size:  the number of elements that it is applied to, with a hole at most; None for any
    given: what is written in parentheses, such as `Global` of `toMem(Global)`
    """

    name: str
    size: Nat | None = None
    given: tuple[str, ...] = ()
    origin: Origin = field(default=None, compare=False, repr=False)

    def matches(self, part: Part) -> bool:
        """Whether an application is one of these."""
        if self.name == VECTOR:
            return part.width is not None and self._over(part.width)
        if self.name == LOOP:
            fits = part.kind is not None
        else:  # a map that only changes the form of data is no loop
            fits = self.name == part.kind or (self.name == part.name != MAP)
        return fits and self._over(part.size) and self._given(part.primitive)

    def _over(self, size: Nat | None) -> bool:
        """Whether a size is the wanted one."""
        if self.size is None or size is None:
            return self.size is None
        if WILDCARD not in self.size.unknowns:
            return self.size == size
        solution = solve(self.size, size)
        return solution is not None and solution[1].is_whole and (solution[1].value or 0) >= 0

    def _given(self, primitive: Primitive) -> bool:
        if not self.given:
            return True
        parameters = primitive.declaration.scheme.parameters
        explicit = [
            show_argument(argument)
            for parameter, argument in zip(parameters, primitive.arguments, strict=True)
            if not parameter.implicit and parameter.kind is not Kind.LAYOUT
        ]
        return explicit[: len(self.given)] == list(self.given)

    def at(self, sizes: Mapping[str, NatLike]) -> Node:
        """The same at numbers for sizes. R0640 where a size is not whole."""
        if self.size is None:
            return self
        values = {NatVariable(name): nat(value) for name, value in sizes.items()}
        size = self.size.substitute(values)
        if not (size.unknowns or size.variables or size.value is not None):
            where = ", ".join(f"{name} = {sizes[name]}" for name in sorted(self.size.variables))
            message = f"the size `{show_nat(self.size)}` of the sketch is not whole for {where}"
            raise StrategyError("R0640", message, self.origin, "choose sizes that divide each other")
        return Node(self.name, size, self.given, self.origin)

    def __str__(self) -> str:
        given = f"({', '.join(self.given)})" if self.given else ""
        return f"{self.name}{given}" + ("" if self.size is None else f" {_show_size(self.size)}")


def _show_size(size: Nat) -> str:
    return show_nat(size).replace(str(WILDCARD), "_")


# --- the applications of a program ------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """A primitive that is applied to all of its operands, so that data results.

    kind:   `map` or `reduce`, of a loop at any level
    size:   the number of elements of its last operand
    width:  the number of elements of the vectors that arithmetic is on
    inside: what the application repeats: a loop's function, and the operands of anything else
    beside: the other operands of a loop: what it reads
    """

    name: str
    kind: str | None
    primitive: Primitive
    size: Nat | None
    width: Nat | None
    inside: tuple[Expr, ...]
    beside: tuple[Expr, ...]


PARTS = "_parts"  # where a term remembers its parts: programs on the way to a sketch share most terms


def parts_of(term: Expr) -> tuple[Part, ...]:
    """The outermost applications of a term, from left to right."""
    known: tuple[Part, ...] | None = term.__dict__.get(PARTS)
    if known is None:
        known = term.__dict__[PARTS] = tuple(_parts(term))
    return known


def _parts(term: Expr) -> Iterator[Part]:
    applied = call(term) if isinstance(term, Apply) and is_data(term.type) else None
    if applied is None:
        for child in children(term):
            yield from parts_of(child)
        return
    name, primitive, operands = applied
    loop, last, result = kind(term), operands[-1].type, term.type
    size = last.size if isinstance(last, Array) else None
    width = result.size if isinstance(result, Vector) and primitive.declaration.elementwise else None
    cut = len(operands) if loop is None else 1
    yield Part(name, loop, primitive, size, width, tuple(operands[:cut]), tuple(operands[cut:]))


def every_part(term: Expr) -> Iterator[Part]:
    """All applications of a term, outermost first."""
    for part in parts_of(term):
        yield part
        for operand in (*part.inside, *part.beside):
            yield from every_part(operand)


# --- sketches ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Anything(Sketch):
    """Every program."""

    def satisfied(self, term: Expr) -> bool:
        return True

    def away(self, term: Expr) -> int:
        return 0

    def at(self, sizes: Mapping[str, NatLike]) -> Sketch:
        return self

    def __str__(self) -> str:
        return "_"


anything = Anything()


@dataclass(frozen=True)
class Contains(Sketch):
    """The programs that contain a node, and what is inside of it satisfies another sketch."""

    node: Node
    within: Sketch = anything

    def satisfied(self, term: Expr) -> bool:
        return any(
            self.node.matches(part) and any(self.within.satisfied(inner) for inner in part.inside)
            for part in every_part(term)
        )

    def parts(self) -> tuple[Sketch, ...]:
        return (self.within,)

    def nodes(self) -> Iterator[Node]:
        yield self.node
        yield from self.within.nodes()

    def at(self, sizes: Mapping[str, NatLike]) -> Sketch:
        return Contains(self.node.at(sizes), self.within.at(sizes))

    @cached_property
    def chain(self) -> tuple[Node, ...]:
        """The nodes of a nest, from outside."""
        return (self.node, *(self.within.chain if isinstance(self.within, Contains) else ()))

    @cached_property
    def tail(self) -> Sketch:
        """What is inside of the last node of the nest."""
        return self.within.tail if isinstance(self.within, Contains) else self.within

    def away(self, term: Expr) -> int:
        """Loops that are missing, then pairs of them in the wrong order; least in the nest that fits best."""
        best = min(order.cost for order in self.orders(term))
        return best + (0 if self.tail == anything else self.tail.distance(term))

    def orders(self, term: Expr) -> Iterator[Order]:
        """How the nodes of the sketch stand in each nest of a program."""
        for found in nests(term, self.chain) or {()}:
            yield Order.of(found, len(self.chain))

    def __str__(self) -> str:
        if self.within == anything:
            return str(self.node)
        inner = str(self.within)
        return f"{self.node} > " + (inner if isinstance(self.within, Contains | Term) else f"({inner})")


@dataclass(frozen=True)
class Term(Sketch):
    """The programs that contain a term, bound variables of any names."""

    term: Expr

    def satisfied(self, term: Expr) -> bool:
        return any(alpha_equal(self.term, part) for part in subterms(term))

    def away(self, term: Expr) -> int:
        """How many of its primitives the program does not have."""
        return ABSENT + sum((_primitives(self.term) - _primitives(term)).values())

    def at(self, sizes: Mapping[str, NatLike]) -> Sketch:
        return Term(substitute_sizes(self.term, {NatVariable(n): nat(v) for n, v in sizes.items()}))

    def __str__(self) -> str:
        return f"`{show(self.term)}`"


@dataclass(frozen=True)
class Both(Sketch):
    """The programs in both sets."""

    first: Sketch
    second: Sketch

    def satisfied(self, term: Expr) -> bool:
        return self.first.satisfied(term) and self.second.satisfied(term)

    def away(self, term: Expr) -> int:
        return self.first.distance(term) + self.second.distance(term)

    def parts(self) -> tuple[Sketch, ...]:
        return self.first, self.second

    def at(self, sizes: Mapping[str, NatLike]) -> Sketch:
        return Both(self.first.at(sizes), self.second.at(sizes))

    def __str__(self) -> str:
        return f"{_operand(self.first, Either)} & {_operand(self.second, (Either, Both))}"


@dataclass(frozen=True)
class Either(Sketch):
    """The programs in one of two sets."""

    first: Sketch
    second: Sketch

    def satisfied(self, term: Expr) -> bool:
        return self.first.satisfied(term) or self.second.satisfied(term)

    def away(self, term: Expr) -> int:
        return min(self.first.distance(term), self.second.distance(term))

    def parts(self) -> tuple[Sketch, ...]:
        return self.first, self.second

    def at(self, sizes: Mapping[str, NatLike]) -> Sketch:
        return Either(self.first.at(sizes), self.second.at(sizes))

    def __str__(self) -> str:
        return f"{self.first} | {_operand(self.second, Either)}"


def _operand(sketch: Sketch, looser: type | tuple[type, ...]) -> str:
    return f"({sketch})" if isinstance(sketch, looser) else str(sketch)


def _primitives(term: Expr) -> Counter[str]:
    return Counter(part.name for part in subterms(term) if isinstance(part, Primitive))


# --- the order of loops -----------------------------------------------------------------------------------

Nest = tuple[frozenset[int], ...]


def nests(term: Expr, wanted: tuple[Node, ...]) -> frozenset[Nest]:
    """For each nest of a program, from outside, which of the wanted nodes each of its loops may be."""
    found: set[Nest] = set()
    for part in parts_of(term):
        here = frozenset(number for number, node in enumerate(wanted) if node.matches(part))
        below = frozenset[Nest]().union(*(nests(inner, wanted) for inner in part.inside))
        found |= {(here, *nest) for nest in below or {()}} if here else below
        found.update(*(nests(read, wanted) for read in part.beside))
    return frozenset(found)


@dataclass(frozen=True)
class Order:
    """Which of the wanted nodes are in a nest, by number, in the nest's order; and how many are not."""

    found: tuple[int, ...]
    missing: tuple[int, ...]

    @staticmethod
    def of(nest: Nest, wanted: int) -> Order:
        """Each loop of the nest is the first wanted node that it may be and that no loop before it is."""
        found: list[int] = []
        for possible in nest:
            free = sorted(possible.difference(found))
            found += free[:1]
        return Order(tuple(found), tuple(n for n in range(wanted) if n not in found))

    @property
    def exchanged(self) -> tuple[tuple[int, int], ...]:
        """The pairs of nodes that stand in the wrong order: the first of each should be inside."""
        return tuple((a, b) for a, b in combinations(self.found, 2) if a > b)

    @property
    def cost(self) -> int:
        return MISSING * len(self.missing) + len(self.exchanged)


def explained(sketch: Sketch, term: Expr) -> Iterator[str]:
    """What a program lacks of a sketch, one reason each."""
    if sketch.satisfied(term):
        return
    match sketch:
        case Contains(chain=chain):
            order = min(sketch.orders(term), key=lambda each: each.cost)
            for number in order.missing:
                yield f"`{chain[number]}` is missing"
            for outer, inner in order.exchanged:
                yield f"`{chain[inner]}` is inside of `{chain[outer]}`"
            if order.cost == 0 and sketch.tail.satisfied(term):
                yield f"`{sketch.tail}` is not inside of `{chain[-1]}`"
            yield from explained(sketch.tail, term)
        case Term():
            yield f"{sketch} is missing"
        case Either():
            yield from explained(min(sketch.parts(), key=lambda part: part.distance(term)), term)
        case _:
            for part in sketch.parts():
                yield from explained(part, term)


# --- in Python --------------------------------------------------------------------------------------------


def containsMap(size: NatLike | None = None, within: Sketch = anything) -> Sketch:  # noqa: N802  # ELEVATE's
    """containsMap(n, s) = contains(map(s) over n elements), at any level"""
    return holds("map", size, within)


def containsReduce(size: NatLike | None = None, within: Sketch = anything) -> Sketch:  # noqa: N802
    """containsReduce(n, s) = contains(a fold with s over n elements), at any level"""
    return holds("reduce", size, within)


def containsTerm(term: Expr) -> Sketch:  # noqa: N802
    """contains(e)"""
    return Term(term)


def holds(name: str, size: NatLike | None = None, within: Sketch = anything, *given: str) -> Sketch:
    """contains(p(given)(…)), `loop` and `vector` among the names"""
    return Contains(Node(name, None if size is None else nat(size), given), within)


def nest(*loops: Sketch) -> Sketch:
    """nest(a, b, c) = a > b > c, for sketches of one node each"""
    *outer, last = loops
    return reduce(lambda within, loop: _around(loop, within), reversed(outer), last)


def _around(loop: Sketch, within: Sketch) -> Sketch:
    if isinstance(loop, Contains) and loop.within == anything:
        return Contains(loop.node, within)
    hint = "a nest is made of `containsMap(n)`, `containsReduce(n)` and `holds(p, n)`"
    raise StrategyError("R0640", f"`{loop}` cannot contain `{within}`: it is not one loop", hint=hint)
