"""Tensor cores: Listing 3 of the extended abstract, case by case."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir import imperative as i
from codegen.ir.buffers import inner_element
from codegen.ir.data import data
from codegen.ir.fragments import ROWS_BY_QUADS, SAME_ROW, Regrouped, family_of, regrouped, row_register
from codegen.ir.scalar_temporaries import less
from codegen.lower.translate import (
    Call,
    Continuation,
    Environment,
    Translator,
    accept_at,
    accepting,
    at,
    continuing,
)
from codegen.lower.views import Path, Sizes, index_of, reading, writing, zip_path
from rise.errors import TranslationError
from rise.expr import Apply, Expr, Identifier, Lambda, Primitive, alpha_equal, fresh_name, map_children
from rise.instructions import Family
from rise.nat import Nat, constant, quotient, remainder, variable
from rise.primitives.declare import REGISTRY, plain_pattern
from rise.source import Origin
from rise.types import I32, Array, Data, Fragment, FragmentKind, Space, as_data

CHAINS = 1
ALTERNATELY = "write it in the function of `mapFragment`, as in `alternately(1, 4)(exp2)(exp2Polynomial)(x)`"


def fragment_of(type_: Data) -> Fragment:
    if not isinstance(type_, Fragment):
        raise TypeError(str(type_))
    return type_


@accepting("tensorMatMulAdd")
def multiply(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    return translator.all(
        call.arguments,
        call.environment,
        lambda a, b, c: i.MmaFragment(target, a, b, c, call.origin),
    )


@accepting("asFragment")
def load(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    return translator.all(
        call.arguments,
        call.environment,
        lambda tile: i.LoadFragment(fragment_of(call.type), target, tile, call.origin),
    )


@continuing("asFragment")
def seen(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """An operand of wgmma stays in shared memory: the fragment is a view of its tile."""
    fragment = fragment_of(call.type)
    if family_of(fragment) is not Family.WGMMA or fragment.kind is FragmentKind.ACCUMULATOR:
        raise translator.unstored(call.primitive)
    return translator.continue_with(
        call.arguments[0],
        lambda tile: then(i.View(call.name, call.primitive.arguments, (tile,), fragment, call.origin)),
        call.environment,
    )


@accepting("asMatrix")
def store(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    fragment = fragment_of(data(call.arguments[0]))
    return translator.all(
        call.arguments,
        call.environment,
        lambda value: i.StoreFragment(fragment, target, value, call.origin),
    )


@accepting("generateFragment")
def fill(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    return translator.all(
        call.arguments,
        call.environment,
        lambda value: i.FillFragment(fragment_of(call.type), target, value, call.origin),
    )


@accepting("mapFragment")
def each_element(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    function, fragment = call.arguments

    def body(value: i.Expression) -> i.Command:
        index = translator.name("e")
        expr, inner = translator.apply(function, (at(value, index),), call.environment)
        with translator.computing(variable(index)):
            written = translator.accept(expr, accept_at(target, index), inner)
        return i.ForFragment(fragment_of(call.type), index, written, call.origin)

    return translator.continue_with(fragment, body, call.environment)


@continuing("alternately")
def one_of_two(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """con x λv. C(k·e mod n < k ? g(v) : f(v)), in the loop over registers e, which is unrolled."""
    first, second, argument = call.arguments
    register, share, period = translator.register, call.nat("k"), call.nat("n")
    if register is None:
        raise TranslationError("R0749", "`alternately` is in no `mapFragment`", call.origin, ALTERNATELY)
    if not period.value or share.value is None:
        message = f"`alternately({share}, {period})` has to say of how many registers"
        raise TranslationError("R0749", message, call.origin, ALTERNATELY)
    if not alpha_equal(_plain(first), _plain(second)):
        message = "the functions of `alternately` are not two ways to compute one function"
        raise TranslationError("R0749", message, call.origin, ALTERNATELY)
    here = less(remainder(register * share, period), share)
    x = Identifier(fresh_name("x", first.free | second.free), argument.type)

    def either(usual: Expr, environment: Environment) -> i.Command:
        return translator.all(
            (Apply(second, x), usual),
            environment,
            lambda there, elsewhere: then(i.Operator("select", (here, there, elsewhere), call.type)),
        )

    return translator.let(argument, Lambda(x, Apply(first, x)), call.environment, either)


def _plain(term: Expr) -> Expr:
    """A term with the primitives that others are ways to compute in their place."""
    match term:
        case Primitive(declaration) if declaration.lowers is not None:
            return replace(term, declaration=REGISTRY[plain_pattern(declaration)])
        case _:
            return map_children(term, _plain)


@continuing("zipFragment")
def together(translator: Translator, call: Call, then: Continuation) -> i.Command:
    return translator.all(
        call.arguments,
        call.environment,
        lambda *operands: then(i.View(call.name, call.primitive.arguments, operands, call.type)),
    )


@reading("zipFragment")
def zip_fragment(sizes: Sizes, path: Path) -> tuple[int, Path]:
    return zip_path(path)


# --- rows of accumulators -------------------------------------------------------------------------


@accepting("reduceRows")
def rows(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """new rows. rows[c][r] := z ; for e. rows[e mod 2][row of e] := op(rows[e mod 2][row of e], x[e]) ;
    rows[0] := op(rows[0], rows[1]) ; lanes of a row ; A := rows[0]

    Even and odd columns are two chains of operations that do not wait for each other. The lanes that hold a
    row exchange their results, so that each of them has the whole row's.
    """
    operator, initial, fragment = call.arguments
    column = fragment_of(call.type)
    chains = Array(constant(CHAINS), column) if CHAINS > 1 else column
    name = translator.name("rows", chains)
    every, places = i.Variable(name, chains), i.AcceptVariable(name, chains)
    own, place = _chain(every, constant(0)), _accept_chain(places, constant(0))

    def combined(value: i.Expression, index: str) -> i.Command:
        """rows[0][r] := op(rows[0][r], value), for the row r of a register."""
        expr, inner = translator.apply(operator, (at(own, index), value), call.environment)
        return translator.accept(expr, accept_at(place, index), inner)

    def reduced(value: i.Expression) -> i.Command:
        accumulator = fragment_of(data(fragment))
        start, each, exchanged = (translator.name("e") for _ in range(3))
        row = _row_of(accumulator, variable(each), call.origin)
        chain = chain_of(variable(each))
        given = at(_chain(every, chain), row), at(value, each)
        expr, inner = translator.apply(operator, given, call.environment)
        added = translator.accept(expr, accept_at(_accept_chain(places, chain), row), inner)
        exchanges = (
            combined(
                i.Operator("shuffleXor", (at(own, exchanged), i.Number(bit, I32)), column.element), exchanged
            )
            for bit in SAME_ROW
        )
        filled = [
            translator.accept(initial, accept_at(_accept_chain(places, constant(c)), start), call.environment)
            for c in range(CHAINS)
        ]
        copied, ends = translator.name("e"), translator.name("e")
        joined = [combined(at(_chain(every, constant(c)), ends), ends) for c in range(1, CHAINS)]
        return i.sequence(
            i.ForFragment(column, start, i.sequence(*filled), call.origin),
            i.ForFragment(accumulator, each, added, call.origin),
            *(i.ForFragment(column, ends, i.sequence(*joined), call.origin) for _ in joined[:1]),
            *(i.ForFragment(column, exchanged, exchange, call.origin) for exchange in exchanges),
            i.ForFragment(column, copied, i.Assign(accept_at(target, copied), at(own, copied), call.origin)),
        )

    body = translator.continue_with(fragment, reduced, call.environment)
    return i.New(Space.LOCAL, name, chains, body, call.origin)


def _chain(every: i.Expression, number: Nat) -> i.Expression:
    return at(every, number) if CHAINS > 1 else every


def _accept_chain(every: i.Acceptor, number: Nat) -> i.Acceptor:
    return accept_at(every, number) if CHAINS > 1 else every


def chain_of(e: Nat) -> Nat:
    return remainder(e, 2) + 2 * remainder(quotient(e, 4), CHAINS // 2) if CHAINS > 1 else constant(0)


@continuing("repeatColumn", "asOperands")
def seen_otherwise(translator: Translator, call: Call, then: Continuation) -> i.Command:
    return translator.all(
        call.arguments,
        call.environment,
        lambda value: then(i.View(call.name, call.primitive.arguments, (value,), call.type, call.origin)),
    )


@reading("repeatColumn")
def row_of_element(sizes: Sizes, path: Path) -> tuple[int, Path]:
    register, *rest = path
    return 0, (_row_of(_accumulator(sizes), index_of(register)), *rest)


def _row_of(accumulator: Fragment, register: Nat, origin: Origin = None) -> Nat:
    """The register of a column that holds the row of an accumulator's register. R0715 without one."""
    if family_of(accumulator) not in ROWS_BY_QUADS:
        message = f"four neighbouring threads do not hold the rows of `{accumulator}`"
        hint = "use fragments of `mma.sync`, 16 × 24, say, or of a warpgroup"
        raise TranslationError("R0715", message, origin, hint)
    return row_register(accumulator, register)


@accepting("asColumn")
def column_stored(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    column = fragment_of(data(call.arguments[0]))
    return translator.all(
        call.arguments, call.environment, lambda value: i.StoreFragment(column, target, value, call.origin)
    )


@accepting("asOperands")
def operands(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """acc(x)(A'), where an element of A' is the one of A that the same thread holds."""
    (value,) = call.arguments
    accumulator = fragment_of(data(value))
    _registers(accumulator, fragment_of(inner_element(call.type)), call.origin)
    return translator.accept(
        value, i.AcceptView(call.name, call.primitive.arguments, target, accumulator), call.environment
    )


@reading("asOperands")
def register_of_accumulator(sizes: Sizes, path: Path) -> tuple[int, Path]:
    tile, register, *rest = path
    return 0, (_of_view(sizes).of_accumulator(index_of(tile), index_of(register), sizes.facts), *rest)


@writing("asOperands")
def register_of_operand(sizes: Sizes, path: Path, _: int) -> Path:
    register, *rest = path
    return (*_of_view(sizes).of_operand(index_of(register), sizes.facts), *rest)


def _accumulator(sizes: Sizes) -> Fragment:
    """The accumulator that a view with these sizes makes."""
    return Fragment(
        sizes["m"], sizes["n"], sizes["k"], as_data(sizes.arguments["t"]), FragmentKind.ACCUMULATOR
    )


def _of_view(sizes: Sizes) -> Regrouped:
    """The registers of the operands that a view with these sizes makes."""
    m, n, k, element = sizes["m"], sizes["n"], sizes["k"], as_data(sizes.arguments["t"])
    accumulator = Fragment(m, sizes["c"] * k, k, element, FragmentKind.ACCUMULATOR)
    return _registers(accumulator, Fragment(m, k, n, element, FragmentKind.A))


def _registers(accumulator: Fragment, operand: Fragment, origin: Origin = None) -> Regrouped:
    """Each thread holds the same elements of the accumulator and of the operands."""
    found = regrouped(accumulator, operand)
    if found is None:
        raise TranslationError(
            "R0715",
            f"the threads that hold `{accumulator}` do not hold the same elements of `{operand}`",
            origin,
            "use fragments of 16 or 32 rows (`mma.sync`) or 64 rows (warpgroups), and operands of 16 bits",
        )
    return found
