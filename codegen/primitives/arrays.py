"""Views: on the read side and on the write side a change of path, never code."""

from __future__ import annotations

from codegen import imperative as i
from codegen.paths import Path, Sizes, reading, rearranges, writing, zip_path
from codegen.translate import (
    Call,
    Continuation,
    Translator,
    accept_at,
    accepting,
    continuing,
)
from rise.errors import TranslationError
from rise.expr import Expr, Lambda
from rise.nat import Nat, NatVariable, nat, quotient, remainder, variable
from rise.types import Data, Function, Index

# --- reading ----------------------------------------------------------------------------------------------


@continuing("zip", "unzip", "split", "join", "transpose", "slide", "take", "drop", "pair", "fst", "snd")
def view(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """con(args) λx. C(View x)"""
    return translator.all(
        call.arguments,
        call.environment,
        lambda *operands: then(i.View(call.name, call.primitive.arguments, operands, call.type, call.origin)),
    )


@continuing("id")
def identity(translator: Translator, call: Call, then: Continuation) -> i.Command:
    return translator.all(call.arguments, call.environment, then)


@continuing("map")
def map_read(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """con xs λx. C(map(λa. f a) x): the function is evaluated where an element is read."""
    function, xs = call.arguments

    def body(array: i.Expression) -> i.Command:
        name = translator.name("element")
        element = i.Variable(name, array.type.element)  # type: ignore[union-attr]
        expr, inner = translator.apply(function, (element,), call.environment)
        return then(i.MapExpression(name, translator.pure(expr, inner, call.origin), array, call.type))

    return translator.continue_with(xs, body, call.environment)


def index_type(function: Expr) -> Data:
    """The Idx that a function given to generate takes."""
    type_ = function.type
    if not isinstance(type_, Function) or not isinstance(type_.parameter, Index):
        raise TranslationError("R0799", f"internal: generate of `{type_}`", function.origin)
    return type_.parameter


@continuing("generate")
def generate_read(translator: Translator, call: Call, then: Continuation) -> i.Command:
    (function,) = call.arguments
    name = translator.name("index")
    index = i.Natural(variable(name), index_type(function))
    expr, inner = translator.apply(function, (index,), call.environment)
    return then(i.GenerateExpression(name, translator.pure(expr, inner, call.origin), call.type))


@continuing("idx")
def element_read(translator: Translator, call: Call, then: Continuation) -> i.Command:
    def body(index: i.Expression, array: i.Expression) -> i.Command:
        return then(i.At(known_index(index, call), array, call.type))

    return translator.all(call.arguments, call.environment, body)


def known_index(index: i.Expression, call: Call) -> Nat:
    match index:
        case i.Natural(value, _):
            return value
        case i.Number(int() as value, _):
            return nat(value)
        case i.At(outer, i.GenerateExpression(parameter, i.Natural(value, _), _), _):
            return value.substitute({NatVariable(parameter): outer})
        case _:
            raise TranslationError("R0712", "an index that is data has no translation yet", call.origin)


@reading("zip")
def read_zip(_: Sizes, path: Path) -> tuple[int, Path]:
    return zip_path(path)


@reading("unzip")
def read_unzip(_: Sizes, path: Path) -> tuple[int, Path]:
    """fst :: i is i :: fst"""
    member, index, *rest = path
    return 0, (index, member, *rest)


@reading("pair")
def read_pair(_: Sizes, path: Path) -> tuple[int, Path]:
    return (0 if path[0] == "fst" else 1), path[1:]


@reading("fst")
def read_fst(_: Sizes, path: Path) -> tuple[int, Path]:
    return 0, ("fst", *path)


@reading("snd")
def read_snd(_: Sizes, path: Path) -> tuple[int, Path]:
    return 0, ("snd", *path)


@reading("split")
def read_split(sizes: Sizes, path: Path) -> tuple[int, Path]:
    """i :: j is n*i + j"""
    i_, j, *rest = path
    return 0, (sizes["n"] * nat(i_) + nat(j), *rest)  # type: ignore[arg-type]  # arrays are indexed by numbers


@reading("join")
def read_join(sizes: Sizes, path: Path) -> tuple[int, Path]:
    """i is i/m :: i%m"""
    index, *rest = path
    m = sizes["m"]
    return 0, (quotient(index, m, sizes.facts), remainder(index, m, sizes.facts), *rest)  # type: ignore[arg-type]


@reading("transpose")
def read_transpose(_: Sizes, path: Path) -> tuple[int, Path]:
    i_, j, *rest = path
    return 0, (j, i_, *rest)


@reading("slide")
def read_slide(sizes: Sizes, path: Path) -> tuple[int, Path]:
    """i :: j is i*step + j"""
    i_, j, *rest = path
    return 0, (nat(i_) * sizes["sp"] + nat(j), *rest)  # type: ignore[arg-type]


@reading("take")
def read_take(_: Sizes, path: Path) -> tuple[int, Path]:
    return 0, path


@reading("drop")
def read_drop(sizes: Sizes, path: Path) -> tuple[int, Path]:
    index, *rest = path
    return 0, (nat(index) + sizes["n"], *rest)  # type: ignore[arg-type]


# --- writing ----------------------------------------------------------------------------------------------


@accepting("split", "join", "transpose", "unzip")
def write_view(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """acc xs (ViewAcc A)"""
    (xs,) = call.arguments
    inner = i.AcceptView(call.name, call.primitive.arguments, target, xs.type)  # type: ignore[arg-type]
    return translator.accept(xs, inner, call.environment)


@accepting("zip", "pair")
def write_both(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """acc e1 (ZipAcc1 A) ; acc e2 (ZipAcc2 A)"""
    return i.sequence(
        *(
            translator.accept(
                expr,
                i.AcceptView(call.name, call.primitive.arguments, target, expr.type, number),  # type: ignore[arg-type]
                call.environment,
            )
            for number, expr in enumerate(call.arguments)
        )
    )


@accepting("map")
def write_map(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """acc xs (MapAcc f A), where f only rearranges."""
    function, xs = call.arguments
    if not isinstance(function, Lambda) or not rearranges(function.body, function.parameter.name):
        raise TranslationError(
            "R0701",
            f"the program does not say how this map writes its result of type `{call.type}`",
            call.origin,
            "use a level (mapBlock, mapWarp, mapSeq, …) for the map that computes it",
        )
    inner = i.AcceptMap(function.parameter.name, function.body, target, xs.type)  # type: ignore[arg-type]
    return translator.accept(xs, inner, call.environment)


@accepting("generate")
def write_generate(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """Each element by the thread that owns it: the target's distribution decides."""
    (function,) = call.arguments
    index = translator.name("i")
    natural = i.Natural(variable(index), index_type(function))
    expr, inner = translator.apply(function, (natural,), call.environment)
    written = translator.accept(expr, accept_at(target, index), inner)
    return i.For(index, call.nat("n"), written, unroll=True, owner=True, pattern="generate")


@writing("split")
def write_split(sizes: Sizes, path: Path, _: int) -> Path:
    """The operand's i is i/n :: i%n of the result."""
    index, *rest = path
    n = sizes["n"]
    return (quotient(index, n, sizes.facts), remainder(index, n, sizes.facts), *rest)  # type: ignore[arg-type]


@writing("join")
def write_join(sizes: Sizes, path: Path, _: int) -> Path:
    i_, j, *rest = path
    return (nat(i_) * sizes["m"] + nat(j), *rest)  # type: ignore[arg-type]


@writing("transpose")
def write_transpose(_: Sizes, path: Path, __: int) -> Path:
    i_, j, *rest = path
    return (j, i_, *rest)


@writing("unzip")
def write_unzip(_: Sizes, path: Path, __: int) -> Path:
    index, member, *rest = path
    return (member, index, *rest)


@writing("zip")
def write_zip(_: Sizes, path: Path, operand: int) -> Path:
    index, *rest = path
    return (index, "fst" if operand == 0 else "snd", *rest)


@writing("pair")
def write_pair(_: Sizes, path: Path, operand: int) -> Path:
    return ("fst" if operand == 0 else "snd", *path)
