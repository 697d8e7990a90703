"""Tensor cores: Listing 3 of the extended abstract, case by case."""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.ir.buffers import inner_element
from codegen.ir.data import data
from codegen.ir.fragments import ROWS_BY_QUADS, SAME_ROW, Regrouped, family_of, regrouped, row_register
from codegen.lower.translate import Call, Continuation, Translator, accept_at, accepting, at, continuing
from codegen.lower.views import Path, Sizes, index_of, reading, writing, zip_path
from rise.errors import TranslationError
from rise.instructions import Family
from rise.nat import Nat, variable
from rise.source import Origin
from rise.types import I32, Data, Fragment, FragmentKind, Space, as_data


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
        written = translator.accept(expr, accept_at(target, index), inner)
        return i.ForFragment(fragment_of(call.type), index, written, call.origin)

    return translator.continue_with(fragment, body, call.environment)


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
    """new rows. rows[r] := z ; for e. rows[row of e] := op(rows[row of e], x[e]) ; lanes of a row ; A := rows

    The lanes that hold a row exchange their results, so that each of them has the whole row's.
    """
    operator, initial, fragment = call.arguments
    column = fragment_of(call.type)
    name = translator.name("rows", column)
    own, place = i.Variable(name, column), i.AcceptVariable(name, column)

    def combined(value: i.Expression, index: str) -> i.Command:
        """rows[r] := op(rows[r], value), for the row r of a register."""
        expr, inner = translator.apply(operator, (at(own, index), value), call.environment)
        return translator.accept(expr, accept_at(place, index), inner)

    def reduced(value: i.Expression) -> i.Command:
        accumulator = fragment_of(data(fragment))
        start, each, exchanged = (translator.name("e") for _ in range(3))
        row = _row_of(accumulator, variable(each), call.origin)
        expr, inner = translator.apply(operator, (at(own, row), at(value, each)), call.environment)
        added = translator.accept(expr, accept_at(place, row), inner)
        exchanges = (
            combined(
                i.Operator("shuffleXor", (at(own, exchanged), i.Number(bit, I32)), column.element), exchanged
            )
            for bit in SAME_ROW
        )
        filled = translator.accept(initial, accept_at(place, start), call.environment)
        copied = translator.name("e")
        return i.sequence(
            i.ForFragment(column, start, filled, call.origin),
            i.ForFragment(accumulator, each, added, call.origin),
            *(i.ForFragment(column, exchanged, exchange, call.origin) for exchange in exchanges),
            i.ForFragment(column, copied, i.Assign(accept_at(target, copied), at(own, copied), call.origin)),
        )

    body = translator.continue_with(fragment, reduced, call.environment)
    return i.New(Space.LOCAL, name, column, body, call.origin)


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
