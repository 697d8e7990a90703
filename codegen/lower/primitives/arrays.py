"""Views: they change paths, for reading and for writing, and generate no code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

from codegen.ir import imperative as i
from codegen.ir.data import data, element_type
from codegen.ir.launch import number
from codegen.lower.translate import (
    ACCEPTING,
    CONTINUING,
    Call,
    Continuation,
    Environment,
    Translator,
    accept_at,
    accepting,
    continuing,
)
from codegen.lower.views import (
    WRITING,
    Choice,
    Path,
    Reading,
    Sizes,
    divided,
    flattened,
    index_of,
    reading,
    rearranges,
    writing,
    zip_path,
)
from rise.errors import TranslationError
from rise.expr import DependentLambda, Expr, Lambda, Primitive, apply, spine, substitute_sizes
from rise.nat import Atom, Nat, NatVariable, constant, nat, variable
from rise.types import Argument, Data, Function, Index, Pair, Space, Unknown, Variable

# --- reading ----------------------------------------------------------------------------------------------


@continuing(
    "zip", "unzip", "split", "join", "transpose", "slide", "take", "drop", "reorder", "pair", "fst", "snd",
    "concat", "promoted", "padCst", "padClamp", "padEmpty", "prefix", "prefixes", "gather", "makeArray",
)  # fmt: skip
def view(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """con(args) λx. C(View x): a primitive that only rearranges, for `continuing`. `reading` says how."""
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
    """con xs λx. C(map(λa. f a) x): the function is evaluated when an element is read."""
    function, xs = call.arguments

    def body(array: i.Expression) -> i.Command:
        name = translator.name("element")
        parameter = i.Variable(name, element_type(array.type))
        expr, inner = translator.apply(function, (parameter,), call.environment)
        return then(i.MapExpression(name, translator.pure(expr, inner, call.origin), array, call.type))

    return translator.continue_with(xs, body, call.environment)


def index_type(function: Expr) -> Data:
    """The Idx type of the parameter of a function given to generate."""
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
    """con(e) λi. con(xs) λx. C(x[i]), where i is a sum of loop indices, or is first stored in an int"""

    def body(index: i.Expression, array: i.Expression) -> i.Command:
        known = known_index(index)
        if known is not None:
            return then(i.At(known, array, call.type))
        return then(i.View("idx", call.primitive.arguments, (index, array), call.type, call.origin))

    return translator.all(call.arguments, call.environment, body)


def known_index(index: i.Expression) -> Nat | None:
    """An index that is known without reading data."""
    match index:
        case i.Natural(value, _):
            return value
        case i.Number(int() as value, _):
            return nat(value)
        case i.At(outer, i.GenerateExpression(parameter, i.Natural(value, _), _), _):
            return value.substitute({NatVariable(parameter): outer})
        case _:
            return None


@continuing("natAsIndex", "indexAsNat")
def converted(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """A number as an index of the same value: the program guarantees that it is in range."""
    name = "indexToInt" if call.name == "indexAsNat" else call.name
    return translator.all(
        call.arguments, call.environment, lambda value: then(i.Operator(name, (value,), call.type))
    )


@continuing("mapFst", "mapSnd")
def member_read(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """con p λx. con(f(fst x)) λy. C((y, snd x))"""
    function, pair = call.arguments

    def body(value: i.Expression) -> i.Command:
        first, second = members_of(value)
        changed = first if call.name == "mapFst" else second
        expr, inner = translator.apply(function, (changed,), call.environment)

        def result(new: i.Expression) -> i.Command:
            parts = (new, second) if call.name == "mapFst" else (first, new)
            return then(i.View("pair", (), parts, call.type, call.origin))

        return translator.continue_with(expr, result, inner)

    return translator.continue_with(pair, body, call.environment)


def members_of(pair: i.Expression) -> tuple[i.Expression, i.Expression]:
    type_ = pair.type
    if not isinstance(type_, Pair):
        raise TranslationError("R0799", f"internal: members of `{type_}`")
    return i.View("fst", (), (pair,), type_.first), i.View("snd", (), (pair,), type_.second)


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
    return 0, flattened(sizes["n"], path)


@reading("join")
def read_join(sizes: Sizes, path: Path) -> tuple[int, Path]:
    """i is i/m :: i%m"""
    return 0, divided(sizes["m"], path, sizes.facts)


@reading("transpose")
def read_transpose(_: Sizes, path: Path) -> tuple[int, Path]:
    i_, j, *rest = path
    return 0, (j, i_, *rest)


@reading("slide")
def read_slide(sizes: Sizes, path: Path) -> tuple[int, Path]:
    """i :: j is i*step + j"""
    return 0, flattened(sizes["sp"], path)


@reading("take")
def read_take(_: Sizes, path: Path) -> tuple[int, Path]:
    return 0, path


@reading("drop")
def read_drop(sizes: Sizes, path: Path) -> tuple[int, Path]:
    index, *rest = path
    return 0, (index_of(index) + sizes["n"], *rest)


@reading("concat")
def read_concat(sizes: Sizes, path: Path) -> Reading:
    """i is i of the first array if i is below its size n, else i - n of the second"""
    index, *rest = path
    place = index_of(index)
    return Choice(place, sizes["n"], (0, path), (1, (place - sizes["n"], *rest)))


@reading("padCst")
def read_padded(sizes: Sizes, path: Path) -> Reading:
    """i is i - l of the array, operand 1, if that element exists"""
    index, *rest = path
    value, inner = (0, tuple(rest)), index_of(index) - sizes["l"]
    behind = Choice(inner, sizes["n"], (1, (inner, *rest)), value)
    return Choice(index_of(index), sizes["l"], value, behind)


@reading("padClamp")
def read_clamped(sizes: Sizes, path: Path) -> Reading:
    """i is i - l, or the nearest valid index"""
    index, *rest = path
    return 0, (sizes.clamped(index_of(index) - sizes["l"], sizes["n"] + 1), *rest)


@reading("padEmpty")
def read_extended(sizes: Sizes, path: Path) -> Reading:
    """Elements past the end have arbitrary values: reading the last element is always possible."""
    index, *rest = path
    return 0, (sizes.existing(index_of(index), sizes["n"]), *rest)


@reading("promoted")
def read_promoted(_: Sizes, path: Path) -> Reading:
    """p is p; `lower.box` asks for the bytes"""
    return 0, path


@reading("prefix")
def read_prefix(_: Sizes, path: Path) -> Reading:
    """i is i: elements that are undefined may be any"""
    return 1, path


@reading("prefixes")
def read_prefixes(sizes: Sizes, path: Path) -> Reading:
    """i, j is i, j, which is defined where j < count i"""
    number, row, *_ = path
    sizes.defined(index_of(row), lambda: sizes.element(0, (number,)))
    return 1, path


@reading("gather")
def read_gathered(sizes: Sizes, path: Path) -> Reading:
    """i is the i-th index"""
    index, *rest = path
    return 1, (sizes.element(0, (index,)), *rest)


@reading("idx")
def read_element(sizes: Sizes, path: Path) -> Reading:
    return 1, (sizes.element(0, ()), *path)


@reading("makeArray")
def read_listed(sizes: Sizes, path: Path) -> Reading:
    """i selects operand i: by binary search, if i is not known"""
    index, *rest = path

    def among(start: int, end: int) -> Reading:
        if end - start == 1:
            return start, tuple(rest)
        middle = (start + end) // 2
        return Choice(index_of(index), nat(middle), among(start, middle), among(middle, end))

    return among(0, sizes.operands)


@reading("reorder")
def read_reorder(sizes: Sizes, path: Path) -> tuple[int, Path]:
    """i is f(i)"""
    index, *rest = path
    return 0, (sizes.function("f")(index_of(index)), *rest)


# --- writing ----------------------------------------------------------------------------------------------


@accepting("split", "join", "transpose", "unzip", "reorder", "padEmpty")
def write_view(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """acc xs (ViewAcc A)"""
    (xs,) = call.arguments
    inner = i.AcceptView(call.name, call.primitive.arguments, target, data(xs))
    return translator.accept(xs, inner, call.environment)


@accepting("take")
def write_first(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """acc xs (TakeAcc A): xs is computed as a whole, and elements outside A are not written."""
    return write_view(translator, call, target)


@accepting("zip", "pair", "concat", "makeArray")
def write_each(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """acc e1 (ZipAcc1 A) ; acc e2 (ZipAcc2 A)"""
    return i.sequence(
        *(
            translator.accept(
                expr,
                i.AcceptView(call.name, call.primitive.arguments, target, data(expr), number),
                call.environment,
            )
            for number, expr in enumerate(call.arguments)
        )
    )


@accepting("idx")
def write_only_element(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """acc xs (IdxAcc A) if loops write xs, which has one element; else con(xs[i]) λx. A := x"""
    _, xs = call.arguments
    if call.nat("n") != constant(1) or not _is_written(xs):
        element = apply(call.primitive, *call.arguments, origin=call.origin)
        return translator.accept_value(element, target, call.environment)
    whole = i.AcceptView("idx", call.primitive.arguments, target, data(xs))
    return translator.accept(xs, whole, call.environment)


def _is_written(expr: Expr) -> bool:
    """Whether loops write an array, seen through views and names."""
    head, applications = spine(expr)
    if isinstance(head, Lambda) and applications:
        return _is_written(head.body)
    if not isinstance(head, Primitive) or not applications or head.name not in ACCEPTING:
        return False
    if head.name not in CONTINUING:
        return True
    last = applications[-1].argument
    return _is_written(last.body if head.name == "let" and isinstance(last, Lambda) else last)


@accepting("scatter", "prefixes")
def write_by_numbers(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """con(indices) λi. acc xs (ScatterAcc i A), and alike con(counts) λc. acc xss (PrefixesAcc c A)"""
    array, xs = call.arguments

    def body(numbers: i.Expression) -> i.Command:
        inner = i.AcceptView(call.name, call.primitive.arguments, target, data(xs), indices=numbers)
        return translator.accept(xs, inner, call.environment)

    return translator.continue_with(array, body, call.environment)


@accepting("scatterBy")
def write_owned(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """con(owners) λo. con(places) λp. acc xs (ScatterByAcc (o, p) A)"""
    owners, places, xs = call.arguments

    def body(owner: i.Expression, place: i.Expression) -> i.Command:
        both = i.View("pair", (), (owner, place), Pair(owner.type, place.type), call.origin)
        inner = i.AcceptView(call.name, call.primitive.arguments, target, data(xs), indices=both)
        return translator.accept(xs, inner, call.environment)

    return translator.all((owners, places), call.environment, body)


@accepting("prefix")
def write_prefix(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """con(count) λc. new n. n := c ; acc xs (PrefixAcc n A): the count is read once."""
    count, xs = call.arguments

    def body(value: i.Expression) -> i.Command:
        name = translator.name("count")
        variable_ = i.Variable(name, value.type)
        inner = i.AcceptView(call.name, call.primitive.arguments, target, data(xs), indices=variable_)
        written = translator.accept(xs, inner, call.environment)
        read = translator.assign(i.AcceptVariable(name, value.type), value, call.origin)
        return i.New(Space.LOCAL, name, value.type, i.sequence(read, written), call.origin)

    return translator.continue_with(count, body, call.environment)


@accepting("mapFst", "mapSnd")
def write_member(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """con p λx. acc(f(fst x))(PairAcc1 A) ; PairAcc2 A := snd x

    Where f only rearranges: acc p (MapFstAcc f A).
    """
    function, pair = call.arguments
    type_ = data(pair)
    if isinstance(type_, Pair) and _only_rearranges(function) and _computed_here(pair):
        member = int(call.name == "mapSnd")
        place = i.AcceptMember(function.parameter.name, function.body, member, target, type_)
        return translator.accept(pair, place, call.environment)

    def body(value: i.Expression) -> i.Command:
        parts: list[i.Command] = []
        for member, (name, part) in enumerate(zip(("mapFst", "mapSnd"), members_of(value), strict=True)):
            if name == call.name:
                expr, inner = translator.apply(function, (part,), call.environment)
                place = i.AcceptView("pair", (), target, data(expr), member)
                parts.append(translator.accept(expr, place, inner))
            else:
                place = i.AcceptView("pair", (), target, part.type, member)
                parts.append(translator.copy(place, part, call.origin))
        return i.sequence(*parts)

    return translator.continue_with(pair, body, call.environment)


def _only_rearranges(function: Expr) -> TypeGuard[Lambda]:
    return isinstance(function, Lambda) and rearranges(function.body, function.parameter.name)


def _computed_here(expr: Expr) -> bool:
    """Whether what is under views is computed where it is written, so that it cannot be read."""
    head, applications = spine(expr)
    if isinstance(head, Lambda):
        return _computed_here(head.body)
    if not isinstance(head, Primitive) or not applications:
        return False
    if head.name == "let" and isinstance(function := applications[-1].argument, Lambda):
        return _computed_here(function.body)
    if head.name in (*WRITING, "map", "mapFst", "mapSnd") and head.name not in ("zip", "pair"):
        return _computed_here(applications[-1].argument)
    return head.name in ACCEPTING and head.name not in CONTINUING


@accepting("map")
def write_map(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """acc xs (MapAcc f A), where f only rearranges."""
    function, xs = call.arguments
    if not _only_rearranges(function):
        raise TranslationError(
            "R0701",
            f"the program does not say how this map writes its result of type `{call.type}`",
            call.origin,
            "use a level (mapBlock, mapWarp, mapSeq, …) for the map that computes it",
        )
    inner = i.AcceptMap(function.parameter.name, function.body, target, data(xs))
    return translator.accept(xs, inner, call.environment)


@accepting("generate")
def write_generate(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """The owner of each element writes it: the distribution of the target decides."""
    (function,) = call.arguments
    index = translator.name("i")
    natural = i.Natural(variable(index), index_type(function))
    expr, inner = translator.apply(function, (natural,), call.environment)
    written = translator.accept(expr, accept_at(target, index), inner)
    return i.For(index, call.nat("n"), written, unroll=True, owner=True, label="generate", origin=call.origin)


# --- naming -------------------------------------------------------------------------------------------------


@continuing("let")
def bound(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """A computed scalar is stored once; anything else becomes a view."""
    return translator.let(
        call.arguments[0],
        call.arguments[1],
        call.environment,
        lambda expr, inner: translator.continue_with(expr, then, inner),
    )


@accepting("let")
def bound_result(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    return translator.let(
        call.arguments[0],
        call.arguments[1],
        call.environment,
        lambda expr, inner: translator.accept(expr, target, inner),
    )


# --- iterating ------------------------------------------------------------------------------------------

# at most this many iterations of equal size are unrolled; more become a loop
MOST_UNROLLED = 2


@accepting("iterate")
def write_iterated(translator: Translator, call: Call, target: i.Acceptor) -> i.Command:
    """The last iteration writes to the target."""
    if call.nat("k") == constant(0):
        return translator.continue_with(
            call.arguments[1], lambda value: translator.copy(target, value, call.origin), call.environment
        )
    return _iterate(translator, call, lambda last, environment: translator.accept(last, target, environment))


@continuing("iterate")
def read_iterated(translator: Translator, call: Call, then: Continuation) -> i.Command:
    """The last iteration also writes to a buffer."""
    if call.nat("k") == constant(0):
        return translator.continue_with(call.arguments[1], then, call.environment)

    def stored(last: Expr, environment: Environment) -> i.Command:
        return translator.store(Space.LOCAL, last, environment, then, "turn")

    return _iterate(translator, call, stored)


def _iterate(translator: Translator, call: Call, last: Callable[[Expr, Environment], i.Command]) -> i.Command:
    """con xs λx. new b1. acc(f x)(b1) ; new b2. acc(f b1)(b2) ; …: double buffering."""
    function, xs = call.arguments
    shorter, length = call.nat("n"), call.nat("m")
    iterations = number(call.nat("k"), "the number of iterations of an `iterate`")

    def iteration(left: int, value: i.Expression) -> tuple[Expr, Environment]:
        size = length
        for _ in range(left):
            size = size * shorter
        return translator.apply(at_size(function, size, call), (value,), call.environment)

    def unrolled(left: int, value: i.Expression) -> i.Command:
        expr, environment = iteration(left, value)
        if left == 0:
            return last(expr, environment)
        return translator.store(Space.LOCAL, expr, environment, lambda v: unrolled(left - 1, v), "turn")

    def looped(value: i.Expression) -> i.Command:
        """All but the last iteration: each writes the second buffer, which is then copied to the first."""
        names = [translator.name("turn", call.type) for _ in range(2)]
        here, there = (i.Variable(name, call.type) for name in names)
        target, replaced = (i.AcceptVariable(name, call.type) for name in reversed(names))
        expr, environment = iteration(0, here)
        step = translator.accept(expr, target, environment)
        replace_ = translator.copy(replaced, there, call.origin)
        index = translator.name("turn_number")
        loop = i.For(
            index, constant(iterations - 1), i.sequence(step, replace_), label=call.name, origin=call.origin
        )
        start = translator.copy(replaced, value, call.origin)
        body = i.sequence(start, loop, last(*iteration(0, here)))
        return i.New(
            Space.LOCAL, here.name, call.type, i.New(Space.LOCAL, there.name, call.type, body), call.origin
        )

    many = shorter == constant(1) and iterations > MOST_UNROLLED
    return translator.continue_with(
        xs, lambda value: looped(value) if many else unrolled(iterations - 1, value), call.environment
    )


def at_size(function: Expr, size: Nat, call: Call) -> Expr:
    """Instantiates a function of a size."""
    if not isinstance(function, DependentLambda):
        raise TranslationError("R0704", f"the function of `{call.name}` must be a literal", call.origin)
    sizes: dict[Atom | Variable | Unknown, Argument] = {NatVariable(function.name): size}
    return substitute_sizes(function.body, sizes)


# --- writing through views --------------------------------------------------------------------------------


@writing("split")
def write_split(sizes: Sizes, path: Path, _: int) -> Path:
    """The operand's i is i/n :: i%n of the result."""
    return divided(sizes["n"], path, sizes.facts)


@writing("join")
def write_join(sizes: Sizes, path: Path, _: int) -> Path:
    return flattened(sizes["m"], path)


@writing("transpose")
def write_transpose(_: Sizes, path: Path, __: int) -> Path:
    i_, j, *rest = path
    return (j, i_, *rest)


@writing("reorder")
def write_reorder(sizes: Sizes, path: Path, _: int) -> Path:
    """The operand's i is f⁻¹(i) of the result."""
    index, *rest = path
    return (sizes.function("finv")(index_of(index)), *rest)


@writing("take")
def write_taken(sizes: Sizes, path: Path, _: int) -> Path:
    """i is i, if that element exists"""
    sizes.only(index_of(path[0]), sizes["n"])
    return path


@writing("padEmpty")
def write_extended(_: Sizes, path: Path, __: int) -> Path:
    return path


@writing("scatter")
def write_scatter(sizes: Sizes, path: Path, _: int) -> Path:
    """The operand's i is the i-th index of the result."""
    index, *rest = path
    return (sizes.element(0, (index,)), *rest)


@writing("scatterBy")
def write_by_owners(sizes: Sizes, path: Path, _: int) -> Path:
    """The operand's i is the i-th place of the result, if i owns that."""
    index, *rest = path
    place = sizes.element(0, ("snd", index))
    sizes.same(index_of(index), sizes.element(0, ("fst", place)))
    return (place, *rest)


@writing("prefix")
def write_first_elements(sizes: Sizes, path: Path, _: int) -> Path:
    """i is i, if it is below the count"""
    sizes.only(index_of(path[0]), sizes.element(0, ()))
    return path


@writing("prefixes")
def write_first_of_rows(_: Sizes, path: Path, __: int) -> Path:
    """i, j is i, j: what is not below count i may be any; `lower.defined` says who computes nothing"""
    return path


@writing("concat")
def write_concat(sizes: Sizes, path: Path, operand: int) -> Path:
    index, *rest = path
    return (index_of(index) + operand * sizes["n"], *rest)


@writing("makeArray")
def write_listed(_: Sizes, path: Path, operand: int) -> Path:
    return (nat(operand), *path)


@writing("unzip")
def write_unzip(_: Sizes, path: Path, __: int) -> Path:
    index, member, *rest = path
    return (member, index, *rest)


@writing("idx")
def write_idx(_: Sizes, path: Path, __: int) -> Path:
    """0 :: p is p: the only element"""
    return path[1:]


@writing("zip")
def write_zip(_: Sizes, path: Path, operand: int) -> Path:
    index, *rest = path
    return (index, "fst" if operand == 0 else "snd", *rest)


@writing("pair")
def write_pair(_: Sizes, path: Path, operand: int) -> Path:
    return ("fst" if operand == 0 else "snd", *path)
