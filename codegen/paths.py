"""Views as transformations of paths (DPIA's code generation; `split` turns i::j into n*i + j).

A path selects an element: indices, and members of pairs, outermost first. Every view of an expression
or acceptor rewrites the path; at a buffer it is flat: one index for each dimension. Nothing is copied.
Arrays of pairs are stored as pairs of arrays, so members become parts of the buffer's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeVar

from codegen import imperative as i
from rise.errors import RiseError, TranslationError
from rise.expr import Apply, Expr, Identifier, Primitive, spine
from rise.nat import Facts, Nat, NatVariable, constant, nat, simplify, variable
from rise.primitives.declare import primitive
from rise.source import Origin
from rise.types import Argument, Array, Data, Fragment, Pair, Vector

Member = str
Path = tuple[Nat | Member, ...]


@dataclass(frozen=True)
class Sizes:
    """The dependent arguments of a view by name, and what is known of the indices."""

    arguments: Mapping[str, Argument]
    facts: Facts

    def __getitem__(self, name: str) -> Nat:
        value = self.arguments[name]
        if not isinstance(value, Nat):
            raise KeyError(name)
        return value


Reading = Callable[[i.View, Path], tuple[int, Path]]
READING: dict[str, Callable[..., tuple[int, Path]]] = {}
WRITING: dict[str, Callable[..., Path]] = {}
T = TypeVar("T", bound=Callable[..., object])


def reading(*names: str) -> Callable[[T], T]:
    """Registers how views turn a path into their result into one into an operand (number, path)."""

    def register(function: T) -> T:
        for name in names:
            READING[name] = function  # type: ignore[assignment]
        return function

    return register


def writing(*names: str) -> Callable[[T], T]:
    """Registers how the acceptor of an operand turns its path into one of the result's acceptor."""

    def register(function: T) -> T:
        for name in names:
            WRITING[name] = function  # type: ignore[assignment]
        return function

    return register


def zip_path(path: Path) -> tuple[int, Path]:
    """i :: fst :: p is i :: p of the first operand."""
    index, member, *rest = path
    return (0 if member == "fst" else 1), (index, *rest)


def sizes_of(name: str, arguments: tuple[Argument, ...], facts: Facts) -> Sizes:
    parameters = primitive(name).scheme.parameters
    return Sizes({p.name: a for p, a in zip(parameters, arguments, strict=False)}, facts)


@dataclass(frozen=True)
class Bindings:
    """What the parameters of maps and generates in read position stand for."""

    terms: Mapping[str, tuple[i.Expression, Bindings]] = field(default_factory=dict)
    sizes: Mapping[NatVariable, Nat] = field(default_factory=dict)

    def index(self, value: Nat) -> Nat:
        return value.substitute(self.sizes)  # type: ignore[arg-type]  # variables are atoms


@dataclass
class Resolver:
    """Turns every expression and acceptor of a program into accesses. `buffers` are those in scope."""

    buffers: dict[str, Data] = field(default_factory=dict)
    probes: count[int] = field(default_factory=count)

    # --- reading --------------------------------------------------------------------------------------

    def read(
        self, expr: i.Expression, path: Path, facts: Facts, bound: Bindings = Bindings()
    ) -> i.Expression:
        match expr:
            case i.Variable(name, type_):
                if name in bound.terms:
                    term, outer = bound.terms[name]
                    return self.read(term, path, facts, outer)
                return self.access(name, type_, path, facts)
            case i.Number() | i.Access():
                return expr
            case i.Natural(value, type_):
                return i.Natural(simplify(bound.index(value), facts), type_)
            case i.Operator(name, operands, type_):
                return i.Operator(name, tuple(self.read(o, (), facts, bound) for o in operands), type_)
            case i.At(index, array, _):
                return self.read(array, (bound.index(index), *path), facts, bound)
            case i.View(name, arguments, operands, _, origin):
                if name not in READING:
                    raise untranslated(name, origin)
                number, inner = READING[name](sizes_of(name, arguments, facts), path)
                return self.read(operands[number], inner, facts, bound)
            case i.MapExpression(parameter, body, array, _):
                part, *rest = path
                element = i.At(nat(part), array, array.type.element)  # type: ignore[arg-type, union-attr]
                terms = {**bound.terms, parameter: (element, bound)}
                return self.read(body, tuple(rest), facts, replace(bound, terms=terms))
            case i.GenerateExpression(parameter, body, _):
                part, *rest = path
                sizes = {**bound.sizes, NatVariable(parameter): nat(part)}  # type: ignore[arg-type]
                return self.read(body, tuple(rest), facts, replace(bound, sizes=sizes))
            case i.Tile():
                return expr

    # --- writing --------------------------------------------------------------------------------------

    def write(self, target: i.Acceptor, path: Path, facts: Facts) -> i.Access:
        match target:
            case i.AcceptVariable(name, type_):
                return self.access(name, type_, path, facts)
            case i.AcceptAt(index, array, _):
                return self.write(array, (index, *path), facts)
            case i.AcceptView(name, arguments, acceptor, _, operand):
                sizes = sizes_of(name, arguments, facts)
                return self.write(acceptor, WRITING[name](sizes, path, operand), facts)
            case i.AcceptMap(parameter, body, acceptor, _):
                part, *rest = path
                element = i.AcceptAt(nat(part), acceptor, acceptor.type.element)  # type: ignore[arg-type, union-attr]
                return self.write(fed(body, parameter, element), tuple(rest), facts)
            case i.Access():
                return target
            case i.Tile():
                raise RiseError("R0799", "internal: a tile is written twice")

    # --- buffers --------------------------------------------------------------------------------------

    def access(self, name: str, type_: Data, path: Path, facts: Facts) -> i.Access:
        """The flat path into a buffer; members select one of the arrays that a pair is stored as."""
        self.buffers.update({n: t for n, t in members(name, type_) if n not in self.buffers})
        indices: list[Nat] = []
        for part in path:
            match type_, part:
                case Pair(first, second), "fst" | "snd":
                    name, type_ = f"{name}_{part}", first if part == "fst" else second
                case (
                    (Array(_, element) | Vector(_, element) | Fragment(_, _, _, element, _)),
                    Nat(),
                ):
                    indices.append(simplify(part, facts))
                    if isinstance(type_, Fragment) and isinstance(element, Pair):
                        raise RiseError("R0799", "internal: a fragment of pairs is no buffer")
                    type_ = element
                case _:
                    raise RiseError("R0799", f"internal: the path {path} does not fit `{type_}`")
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

        The linear index has to be offset + leading * row + column, or with row and column exchanged.
        """
        number = next(self.probes)
        row, column = f"row_{number}", f"column_{number}"
        inside = facts.with_range(row, 0, fragment.rows).with_range(column, 0, fragment.columns)
        access = probe((variable(row), variable(column)), inside)
        if not isinstance(access, i.Access):
            raise TranslationError(
                "R0710",
                "the tile is computed: a fragment is loaded from memory",
                origin,
                "store the tile with `toMem` before `asFragment`",
            )
        linear = self.linear(access)
        by_row, by_column = _coefficient(linear, row), _coefficient(linear, column)
        offset = linear.substitute({NatVariable(row): constant(0), NatVariable(column): constant(0)})
        affine = offset + by_row * variable(row) + by_column * variable(column)
        if simplify(linear - affine, inside) != constant(0) or constant(1) not in (
            by_row,
            by_column,
        ):
            raise TranslationError(
                "R0711",
                f"the tile has its elements at {linear}: neither rows nor columns are contiguous",
                origin,
                "a tile has to be a rectangle of one array",
            )
        if by_column == constant(1):
            return i.Tile(access.buffer, offset, by_row, True)
        return i.Tile(access.buffer, offset, by_column, False)

    def linear(self, access: i.Access) -> Nat:
        """The index into the memory of a buffer, row-major."""
        return flatten(access.indices, dimensions(self.buffers[access.buffer]))


def _coefficient(value: Nat, name: str) -> Nat:
    at_one = value.substitute({NatVariable(name): constant(1)})
    return at_one - value.substitute({NatVariable(name): constant(0)})


def dimensions(type_: Data) -> tuple[Nat, ...]:
    sizes: list[Nat] = []
    while isinstance(type_, Array | Vector):
        sizes.append(type_.size)
        type_ = type_.element
    return tuple(sizes)


def flatten(indices: tuple[Nat, ...], sizes: tuple[Nat, ...]) -> Nat:
    total = constant(0)
    for index, size in zip(indices, sizes, strict=False):
        total = total * size + index
    for size in sizes[len(indices) :]:
        total = total * size
    return total


def fed(body: Expr, parameter: str, target: i.Acceptor) -> i.Acceptor:
    """The acceptor of the parameter, where the body rearranges it into the target."""
    if isinstance(body, Identifier) and body.name == parameter:
        return target
    head, applications = spine(body)
    if isinstance(head, Primitive) and head.name == "map" and len(applications) == 2:
        function, xs = applications[0].argument, applications[1].argument
        inner = i.AcceptMap(function.parameter.name, function.body, target, xs.type)  # type: ignore[union-attr, arg-type]
        return fed(xs, parameter, inner)
    operand = applications[-1].argument
    view = i.AcceptView(head.name, head.arguments, target, operand.type)  # type: ignore[union-attr, arg-type]
    return fed(operand, parameter, view)


def rearranges(body: Expr, parameter: str) -> bool:
    """Whether a function's body is its parameter seen through views that can be written through."""
    if isinstance(body, Identifier):
        return body.name == parameter
    head, applications = spine(body)
    if not isinstance(head, Primitive) or not applications:
        return False
    if head.name == "map" and len(applications) == 2:
        function = applications[0].argument
        inside = not isinstance(function, Apply) and hasattr(function, "parameter")
        return (
            inside
            and rearranges(function.body, function.parameter.name)  # type: ignore[union-attr]
            and rearranges(applications[1].argument, parameter)
        )
    return head.name in WRITING and len(applications) == 1 and rearranges(applications[0].argument, parameter)


def untranslated(name: str, origin: Origin) -> TranslationError:
    return TranslationError("R0704", f"`{name}` has no translation to imperative code yet", origin)


# --- resolving whole programs -----------------------------------------------------------------------------


def members(name: str, type_: Data) -> list[tuple[str, Data]]:
    """The buffers that a value is stored in: one, or those of the members of a pair."""
    sizes: list[Nat] = []
    inner = type_
    while isinstance(inner, Array):
        sizes.append(inner.size)
        inner = inner.element
    if not isinstance(inner, Pair):
        return [(name, type_)]
    parts: list[tuple[str, Data]] = []
    for member, part in (("fst", inner.first), ("snd", inner.second)):
        for size in reversed(sizes):
            part = Array(size, part)
        parts += members(f"{name}_{member}", part)
    return parts


def resolve(function: i.Function) -> i.Function:
    """The pass: every view is gone, every array of pairs is a pair of arrays."""
    resolver = Resolver()
    outputs = tuple(i.Variable(n, t) for v in function.outputs for n, t in members(v.name, v.type))
    inputs = tuple(i.Variable(n, t) for v in function.inputs for n, t in members(v.name, v.type))
    resolver.buffers.update({v.name: v.type for v in outputs + inputs})
    return i.Function(function.name, outputs, inputs, _command(resolver, function.body, Facts()))


def resolved(command: i.Command) -> i.Command:
    """A part of a program resolved by itself."""
    return _command(Resolver(), command, Facts())


def _command(r: Resolver, command: i.Command, facts: Facts) -> i.Command:
    match command:
        case i.Assign(target, value, origin):
            return i.Assign(r.write(target, (), facts), r.read(value, (), facts), origin)
        case i.For(index, size) | i.ParallelFor(_, _, index, size):
            body = _command(r, command.body, facts.with_range(index, 0, size))
            return replace(command, body=body)
        case i.New(space, name, type_, body, origin):
            parts = members(name, type_)
            r.buffers.update(parts)
            new = _command(r, body, facts)
            for part, part_type in reversed(parts):
                new = i.New(space, part, part_type, new, origin)
            return new
        case i.ForFragment(_, index, body):
            return replace(command, body=_command(r, body, facts))
        case i.LoadFragment(fragment, target, loaded, origin):
            found = r.tile(lambda p, f: r.read(loaded, p, f), fragment, facts, origin)
            return i.LoadFragment(fragment, r.write(target, (), facts), found, origin)
        case i.StoreFragment(fragment, tile, value, origin):
            found = r.tile(lambda p, f: r.write(tile, p, f), fragment, facts, origin)
            return i.StoreFragment(fragment, found, r.read(value, (), facts), origin)
        case i.FillFragment(fragment, target, value):
            return i.FillFragment(fragment, r.write(target, (), facts), r.read(value, (), facts))
        case i.MmaFragment(target, a, b, c, origin):
            read = [r.read(x, (), facts) for x in (a, b, c)]
            return i.MmaFragment(r.write(target, (), facts), read[0], read[1], read[2], origin)
        case _:
            return i.with_inner(command, tuple(_command(r, c, facts) for c in i.inner(command)))
