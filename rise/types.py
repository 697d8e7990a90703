"""Kinds and types. Data types are what arrays hold; function types are what programs are.

`Array[n, t]`, `(s, t)`, `Idx[n]`, `Vec[n, t]` and `Fragment[m, n, k, t, kind]` as in the RISE papers;
dependent functions take a size, a type, an address space (CGO'22 extended abstract, Listing 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import Any, Protocol, TypeGuard, TypeVar, overload

from rise.errors import RiseError
from rise.frozen import Memory, Remembers, cached_property, filled_at_once, hashed_once
from rise.nat import Atom, Nat, NatUnknown, NatVariable, Operation, nat, variable
from rise.sharing import Node


class Kind(Enum):
    """What a dependent parameter ranges over."""

    NAT = "Nat"
    DATA = "DataType"
    SPACE = "AddressSpace"
    FRAGMENT = "FragmKind"
    FUNCTION = "Nat2Nat"
    LAYOUT = "Layout"


@hashed_once
@filled_at_once
@dataclass(frozen=True, slots=True)
class Variable(Remembers):
    """A rigid variable of a kind other than Nat."""

    name: str

    def __str__(self) -> str:
        return self.name


@hashed_once
@filled_at_once
@dataclass(frozen=True, slots=True)
class Unknown(Remembers):
    """A variable of a kind other than Nat that inference still has to solve."""

    identity: int

    def __str__(self) -> str:
        return f"?{self.identity}"


@hashed_once
@filled_at_once
@dataclass(frozen=True, slots=True)
class Scalar(Remembers):
    """bool, i8 … i64, u8 … u64, f16, bf16, f32, f64, and tf32, which takes the four bytes of an f32."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        return self.name.startswith(("f", "bf", "tf"))

    @property
    def bits(self) -> int:
        return 8 if self.name == "bool" else int(self.name.lstrip("iubtf"))

    @property
    def bytes(self) -> int:
        return self.bits // 8


VARIABLES = (Variable, Unknown)


class Composite(Node):
    """A type that has parts."""

    @cached_property
    def leaves(self) -> tuple[Atom | Variable | Unknown, ...]:
        return tuple(dict.fromkeys(_leaves(self)))

    def __str__(self) -> str:
        return shortened(self)._text()  # type: ignore[type-var]  # it is one of the types below

    def _text(self) -> str:
        raise NotImplementedError(f"{type(self).__name__} is no type")


@filled_at_once
@dataclass(frozen=True, eq=False, slots=True)
class Array(Composite):
    size: Nat
    element: Data

    def _text(self) -> str:
        size = str(self.size)
        return f"{f'({size})' if any(c in size for c in ' */-') else size}.{self.element}"


@filled_at_once
@dataclass(frozen=True, eq=False, slots=True)
class Pair(Composite):
    first: Data
    second: Data

    def _text(self) -> str:
        return f"({self.first}, {self.second})"


@filled_at_once
@dataclass(frozen=True, eq=False, slots=True)
class Index(Composite):
    """A natural number below `size`."""

    size: Nat

    def _text(self) -> str:
        return f"Idx[{self.size}]"


@filled_at_once
@dataclass(frozen=True, eq=False, slots=True)
class Vector(Composite):
    size: Nat
    element: Data

    def _text(self) -> str:
        return f"Vec[{self.size}, {self.element}]"


class FragmentKind(Enum):
    A = "AMatrix"
    B = "BMatrix"
    ACCUMULATOR = "Accum"
    COLUMN = "Column"

    def __str__(self) -> str:
        return self.value


@filled_at_once
@dataclass(frozen=True, eq=False, slots=True)
class Fragment(Composite):
    """A rows × columns tile held by the threads of a warp together; `other` is the third size of the product.

    A is Fragment[m, k, n], B is Fragment[k, n, m], the accumulator Fragment[m, n, k] (Listing 2). A column
    Fragment[m, 1, k] has one element for each row of an accumulator, held by the threads that hold the row.
    """

    rows: Nat
    columns: Nat
    other: Nat
    element: Data
    kind: FragmentKind | Variable | Unknown

    def _text(self) -> str:
        return f"Fragment[{self.rows}, {self.columns}, {self.other}, {self.element}, {self.kind}]"


Data = Scalar | Array | Pair | Index | Vector | Fragment | Variable | Unknown


@filled_at_once
@dataclass(frozen=True, eq=False, slots=True)
class Function(Composite):
    parameter: Type
    result: Type

    def _text(self) -> str:
        left = (
            f"({self.parameter})" if isinstance(self.parameter, Function | Dependent) else str(self.parameter)
        )
        return f"{left} -> {self.result}"


@filled_at_once
@dataclass(frozen=True, eq=False, slots=True)
class Dependent(Composite):
    """`(x: kind) -> result`, or `{x: kind} -> result` where the argument is inferred.

    Equal are those that differ in the name of the parameter only.
    """

    name: str
    kind: Kind
    result: Type
    implicit: bool = False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dependent) or (self.kind, self.implicit) != (other.kind, other.implicit):
            return False
        if self.name == other.name:
            return self.result == other.result
        mine, theirs = (Parameter(n, self.kind, False) for n in (self.name, other.name))
        free = mine.key in leaves(other)
        return not free and self.result == substitute_type(other.result, {theirs.key: mine.leaf})

    def __hash__(self) -> int:
        return self._hash

    @property
    def compared(self) -> tuple[Any, ...]:
        """What does not depend on the name of the parameter, and tells most others apart.

        A quotient of the parameter, say, is a leaf that contains its name.
        """
        names = frozenset(leaf for leaf in self.leaves if not isinstance(leaf, Operation))
        return Dependent, self.kind, self.implicit, self.extent, names

    def _text(self) -> str:
        opening, closing = "{}" if self.implicit else "()"
        return f"{opening}{self.name}: {self.kind.value}{closing} -> {self.result}"


Type = Scalar | Array | Pair | Index | Vector | Fragment | Variable | Unknown | Function | Dependent
# what is replaced within data stays data
T = TypeVar("T", Data, Type)
S = TypeVar("S", Data, Type)
Form = TypeVar("Form", Scalar, Array, Pair, Vector, Fragment, Function, Dependent)


class Space(Enum):
    """Where a value lives: visible to the grid, to the block, to the thread.

    Distributed memory is visible to a cluster: element i of an array is in the Shared memory of block i.
    """

    GLOBAL = "Global"
    DISTRIBUTED = "Distributed"
    SHARED = "Shared"
    LOCAL = "Local"

    @property
    def in_shared_memory(self) -> bool:
        """Whether a block has it, or its part of it, in its shared memory."""
        return self in (Space.SHARED, Space.DISTRIBUTED)

    def __str__(self) -> str:
        return self.value


@filled_at_once
@dataclass(frozen=True, slots=True)
class NatFunction:
    """`natFun(i => body)`."""

    parameter: str
    body: Nat

    def __call__(self, argument: Nat) -> Nat:
        return self.body.substitute({NatVariable(self.parameter): argument})

    def __str__(self) -> str:
        return f"natFun({self.parameter} => {self.body})"


@filled_at_once
@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of an array lie in Shared memory: `rowMajor`, `padded(p)`, `swizzled(bytes)`.

    `padded` skips p elements after each row; `swizzled` permutes the 16-byte chunks in each row of
    that many bytes by the number of the row, as bulk tensor copies do. It is a property of the memory,
    not of the value. `amount` is p or the bytes; `rowMajor` has none.
    """

    name: str
    amount: Nat | None = None

    def __str__(self) -> str:
        return self.name if self.amount is None else f"{self.name}({self.amount})"


ROW_MAJOR = Layout("rowMajor")

# an argument for a dependent parameter, one alternative a kind
Argument = Nat | Data | Space | FragmentKind | NatFunction | Layout
Solution = Mapping[Any, Any]  # by Atom, Variable or Unknown: an argument of its kind

BOOL, I32, F16, TF32, F32, F64 = (Scalar(n) for n in ("bool", "i32", "f16", "tf32", "f32", "f64"))
SCALARS: Mapping[str, Scalar] = {
    n: Scalar(n) for n in ("bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 tf32 f32 f64").split()
}


OnLeaf = Callable[[Variable | Unknown], Any]  # an argument of its kind: in type position, a type


class Rebuild(Protocol):
    def __call__(self, type_: S, /) -> S: ...


def map_type(
    type_: T,
    on_nat: Callable[[Nat], Nat],
    on_leaf: OnLeaf,
    on_binder: Callable[[Dependent], Dependent] = lambda dependent: dependent,
    only: Solution | None = None,
) -> T:
    """Rebuilds a type, replacing sizes and the variables of the other kinds.

    `on_binder` may rename what a dependent function binds, before its result is rebuilt. Parts that have none
    of the leaves in `only` stay as they are.
    """
    return _Rebuild(on_nat, on_leaf, on_binder, only, {})(type_)


@filled_at_once
@dataclass(frozen=True, slots=True)
class _Rebuild:
    """The function that `map_type` is. A nested function that calls itself would be left to the collector."""

    on_nat: Callable[[Nat], Nat]
    on_leaf: OnLeaf
    on_binder: Callable[[Dependent], Dependent]
    only: Solution | None
    done: dict[int, Any]  # by identity: what occurs twice is rebuilt once

    def __call__(self, type_: S, /) -> S:
        if not isinstance(type_, Composite):
            leaf: S = self.on_leaf(type_) if isinstance(type_, VARIABLES) else type_
            return leaf
        new: S | None = self.done.get(id(type_))
        if new is None and self.only is not None and not _has(type_, self.only):
            new = self.done[id(type_)] = type_
        if new is None:
            new = self.done[id(type_)] = _rebuilt(type_, self, self.on_nat, self.on_leaf, self.on_binder)
        return new


def _rebuilt(
    type_: Composite,
    go: Rebuild,
    on_nat: Callable[[Nat], Nat],
    on_leaf: OnLeaf,
    on_binder: Callable[[Dependent], Dependent],
) -> Any:  # a type of the form that it had
    match type_:
        case Array(size, element):
            return Array(on_nat(size), go(element))
        case Vector(size, element):
            return Vector(on_nat(size), go(element))
        case Index(size):
            return Index(on_nat(size))
        case Pair(first, second):
            return Pair(go(first), go(second))
        case Fragment(rows, columns, other, element, kind):
            new_kind = kind if isinstance(kind, FragmentKind) else on_leaf(kind)
            return Fragment(on_nat(rows), on_nat(columns), on_nat(other), go(element), new_kind)
        case Function(parameter, result):
            return Function(go(parameter), go(result))
        case Dependent():
            bound = on_binder(type_)
            return Dependent(bound.name, bound.kind, go(bound.result), bound.implicit)
        case _:
            raise NotImplementedError(f"{type(type_).__name__} is no type")


def _has(type_: Type, solution: Solution) -> bool:
    """Whether a type has a variable or an unknown that is replaced."""
    return any(map(solution.__contains__, leaves(type_)))


def substitute_type(type_: T, solution: Solution) -> T:
    """Replaces variables and unknowns; a binder that would capture one of a value is renamed."""
    if not solution or not _has(type_, solution):
        return type_
    atoms = _sizes(solution)
    return map_type(
        type_,
        lambda n: n.substitute(atoms),
        lambda leaf: solution.get(leaf, leaf),
        lambda bound: _apart(bound, mentioned(solution)),
        solution,
    )


def _sizes(solution: Solution) -> Mapping[Atom, Nat]:
    return {atom: value for atom, value in solution.items() if isinstance(value, Nat)}


def _apart(bound: Dependent, names: frozenset[str]) -> Dependent:
    """The same function with a parameter that has none of the names."""
    if bound.name not in names:
        return bound
    used = names | {str(leaf) for leaf in leaves(bound.result)}
    name = next(n for n in (f"{bound.name}_{i}" for i in count(1)) if n not in used)
    old, new = (Parameter(n, bound.kind, bound.implicit) for n in (bound.name, name))
    return Dependent(name, bound.kind, substitute_type(bound.result, {old.key: new.leaf}), bound.implicit)


def mentioned(solution: Solution) -> frozenset[str]:
    """The names of the variables that a solution replaces, or that are in what it puts there."""
    found = {str(leaf) for leaf in solution}
    for value in solution.values():
        match value:
            case Nat():
                found |= value.variables
            case NatFunction(_, body) | Layout(_, Nat() as body):
                found |= body.variables
            case Space() | FragmentKind() | Layout():
                pass
            case _:
                found |= {str(leaf) for leaf in leaves(value)}
    return frozenset(found)


@overload
def substitute_argument(argument: Nat, solution: Solution) -> Nat: ...
@overload
def substitute_argument(argument: Argument, solution: Solution) -> Argument: ...
def substitute_argument(argument: Argument, solution: Solution) -> Argument:
    match argument:
        case Nat():
            return argument.substitute(_sizes(solution))
        case Space() | FragmentKind():
            return argument
        case NatFunction(parameter, body):
            inner = {a: v for a, v in _sizes(solution).items() if a != NatVariable(parameter)}
            return NatFunction(parameter, body.substitute(inner))
        case Layout(name, Nat() as amount):
            return Layout(name, substitute_argument(amount, solution))
        case Layout():
            return argument
        case Variable() | Unknown():
            found: Argument = solution.get(argument, argument)
            return found
        case _:
            return substitute_type(argument, solution)


def substitution(
    solution: Solution,
) -> tuple[Callable[[Type], Type], Callable[[Argument], Argument]]:
    """`substitute_type` and `substitute_argument` for a term: most of its sizes and types occur often."""
    sizes = _sizes(solution)

    def new_type(type_: Type) -> Type:
        if not _has(type_, solution):
            return type_
        return map_type(
            type_,
            on_nat,
            lambda leaf: solution.get(leaf, leaf),
            lambda d: _apart(d, mentioned(solution)),
            solution,
        )

    new_sizes: Memory[Nat, Nat] = Memory(lambda size: size.substitute(sizes))
    new_types: Memory[Type, Type] = Memory(new_type)
    on_nat, on_type = new_sizes.__getitem__, new_types.__getitem__

    def on_argument(argument: Argument) -> Argument:
        if isinstance(argument, Nat):
            return on_nat(argument)
        if isinstance(argument, Scalar):
            return argument
        if isinstance(argument, Composite):
            return as_data(on_type(argument))
        return substitute_argument(argument, solution)

    return on_type, on_argument


def leaves(type_: Type) -> tuple[Atom | Variable | Unknown, ...]:
    """Every variable and unknown of a type, of all kinds, once, in the order in which it has them."""
    if isinstance(type_, Composite):
        return type_.leaves
    return (type_,) if isinstance(type_, VARIABLES) else ()


def _leaves(type_: Composite) -> Iterator[Atom | Variable | Unknown]:
    match type_:
        case Dependent(name, kind, result, _):
            bound = NatVariable(name) if kind is Kind.NAT else Variable(name)
            yield from (leaf for leaf in leaves(result) if leaf != bound)
        case _:
            for part in type_.parts:
                yield from part.atoms if isinstance(part, Nat) else leaves(part)


def scalars(type_: object) -> Iterator[str]:
    """The names of the scalar types in a type, or in another argument; some may come several times."""
    if isinstance(type_, Scalar):
        yield type_.name
    elif isinstance(type_, Composite):
        for part in type_.parts:
            yield from scalars(part)


def unknowns(type_: Type) -> Iterator[NatUnknown | Unknown]:
    return (leaf for leaf in leaves(type_) if isinstance(leaf, NatUnknown | Unknown))


# types of more nodes are not written out: of those about so many are shown, and `…` for the others
LARGEST_WRITTEN = 5000
SHOWN = 40
OMITTED = Variable("…")


def shortened(type_: T) -> T:
    """The type, or its outer levels where it is too large to be written out."""
    if not isinstance(type_, Composite) or type_.extent <= LARGEST_WRITTEN:
        return type_
    return _outer(type_, SHOWN)


def _outer(type_: T, nodes: int) -> T:
    if not isinstance(type_, Composite) or type_.extent <= nodes:
        return type_

    def go(t: S, /) -> S:
        return _outer(t, nodes // 2)

    outer: T = OMITTED if nodes <= 1 else _rebuilt(type_, go, lambda n: n, lambda leaf: leaf, lambda d: d)
    return outer


def is_data(type_: Type) -> TypeGuard[Data]:
    return not isinstance(type_, Function | Dependent)


def as_data(found: Type | Argument) -> Data:
    """What has to be a type of data. An internal error where it is not."""
    if isinstance(found, Function | Dependent | Nat | Space | FragmentKind | NatFunction | Layout):
        raise _ill_typed(found, "data")
    return found


def expect(form: type[Form], found: Type | Argument) -> Form:
    """What has to be a type of a form: an array, a function. An internal error where it is not."""
    if not isinstance(found, form):
        raise _ill_typed(found, form.__name__)
    return found


def _ill_typed(found: Type | Argument, wanted: str) -> RiseError:
    return RiseError("R0699", f"a term is not well typed: `{found}` stands where {wanted} is needed")


def shape(type_: Type) -> tuple[tuple[Nat, ...], Type]:
    """The sizes of the outer arrays and the element below them."""
    sizes: list[Nat] = []
    while isinstance(type_, Array):
        sizes.append(type_.size)
        type_ = type_.element
    return tuple(sizes), type_


def arguments(type_: Type) -> tuple[list[Type], Type]:
    """The parameters of a curried function and its result."""
    parameters: list[Type] = []
    while isinstance(type_, Function):
        parameters.append(type_.parameter)
        type_ = type_.result
    return parameters, type_


# --- schemes --------------------------------------------------------------------------------------


@filled_at_once
@dataclass(frozen=True, slots=True)
class Parameter:
    """A dependent parameter of a scheme. An explicit one may have a default, then it may be left out."""

    name: str
    kind: Kind
    implicit: bool
    default: Argument | None = None

    @property
    def leaf(self) -> Argument:
        return variable(self.name) if self.kind is Kind.NAT else Variable(self.name)

    @property
    def key(self) -> Atom | Variable:
        return NatVariable(self.name) if self.kind is Kind.NAT else Variable(self.name)


@filled_at_once
@dataclass(frozen=True, slots=True)
class Scheme(Remembers):
    """Dependent parameters, then a type in which they are free."""

    parameters: tuple[Parameter, ...]
    type: Type

    def instantiate(self, given: tuple[Argument, ...]) -> Type:
        return substitute_type(self.type, dict(zip(self.keys, given, strict=True)))

    @cached_property
    def keys(self) -> tuple[Atom | Variable, ...]:
        return tuple(p.key for p in self.parameters)

    @cached_property
    def text(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return "".join(f"{_show_parameter(p)} -> " for p in self.parameters) + str(self.type)


def _show_parameter(parameter: Parameter) -> str:
    opening, closing = "{}" if parameter.implicit else "()"
    default = f" = {parameter.default}" if parameter.default is not None else ""
    return f"{opening}{parameter.name}: {parameter.kind.value}{default}{closing}"


def array(*parts: Nat | int | Data) -> Data:
    """The type of an array, the outermost size first: array(m, n, F32) is m.n.f32."""
    [result] = (part for part in parts if not isinstance(part, Nat | int))
    for size in reversed([part for part in parts if isinstance(part, Nat | int)]):
        result = Array(nat(size), result)
    return result
