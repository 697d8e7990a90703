"""Views as transformations of paths (DPIA's code generation; `split` turns i::j into n*i + j).

Every view of an expression or acceptor rewrites the path, which at a buffer consists of one index for each
dimension. Nothing is copied. Arrays of pairs are stored as pairs of arrays, so members become part of the
buffer's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count

from codegen.ir import imperative as i
from codegen.ir.buffers import dimensions, flatten, members
from codegen.ir.data import data, element_type
from codegen.ir.identifiers import derived
from codegen.ir.scalar_temporaries import (
    INT,
    ScalarTemporaries,
    assuming_less,
    assuming_not_less,
    comparison,
    decided,
    either_of,
    in_blocks,
    less,
    negated,
)
from codegen.lower.views import READING, WRITING, Choice, Path, Reading, Sizes, fed, index_of
from rise.errors import RiseError, TranslationError
from rise.frozen import filled_at_once
from rise.nat import Atom, Facts, Nat, NatVariable, at_least, constant, quotient, simplify, variable
from rise.primitives.declare import primitive
from rise.source import Origin
from rise.types import Argument, Array, Data, Fragment, Layout, Pair, Scalar, Vector


@filled_at_once
@dataclass(frozen=True, slots=True)
class Bindings:
    """The values of the parameters of maps and generates in read position."""

    terms: Mapping[str, tuple[i.Expression, Bindings]] = field(default_factory=dict)
    sizes: Mapping[NatVariable, Nat] = field(default_factory=dict)

    def index(self, value: Nat) -> Nat:
        return value.substitute(self.sizes)

    def with_term(self, name: str, term: i.Expression, outer: Bindings) -> Bindings:
        return replace(self, terms={**self.terms, name: (term, outer)})


Limits = list[tuple[Nat, Nat]]  # pairs (index, size): there are elements only where index < size


@dataclass
class Resolver:
    """Turns expressions and acceptors into accesses.

    buffers: those in scope
    parameters: those of the kernel, in global memory
    temporaries: what kernels store there for later ones
    shared:  the layouts of the buffers in shared memory
    maps:    the tensor maps that bulk copies need, by array and box
    operands: the layouts of the tiles from which fragments of Volta are loaded
    scalars: the scalar temporaries that the accesses need
    results: the arrays, of the result or of other temporaries, that temporaries are stored in at once
    ends:    for a command that leaves out elements that do not exist, pairs (index, size) of those that exist
             only where index < size; None for other commands, which read others in their place
    defined: for a command that may leave out what data say is undefined, pairs (index, number): an element
             is defined only where index < number; None for other commands
    """

    buffers: dict[str, Data] = field(default_factory=dict)
    parameters: set[str] = field(default_factory=set)
    temporaries: set[str] = field(default_factory=set)
    shared: dict[str, Layout] = field(default_factory=dict)
    operands: dict[str, Layout] = field(default_factory=dict)
    maps: dict[object, i.MapParameter] = field(default_factory=dict)
    probes: count[int] = field(default_factory=count)
    scalars: ScalarTemporaries = field(default_factory=ScalarTemporaries)
    results: dict[str, str] = field(default_factory=dict)
    ends: Limits | None = None
    defined: Limits | None = None

    # --- reading --------------------------------------------------------------------------------------

    @contextmanager
    def beyond_ends(self) -> Iterator[Limits]:
        """Reads undefined elements at their own index, even past the end. Yields the pairs of `ends`."""
        self.ends = ends = Limits()
        try:
            yield ends
        finally:
            self.ends = None

    def read(
        self, expr: i.Expression, path: Path, facts: Facts, bound: Bindings = Bindings()
    ) -> i.Expression:
        match expr:
            case i.Variable(name, type_):
                if name in bound.terms:
                    term, outer = bound.terms[name]
                    return self.read(term, path, facts, outer)
                return self.access(name, type_, path, facts)
            case i.Number() | i.Access() | i.Tile():
                return expr
            case i.Natural(value, type_):
                return i.Natural(simplify(bound.index(value), facts), type_)
            case i.Operator("select", (condition, first, second)):
                return self._select(condition, first, second, path, facts, bound)
            case i.Operator() | i.ForeignCall():
                return self._operator(expr, path, facts, bound)
            case i.At(index, array, _):
                return self.read(array, (bound.index(index), *path), facts, bound)
            case i.View(name, arguments, operands, _, origin):
                if name not in READING:
                    raise untranslated(name, origin)

                def element(number: int, place: Path) -> Nat:
                    return self._index(self.read(operands[number], place, facts, bound), facts)

                found = READING[name](self.sizes(name, arguments, len(operands), facts, element), path)
                return self._operand(found, operands, self.scalars.facts(facts), bound)
            case i.MapExpression():
                return self._mapped(expr, path, facts, bound)
            case i.GenerateExpression(parameter, body, _):
                part, *rest = path
                sizes = {**bound.sizes, NatVariable(parameter): index_of(part)}
                return self.read(body, tuple(rest), facts, replace(bound, sizes=sizes))
            case i.LetExpression(parameter, value, body, _):
                is_pair = isinstance(value.type, Pair)
                # variables are scalars, so only a member of a pair can be read
                known = value if is_pair else self._stored(parameter, value, facts, bound)
                return self.read(body, path, facts, bound.with_term(parameter, known, bound))

    def _operator(
        self, expr: i.Operator | i.ForeignCall, path: Path, facts: Facts, bound: Bindings
    ) -> i.Expression:
        """An operation on vectors is applied to the elements that the path selects."""

        def operand(o: i.Expression) -> i.Expression:
            return self.read(o, path if isinstance(o.type, Vector) else (), facts, bound)

        type_ = expr.type.element if isinstance(expr.type, Vector) and path else expr.type
        return replace(expr, operands=tuple(map(operand, expr.operands)), type=type_)

    def _mapped(self, expr: i.MapExpression, path: Path, facts: Facts, bound: Bindings) -> i.Expression:
        """The body for one element. A computed value that is used more than once is computed once."""
        part, *rest = path
        array, parameter = expr.array, expr.parameter
        found: i.Expression = i.At(index_of(part), array, element_type(array.type))
        if isinstance(found.type, Scalar) and occurrences(expr.body, parameter) > 1:
            found = self._stored(parameter, found, facts, bound)
        return self.read(expr.body, tuple(rest), facts, bound.with_term(parameter, found, bound))

    def _stored(self, stem: str, value: i.Expression, facts: Facts, bound: Bindings) -> i.Expression:
        """A scalar in a form that can be read again: an access, a number, or a variable that stores it."""
        found = self.read(value, (), facts, bound)
        return self.scalars.scalar(stem, found) if isinstance(found, i.Operator | i.ForeignCall) else found

    def _operand(
        self, found: Reading, operands: tuple[i.Expression, ...], facts: Facts, bound: Bindings
    ) -> i.Expression:
        match found:
            case Choice(value, limit, first, second):
                return self._choice(
                    simplify(value, facts),
                    simplify(limit, facts),
                    lambda inside: self._operand(first, operands, inside, bound),
                    lambda inside: self._operand(second, operands, inside, bound),
                    facts,
                )
            case (number, inner):
                return self.read(operands[number], inner, facts, bound)

    def _choice(
        self,
        value: Nat,
        limit: Nat,
        first: Callable[[Facts], i.Expression],
        second: Callable[[Facts], i.Expression],
        facts: Facts,
    ) -> i.Expression:
        """Selects one of two values by a comparison of indices, unless its result is certain."""
        answer = decided(value, limit, facts)
        if answer is not None:
            return first(facts) if answer else second(facts)
        blocks, end = comparison(value, limit, facts, self.scalars.lanes)
        if self.scalars.write_implies(blocks, end):
            return first(assuming_less(facts, value, limit))
        condition = less(blocks, end)
        with self.scalars.under(condition, facts):
            one = first(assuming_less(facts, value, limit))
        with self.scalars.under(negated(condition), facts):
            other = second(assuming_not_less(facts, value, limit))
        return one if one == other else either_of(condition, one, other)

    def _select(
        self,
        condition: i.Expression,
        first: i.Expression,
        second: i.Expression,
        path: Path,
        facts: Facts,
        bound: Bindings,
    ) -> i.Expression:
        """A select of arrays or pairs is pushed down to the elements that the path leads to."""
        chosen = self.read(condition, (), facts, bound)
        with self.scalars.under(chosen, facts):
            one = self.read(first, path, facts, bound)
        with self.scalars.under(negated(chosen), facts):
            other = self.read(second, path, facts, bound)
        return either_of(chosen, one, other)

    # --- writing --------------------------------------------------------------------------------------

    def write(self, target: i.Acceptor, path: Path, facts: Facts) -> i.Access:
        match target:
            case i.AcceptVariable(name, type_):
                return self.access(name, type_, path, facts)
            case i.AcceptAt(index, array, _):
                return self.write(array, (index, *path), facts)
            case i.AcceptView(name, arguments, acceptor, _, operand, indices):

                def element(_: int, place: Path) -> Nat:
                    if indices is None:
                        raise RiseError("R0799", f"internal: `{name}` has no indices")
                    return self._index(self.read(indices, place, facts), facts)

                sizes = self.sizes(name, arguments, 1, facts, element)
                inner = WRITING[name](sizes, path, operand)
                return self.write(acceptor, inner, self.scalars.facts(facts))
            case i.AcceptMap(parameter, body, acceptor, _):
                part, *rest = path
                at = i.AcceptAt(index_of(part), acceptor, element_type(acceptor.type))
                return self.write(fed(body, parameter, at), tuple(rest), facts)
            case i.AcceptMember(parameter, body, member, acceptor, type_):
                part, *rest = path
                number, given = (0, type_.first) if part == "fst" else (1, type_.second)
                changed = number == member
                place = i.AcceptView("pair", (), acceptor, data(body) if changed else given, number)
                return self.write(fed(body, parameter, place) if changed else place, tuple(rest), facts)
            case i.Access():
                return target
            case i.Tile():
                raise RiseError("R0799", "internal: a tile is written twice")

    def sizes(
        self,
        name: str,
        arguments: tuple[Argument, ...],
        operands: int,
        facts: Facts,
        element: Callable[[int, Path], Nat],
    ) -> Sizes:
        declaration = primitive(name)
        parameters = () if declaration.is_family else declaration.scheme.parameters
        given = {p.name: a for p, a in zip(parameters, arguments, strict=False)}
        return Sizes(
            given,
            facts,
            operands,
            element,
            lambda index, size: self._clamped(index, size, facts),
            lambda index, size: self._existing(index, size, facts),
            lambda index, size: self._only(index, size, facts),
            lambda index, other: self._same(index, other, facts),
            self._defined,
        )

    def _index(self, value: i.Expression, facts: Facts) -> Nat:
        """An index that is computed. An element in global memory can be read under any condition."""
        return self.scalars.index(value, total=isinstance(value, i.Access) and self._exists(value, facts))

    def _exists(self, access: i.Access, facts: Facts) -> bool:
        """Whether an element in global memory is within its array, whatever the conditions are."""
        if access.buffer not in self.parameters | self.temporaries:
            return False
        certain = self.scalars.certain
        inside = self.scalars.facts(facts if certain is None else certain)
        ends = zip(access.indices, dimensions(self.buffers[access.buffer]), strict=True)
        return all(decided(index, end, inside) is True and at_least(index, 0, inside) for index, end in ends)

    def _defined(self, index: Nat, number: Callable[[], Nat]) -> None:
        """Notes that an element is defined if index < number, for commands that ask."""
        if self.defined is not None:
            self.defined.append((index, number()))

    def _only(self, index: Nat, size: Nat, facts: Facts) -> None:
        """Restricts the current write to index < size."""
        index = simplify(index, facts)
        if decided(index, size, facts) is not True:
            self.scalars.restrict(*comparison(index, size, facts, self.scalars.lanes))

    def _same(self, index: Nat, other: Nat, facts: Facts) -> None:
        """Restricts the current write to index = other, of which one is read from memory."""
        index, other = simplify(index, facts), simplify(other, facts)
        self.scalars.restrict(index, other + 1)
        self.scalars.restrict(other, index + 1)

    def _clamped(self, index: Nat, size: Nat, facts: Facts) -> Nat:
        """The index clamped to the bounds."""
        index = simplify(index, facts)
        inside, natural = decided(index, size, facts), at_least(index, 0, facts)
        if inside is True and natural:
            return index
        value: i.Expression = i.Natural(index, INT)
        if not natural:
            value = i.Operator("max", (value, i.Number(0, INT)), INT)
        if not inside:
            value = i.Operator("min", (value, i.Natural(size - 1, INT)), INT)
        return self.scalars.index(value, size)

    def _existing(self, index: Nat, size: Nat, facts: Facts) -> Nat:
        """The index where it is below the size; else any that is, the same way for all lanes of a vector."""
        index = simplify(index, facts)
        if decided(index, size, facts) is True:
            return index
        if self.ends is not None:
            self.ends.append((index, size))
            return index
        blocks, width = in_blocks(index, size, facts)
        if self.scalars.write_implies(blocks, size):
            return index
        number, last = quotient(blocks, width, facts), quotient(size, width, facts) - 1
        limited = i.Operator("min", (i.Natural(number, INT), i.Natural(last, INT)), INT)
        return self.scalars.index(limited, last + 1) * width + (index - blocks)

    # --- buffers --------------------------------------------------------------------------------------

    def access(self, name: str, type_: Data, path: Path, facts: Facts) -> i.Access:
        """The flat path into a buffer; members select one of the arrays that store a pair."""
        self.buffers.update({n: t for n, t in members(name, type_) if n not in self.buffers})
        indices: list[Nat] = []
        for part in path:
            match type_, part:
                case Pair(first, second), str():
                    name, type_ = derived(name, part), first if part == "fst" else second
                case (
                    (Array(_, element) | Vector(_, element) | Fragment(_, _, _, element, _)),
                    Nat(),
                ):
                    indices.append(simplify(part, facts))
                    if isinstance(type_, Fragment) and isinstance(element, Pair):
                        message = f"`{type_}` cannot be stored in memory: fragments are of numbers"
                        raise TranslationError(
                            "R0715", message, None, "compute the members from a matrix in shared memory"
                        )
                    type_ = element
                case _:
                    raise RiseError("R0799", f"internal: the path {path} does not fit `{type_}`")
        while name in self.results:
            name = self.results[name]
            if name in self.parameters:  # a single number is stored as an array of one element
                indices.insert(0, constant(0))
        return i.Access(name, tuple(indices), type_)

    # --- tiles ----------------------------------------------------------------------------------------

    def tile(
        self,
        probe: Callable[[Path, Facts], i.Expression],
        fragment: Fragment,
        facts: Facts,
        origin: Origin,
    ) -> i.Tile:
        """Offset, leading dimension and layout of a rows × columns tile, from the index of its element.

        The linear index must be offset + leading * row + column, or the same with row and column exchanged.
        """
        number = next(self.probes)
        row, column = f"row_{number}", f"column_{number}"
        inside = facts.with_range(row, 0, fragment.rows).with_range(column, 0, fragment.columns)
        access = probe((variable(row), variable(column)), inside)
        if not isinstance(access, i.Access) or self.scalars.depends_on({row, column}):
            raise TranslationError(
                "R0710",
                "the tile is computed: a fragment is loaded from memory",
                origin,
                "store the tile with `toMem` before `asFragment`",
            )
        if self.scalars.write_depends_on({row, column}):
            raise TranslationError(
                "R0711",
                f"a part of the tile may be outside `{access.buffer}`: this fragment is stored as a whole",
                origin,
                "store it in shared memory, or use fragments with a known layout (16×8×16)",
            )
        linear = self.linear(access)
        by_row, by_column = coefficient(linear, row), coefficient(linear, column)
        corner: dict[Atom, Nat] = {NatVariable(row): constant(0), NatVariable(column): constant(0)}
        offset = linear.substitute(corner)
        extents = ((row, fragment.rows), (column, fragment.columns))
        type_ = Array(fragment.rows, Array(fragment.columns, access.type))
        affine = offset + by_row * variable(row) + by_column * variable(column)
        if simplify(linear - affine, inside) != constant(0) or constant(1) not in (
            by_row,
            by_column,
        ):
            raise TranslationError(
                "R0711",
                f"the tile has its elements at {linear}: neither rows nor columns are contiguous",
                origin,
                "a tile must be a rectangle of one array",
            )
        if by_column == constant(1):
            return i.Tile(access.buffer, offset, by_row, True, type_, access.indices, extents)
        return i.Tile(access.buffer, offset, by_column, False, type_, access.indices, extents)

    def linear(self, access: i.Access) -> Nat:
        """The linear, row-major index into a buffer."""
        return flatten(access.indices, dimensions(self.buffers[access.buffer]))


def coefficient(value: Nat, name: str) -> Nat:
    """How much a value grows with a variable that it depends on linearly."""
    at_one = value.substitute({NatVariable(name): constant(1)})
    return at_one - value.substitute({NatVariable(name): constant(0)})


def occurrences(body: i.Expression, name: str) -> int:
    """How often an expression reads a variable."""
    match body:
        case i.Variable(other):
            return int(other == name)
        case i.Operator(_, operands) | i.ForeignCall(_, _, operands) | i.View(_, _, operands):
            return sum(occurrences(o, name) for o in operands)
        case i.At(_, array):
            return occurrences(array, name)
        case i.MapExpression(_, first, second) | i.LetExpression(_, first, second):
            return occurrences(first, name) + occurrences(second, name)
        case i.GenerateExpression(_, inner):
            return occurrences(inner, name)
        case _:
            return 0


def untranslated(name: str, origin: Origin) -> TranslationError:
    return TranslationError("R0704", f"`{name}` has no translation to imperative code yet", origin)


__all__ = ["READING", "WRITING", "Bindings", "Resolver", "dimensions", "flatten", "occurrences"]
