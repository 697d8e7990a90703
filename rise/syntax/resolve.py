"""From types as written to `rise.types`: every name gets its kind, every size its normal form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from rise.errors import ScopeError
from rise.nat import (
    Nat,
    TooLarge,
    ceiling_quotient,
    constant,
    divides,
    maximum,
    minimum,
    power,
    quotient,
    remainder,
    variable,
)
from rise.suggest import nearest
from rise.syntax.foreign_idioms import type_hint
from rise.syntax.surface import (
    Binary,
    Call,
    KindedName,
    Name,
    NatLambda,
    Number,
    Surface,
    SurfaceType,
    Tuple,
    TypeApplication,
    TypeArray,
    TypeDependent,
    TypeFunction,
    TypeName,
    TypeNumber,
    TypeOperation,
    TypePair,
    Unary,
)
from rise.types import (
    ROW_MAJOR,
    SCALARS,
    Argument,
    Array,
    Data,
    Dependent,
    Fragment,
    FragmentKind,
    Function,
    Index,
    Kind,
    Layout,
    NatFunction,
    Pair,
    Space,
    Type,
    Variable,
    Vector,
)

Kinds = Mapping[str, Kind]
A = TypeVar("A")

KINDS = {kind.value: kind for kind in Kind}
SPACES = {space.value: space for space in Space}
FRAGMENT_KINDS = {kind.value: kind for kind in FragmentKind}

# what the arguments of a type written `Name[…]` are, in order
APPLICATIONS: Mapping[str, tuple[Kind, ...]] = {
    "Array": (Kind.NAT, Kind.DATA),
    "Idx": (Kind.NAT,),
    "Vec": (Kind.NAT, Kind.DATA),
    "Fragment": (Kind.NAT, Kind.NAT, Kind.NAT, Kind.DATA, Kind.FRAGMENT),
}
CONSTRUCTORS: Mapping[str, Callable[..., Data]] = {
    "Array": Array,
    "Idx": Index,
    "Vec": Vector,
    "Fragment": Fragment,
}

# what the amount of a layout may be; None: any size
LAYOUTS: Mapping[str, tuple[int, ...] | None] = {"padded": None, "swizzled": (32, 64, 128)}

# a kind in the words of a message
NOUNS = {
    Kind.NAT: "size",
    Kind.DATA: "data type",
    Kind.SPACE: "address space",
    Kind.FRAGMENT: "kind of fragment",
    Kind.FUNCTION: "function on sizes",
    Kind.LAYOUT: "layout",
}


# --- types --------------------------------------------------------------------------------------


def resolve_type(surface: SurfaceType, kinds: Kinds) -> Type:
    """The type written, a function or a data type; `kinds` has the dependent names in scope."""
    match surface:
        case TypeFunction(parameter, result):
            return Function(resolve_type(parameter, kinds), resolve_type(result, kinds))
        case TypeDependent(parameters, implicit, result):
            inner = bind(parameters, kinds)
            type_ = resolve_type(result, inner)
            for bound in reversed(parameters):
                type_ = Dependent(bound.name, inner[bound.name], type_, implicit)
            return type_
        case _:
            return resolve_data(surface, kinds)


def resolve_data(surface: SurfaceType, kinds: Kinds) -> Data:
    """The data type written: what an array may hold."""
    match surface:
        case TypeName():
            return _named(surface, Kind.DATA, kinds, SCALARS)
        case TypeArray(size, element):
            return Array(resolve_nat(size, kinds), resolve_data(element, kinds))
        case TypePair(first, second):
            return Pair(resolve_data(first, kinds), resolve_data(second, kinds))
        case TypeApplication(name) if name not in LAYOUTS:
            return _resolve_application(surface, kinds)
        case _:
            raise _wrong_kind(surface, Kind.DATA)


def _resolve_application(surface: TypeApplication, kinds: Kinds) -> Data:
    name, expected = surface.name, APPLICATIONS.get(surface.name)
    if expected is None:
        array = f"an array of 4 such is `4.{name}`" if name in SCALARS else None
        message, hint = f"there is no type `{name}[…]`", array or _did_you_mean(name, APPLICATIONS)
        raise ScopeError("R0202", message, surface.span, hint)
    if len(surface.arguments) != len(expected):
        count = f"{len(expected)} argument{'s' if len(expected) > 1 else ''}"
        message = f"`{name}` takes {count}, {len(surface.arguments)} given"
        raise ScopeError("R0204", message, surface.span, f"write `{_form(name)}`")
    pairs = zip(surface.arguments, expected, strict=True)
    return CONSTRUCTORS[name](*(resolve_argument(a, kind, kinds) for a, kind in pairs))


def bind(parameters: Iterable[KindedName], kinds: Kinds) -> dict[str, Kind]:
    """The kinds in scope below dependent parameters; each has to have a name of its own."""
    scope = dict(kinds)
    for parameter in parameters:
        kind = KINDS.get(parameter.kind)
        if kind is None:
            message = f"there is no kind `{parameter.kind}`"
            raise ScopeError("R0202", message, parameter.span, _did_you_mean(parameter.kind, KINDS))
        if parameter.name in scope:
            message = f"the parameter `{parameter.name}` shadows another of that name"
            raise ScopeError("R0205", message, parameter.span, "give one of them another name")
        scope[parameter.name] = kind
    return scope


# --- arguments of every kind --------------------------------------------------------------------


def resolve_argument(surface: SurfaceType, kind: Kind, kinds: Kinds) -> Argument:
    """What is written, read as an argument for a dependent parameter of the given kind."""
    match kind:
        case Kind.NAT:
            return resolve_nat(surface, kinds)
        case Kind.DATA:
            return resolve_data(surface, kinds)
        case Kind.SPACE:
            return _resolve_constant(surface, kind, kinds, SPACES)
        case Kind.FRAGMENT:
            return _resolve_constant(surface, kind, kinds, FRAGMENT_KINDS)
        case Kind.LAYOUT if isinstance(surface, TypeApplication) and surface.name in LAYOUTS:
            return _resolve_layout(surface, kinds)
        case Kind.LAYOUT:
            return _resolve_constant(surface, kind, kinds, {ROW_MAJOR.name: ROW_MAJOR})
        case Kind.FUNCTION:
            return _resolve_constant(surface, kind, kinds, {})


def _resolve_layout(surface: TypeApplication, kinds: Kinds) -> Layout:
    """`padded(p)` or `swizzled(bytes)`."""
    name, allowed = surface.name, LAYOUTS[surface.name]
    if len(surface.arguments) != 1:
        message = f"`{name}` takes 1 argument, {len(surface.arguments)} given"
        raise ScopeError("R0204", message, surface.span, f"write `{name}({allowed[-1] if allowed else 8})`")
    amount = resolve_nat(surface.arguments[0], kinds)
    if allowed and amount.value is not None and amount.value not in allowed:
        *most, last = (str(bytes_) for bytes_ in allowed)
        message = f"memory is swizzled in rows of {', '.join(most)} or {last} bytes, not of {amount}"
        raise ScopeError("R0204", message, surface.arguments[0].span)
    return Layout(name, amount)


def resolve_nat_function(surface: NatLambda, kinds: Kinds) -> NatFunction:
    """`natFun(i => size)`; its parameter hides an outer one."""
    inner = {**kinds, surface.parameter: Kind.NAT}
    return NatFunction(surface.parameter, resolve_nat(surface.body, inner))


def _resolve_constant(
    surface: SurfaceType, kind: Kind, kinds: Kinds, constants: Mapping[str, A]
) -> A | Variable:
    if isinstance(surface, TypeName):
        return _named(surface, kind, kinds, constants)
    raise _wrong_kind(surface, kind)


def _named(surface: TypeName, kind: Kind, kinds: Kinds, constants: Mapping[str, A]) -> A | Variable:
    """A variable of that kind, or one of its constants."""
    name = surface.name
    if kinds.get(name) is kind:
        return Variable(name)
    if name in constants and name not in kinds:
        return constants[name]
    if _kind_of(name, kinds) is None:
        raise _unknown(surface, kind, kinds, constants)
    raise _wrong_kind(surface, kind, kinds)


# --- sizes --------------------------------------------------------------------------------------


def resolve_nat(surface: SurfaceType, kinds: Kinds) -> Nat:
    """The size written, in normal form."""
    match surface:
        case TypeNumber(value):
            return constant(value)
        case TypeName(name):
            if kinds.get(name) is Kind.NAT:
                return variable(name)
            if _kind_of(name, kinds) is None:
                raise _unknown(surface, Kind.NAT, kinds, {})
            raise _wrong_kind(surface, Kind.NAT, kinds)
        case TypeOperation(operator, left, right):
            a, b = resolve_nat(left, kinds), resolve_nat(right, kinds)
            if operator in ("/", "%", "ceildiv") and b.value == 0:
                raise ScopeError("R0214", "a size is divided by zero", surface.span)
            try:
                return SIZE_OPERATIONS[operator](a, b)
            except TooLarge as error:
                raise error.at(surface.span) from None
        case _:
            raise _wrong_kind(surface, Kind.NAT)


def _divide(left: Nat, right: Nat) -> Nat:
    """Exact where that is certain, else rounded down."""
    exact = left.exact_quotient(right) if divides(right, left) else None
    return quotient(left, right) if exact is None else exact


SIZE_OPERATIONS: Mapping[str, Callable[[Nat, Nat], Nat]] = {
    "+": Nat.__add__,
    "-": Nat.__sub__,
    "*": Nat.__mul__,
    "/": _divide,
    "%": remainder,
    "^": power,
    "ceildiv": ceiling_quotient,
    "min": minimum,
    "max": maximum,
}


# --- values that turn out to be types -----------------------------------------------------------


def as_type(surface: Surface) -> SurfaceType:
    """An argument read as a size or a type: `split(n/2)` is written like a value.

    What can be neither is an error R0203.
    """
    match surface:
        case Name(name, span):
            return TypeName(name, span)
        case TypeApplication():
            return surface
        case Number(bool()):
            pass
        case Number(int() as value, span) if value >= 0:
            return TypeNumber(value, span)
        case Number(int() as value, span):
            return TypeOperation("-", TypeNumber(0, span), TypeNumber(-value, span), span)
        case Unary("-", operand, span):
            return TypeOperation("-", TypeNumber(0, span), as_type(operand), span)
        case Binary(operator, left, right, span) if operator in SIZE_OPERATIONS:
            return TypeOperation(operator, as_type(left), as_type(right), span)
        case Call(Name(name), (left, right), span) if name in SIZE_OPERATIONS:
            return TypeOperation(name, as_type(left), as_type(right), span)
        case Call(Name(name), given, span) if name in LAYOUTS:
            return TypeApplication(name, tuple(as_type(a) for a in given), span)
        case Tuple(first, second, span):
            return TypePair(as_type(first), as_type(second), span)
    raise ScopeError("R0203", "a value stands where a size or a type is needed", surface.span)


# --- mistakes -----------------------------------------------------------------------------------


def _kind_of(name: str, kinds: Kinds) -> Kind | None:
    if name in kinds:
        return kinds[name]
    families: Iterable[tuple[Kind, Iterable[str]]] = (
        (Kind.DATA, SCALARS),
        (Kind.SPACE, SPACES),
        (Kind.FRAGMENT, FRAGMENT_KINDS),
        (Kind.LAYOUT, (ROW_MAJOR.name, *LAYOUTS)),
    )
    return next((kind for kind, names in families if name in names), None)


def _wrong_kind(surface: SurfaceType, needed: Kind, kinds: Kinds | None = None) -> ScopeError:
    message = f"{_describe(surface, kinds or {})} stands where a {NOUNS[needed]} is needed"
    return ScopeError("R0203", message, surface.span)


def _describe(surface: SurfaceType, kinds: Kinds) -> str:
    match surface:
        case TypeName(name):
            kind = _kind_of(name, kinds)
            return f"the {NOUNS[kind]} `{name}`" if kind else f"`{name}`"
        case TypeNumber(value):
            return f"the size `{value}`"
        case TypeOperation():
            return "a size"
        case TypeFunction() | TypeDependent():
            return "a function type"
        case TypeApplication(name) if name in LAYOUTS:
            return "a layout"
        case _:
            return "a data type"


def _unknown(surface: TypeName, needed: Kind, kinds: Kinds, constants: Mapping[str, object]) -> ScopeError:
    """An unknown name; the hint proposes names of the needed kind only."""
    name, known = surface.name, [*constants, *(n for n, k in kinds.items() if k is needed)]
    hint = _did_you_mean(name, known)
    if needed is Kind.DATA and (known_elsewhere := type_hint(name)):
        hint = known_elsewhere
    if hint is None and name in KINDS:
        hint = f"`{name}` is a kind: `(x: {name}) => …` takes one"
    if hint is None and (kind := nearest(name, KINDS, 0.6)):
        hint = f"did you mean the kind `{kind}`?"
    if hint is None and name in APPLICATIONS:
        hint = f"write `{_form(name)}`"
    if hint is None and needed is Kind.NAT:
        hint = (
            f"declare it: `def f({name}: Nat)(…) = …`, or `def f{{{name}: Nat}}(…) = …` where it is inferred"
        )
    return ScopeError("R0202", f"there is no {NOUNS[needed]} `{name}`", surface.span, hint)


def _did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The nearest known name; a difference in case alone is near."""
    close = nearest(name, known, 0.6)
    return f"did you mean `{close}`?" if close else None


def _form(name: str) -> str:
    """`Array[size, data type]`"""
    return f"{name}[{', '.join(NOUNS[kind] for kind in APPLICATIONS[name])}]"
