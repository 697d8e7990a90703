"""Any high-level program on a GPU: the outermost map over all threads, the rest one after the other.

A result is written by loops. What is read on the way is evaluated where it is read, if that takes no
loop; otherwise it is stored in the thread's own memory first:

* a map before a loop is done in the loop, on the element that is needed;
* an array that takes loops to compute, and is read in another way, is stored by the thread that reads it;
* a result that depends on a stored array is written element by element, each thread storing what its
  own elements need;
* a result that is not an array of independent elements (a scan, an iteration) is one thread's work.

A program that has levels keeps them; what is still high-level inside of them becomes loops.
"""

from __future__ import annotations

from rewrites import algorithmic as a
from rewrites import lowering as low
from rewrites import movement as m
from rewrites import selection as choose
from rewrites import storing
from rewrites.memory import STORED
from rewrites.result import Failure, Result, Success
from rise.expr import Apply, Expr, Identifier, Lambda, Primitive, call, children, subterms
from rise.normal import is_view
from rise.types import Array, Index, Pair, Scalar, Type, Vector
from strategies.core import Rewrite, Strategy, at_child, choice, depending, normalize, seq
from strategies.places import computes, in_inputs, mapped

IN_LOCAL = next(rule for rule in STORED if rule.name == "toMem(Local)")

# functions applied to data as lets; reductions as folds, with the maps before them inside, also those
# before views of what they map; of what an element is taken, only that element
folds = normalize(
    choice(
        storing.APPLIED_AS_LET,
        storing.MAP_FIRST_NAMED,
        storing.MAP_SECOND_NAMED,
        a.MAP_FUSION,
        a.REDUCE_MAP,
        low.REDUCE_SEQ,
        a.REDUCE_SEQ_MAP,
        low.SCAN_SEQ,
        m.SLIDE_MAP,
        m.SPLIT_MAP,
        m.TAKE_MAP,
        m.DROP_MAP,
        choose.IDX_MAP,
        choose.IDX_GENERATE,
        choose.IDX_ZIP,
    )
)
to_element = normalize(
    choice(storing.IDX_LET, choose.IDX_MAP, choose.IDX_GENERATE, choose.IDX_ZIP, choose.IDX_SELECT)
)

loops = normalize(choice(low.REDUCE_SEQ, low.SCAN_SEQ))

LOOP = low.MAP_SEQ
GRID = low.MAP_GLOBAL.with_sizes(d=0)
PARALLEL = frozenset({
    "mapGlobal", "mapCluster", "mapBlock", "mapThreads", "mapWarpGroup", "mapWarp", "mapLane",
})  # fmt: skip
MAPS = PARALLEL | {"mapSeq", "mapSeqUnroll"}
FOLDS = frozenset({"reduceSeq", "reduceSeqUnroll"})
# views that a result can be written through
WRITTEN_THROUGH = frozenset({"split", "join", "transpose", "unzip", "reorder", "map"})
# groups of primitives, and others, that take commands to compute
COMMANDS = frozenset({"levels", "memory", "tensor", "reduce", "scan", "iterate", "scatter"})
# what is cheap enough to store: bytes
SMALL = 1024


def default() -> Strategy:
    """The outermost map over all threads of the grid, everything else sequential; for any program."""
    return Strategy("default", in_inputs(Strategy("lowered", _lowered)))


def _lowered(term: Expr) -> Result:
    if has_levels(term):
        return seq(loops, written(LOOP))(term)
    return seq(folds, depending(lambda new: written(GRID if independent(new) else LOOP)))(term)


def has_levels(term: Expr) -> bool:
    """Whether a program says what is done in parallel."""
    return any(isinstance(part, Primitive) and part.name in PARALLEL for part in subterms(term))


# --- what a term is -------------------------------------------------------------------------------------


def has_array(type_: Type) -> bool:
    match type_:
        case Array():
            return True
        case Pair(first, second):
            return has_array(first) or has_array(second)
        case _:
            return False


def is_expression(term: Expr) -> bool:
    """Whether a term can be evaluated where it is read, without a loop or memory."""
    if isinstance(term, Primitive):
        return term.name not in COMMANDS and term.declaration.group not in COMMANDS
    return all(map(is_expression, children(term)))


def is_applied(term: Expr) -> bool:
    """Whether a term is a function written in place, applied."""
    return isinstance(term, Apply) and isinstance(term.function, Lambda)


def independent(term: Expr) -> bool:
    """Whether the elements of all parts of a result can be computed each by itself."""
    applied = call(term)
    if not has_array(term.type):
        return False
    if applied is None or not applied[2]:
        return True
    name, _, operands = applied
    match name:
        case "pair" | "zip" | "concat" | "makeArray":
            return all(map(independent, operands))
        case "let":
            function = operands[1]
            stored = has_array(operands[0].type) and not is_expression(operands[0])
            several = isinstance(term.type, Pair) and stored
            return isinstance(function, Lambda) and not several and independent(function.body)
        case "scanSeq" | "iterate" | "scatter" | "reduceSeq" | "reduceSeqUnroll":
            return False
        case _ if name in WRITTEN_THROUGH - {"map"}:
            return independent(operands[-1])
        case _:
            return isinstance(term.type, Array) or is_expression(term)


def bytes_of(type_: Type) -> int | None:
    """The size of data in memory; None where it depends on sizes that are not known yet."""
    match type_:
        case Array(size, element) | Vector(size, element):
            inner = bytes_of(element)
            return None if inner is None or size.value is None else size.value * inner
        case Pair(first, second):
            one, other = bytes_of(first), bytes_of(second)
            return None if one is None or other is None else one + other
        case Scalar():
            return type_.bytes
        case Index():
            return 4
        case _:
            return None


# --- writing --------------------------------------------------------------------------------------------


def written(level: Rewrite) -> Strategy:
    """Gives levels to the maps that write a result: `level` to the outermost, loops to those inside."""

    def run(term: Expr) -> Result:
        if is_applied(term):
            return seq(storing.APPLIED_AS_LET, run)(term)
        applied = call(term)
        name = applied[0] if applied is not None else ""
        if name == "let":
            return _let(term)
        if not has_array(term.type):
            return readable(term)
        if name in FOLDS:
            return fold(term)
        if name == "iterate":
            return iteration(term)
        if isinstance(term.type, Pair):
            return _pair(term, name)
        return _array(term, name)

    def _pair(term: Expr, name: str) -> Result:
        if name == "pair":
            return each_operand(run)(term)
        if name == "unzip":
            return at_child(1, run, term)
        if name == "toMem":
            return readable(term)
        if name and not is_expression(term):
            return seq(readable, storing.NAMED, run)(term)
        return seq(storing.PAIR_OF_MEMBERS, run)(term)

    def _array(term: Expr, name: str) -> Result:
        if name == "zip" or name == "concat" or (name == "makeArray" and has_array(term.type.element)):  # type: ignore[union-attr]
            return each_operand(run)(term)
        if name == "makeArray":
            return each_operand(readable)(term)
        if name in MAPS:
            return seq(mapped(written(LOOP)), operand(loop_operand))(term)
        if name == "scanSeq":
            return fold(term)
        if name == "scatter":
            return seq(operand(written(LOOP)), nth_operand(0, readable))(term)
        if name == "generate":
            return seq(a.GENERATE_AS_MAP, run)(term)
        if computes(term):
            return _map(term)
        if name in WRITTEN_THROUGH and writes_below(term):
            return operand(run)(term)
        if name in ("toMem", "asMatrix", "padEmpty", "asScalar", "asVector", "asVectorAligned"):
            return operand(run)(term) if name != "toMem" else readable(term)
        return seq(a.MAP_NOTHING, _map)(term)

    def _map(term: Expr) -> Result:
        if level is not LOOP and not is_expression(source(term)):
            return seq(choose.ARRAY_AS_GENERATE, to_element, _generated)(term)
        return seq(level, mapped(written(LOOP)), operand(loop_operand))(term)

    def _generated(term: Expr) -> Result:
        return seq(a.GENERATE_AS_MAP, level, mapped(written(LOOP)))(term)

    def _let(term: Expr) -> Result:
        _, _, (value, _) = call(term)  # type: ignore[misc]  # a let has two operands
        stored = has_array(value.type) and not is_expression(value)
        if stored and level is not LOOP and isinstance(term.type, Array):
            return seq(choose.ARRAY_AS_GENERATE, to_element, _generated)(term)
        inside = kept if level is LOOP else readable
        return seq(nth_operand(0, inside), nth_operand(1, in_function(run)))(term)

    return Strategy("written", run)


def source(term: Expr) -> Expr:
    """The array under the maps that a loop over a term does on the way."""
    applied = call(term)
    while applied is not None and applied[0] == "map" and len(applied[2]) == 2:
        term = applied[2][1]
        applied = call(term)
    return term


def writes_below(term: Expr) -> bool:
    """Whether under views that can be written through there is something that is computed."""
    while True:
        applied = call(term)
        if applied is None or not applied[2]:
            return False
        name, _, operands = applied
        if (
            computes(term)
            or name in ("generate", "let", "scanSeq", "iterate", "scatter")
            or name in FOLDS | MAPS
        ):
            return True
        if name not in WRITTEN_THROUGH or (name == "map" and not rearranges(operands[0])):
            return False
        term = operands[-1]


def rearranges(function: Expr) -> bool:
    """A function of one array that only passes it through views which can be written through."""
    if not isinstance(function, Lambda):
        return False
    term = function.body
    while (applied := call(term)) is not None and applied[0] in WRITTEN_THROUGH - {"map"}:
        term = applied[2][-1]
    return isinstance(term, Identifier) and term.name == function.parameter.name


# --- reading --------------------------------------------------------------------------------------------


def _readable(term: Expr) -> Result:
    """Stores what is read and takes loops to compute."""
    if is_expression(term):
        return Success(term)
    if is_applied(term):
        return seq(storing.APPLIED_AS_LET, readable)(term)
    applied = call(term)
    if applied is None:
        return Success(term)
    name, head, _ = applied
    if name == "let":
        return seq(nth_operand(0, kept), nth_operand(1, in_function(readable)))(term)
    if name in FOLDS:
        return fold(term)
    if name == "iterate":
        return iteration(term)
    if name == "toMem":
        return operand(written(LOOP))(term)
    if name in ("map", "generate", "scanSeq", "scatter") or name in MAPS:
        return stored(term)
    if head.declaration.group in ("tensor", "memory", "levels"):
        return Success(term)
    return each_operand(readable)(term)


readable = Strategy("readable", _readable)


def _kept(term: Expr) -> Result:
    """What gets a name within one thread's work: an array is stored, if it is computed and small."""
    size = bytes_of(term.type)
    small = size is not None and size <= SMALL
    if has_array(term.type) and is_expression(term) and not is_view(term) and small:
        return stored(term)
    return readable(term)


kept = Strategy("kept", _kept)


def _stored(term: Expr) -> Result:
    return seq(written(LOOP), IN_LOCAL)(term)


stored = Strategy("stored", _stored)


def _loop_operand(term: Expr) -> Result:
    """What a loop ranges over: a map is done in the loop."""
    applied = call(term)
    if applied is not None and applied[0] == "map" and not is_expression(term):
        return seq(mapped(readable), operand(loop_operand))(term)
    return readable(term)


loop_operand = Strategy("loop operand", _loop_operand)


# --- folds and iterations -------------------------------------------------------------------------------


def _fold(term: Expr) -> Result:
    """Initial value and step are written by loops where they are arrays."""
    position = 0 if call(term)[0] in FOLDS else 1  # type: ignore[index]  # of the accumulator

    def step(function: Expr) -> Result:
        names: list[str] = []
        body = function
        while isinstance(body, Lambda) and len(names) < 2:
            names.append(body.parameter.name)
            body = body.body
        if len(names) < 2:
            return Failure("default", function, "the step of this fold is not a function of two")
        simple = not has_array(body.type) or has_levels(body) or in_place(body, names[position])
        inner = written(LOOP) if simple else seq(written(LOOP), IN_LOCAL, storing.NAMED, written(LOOP))
        return at_child(0, lambda f: at_child(0, inner, f), function)

    def initial(value: Expr) -> Result:
        return Success(value) if is_view(value) else written(LOOP)(value)

    return seq(operand(loop_operand), nth_operand(1, initial), nth_operand(0, step))(term)


fold = Strategy("fold", _fold)


def in_place(body: Expr, name: str) -> bool:
    """Whether each element of the new accumulator needs no other element of the old one than itself."""
    if name not in body.free or (isinstance(body, Identifier) and body.name == name):
        return True
    applied = call(body)
    if applied is None or isinstance(body.type, Pair):
        return False
    head, _, operands = applied
    if head in FOLDS:
        function, start, xs = operands
        return is_view(start) and in_place(start, name) and name not in function.free | xs.free
    if head not in MAPS | {"map"} or not isinstance(function := operands[0], Lambda):
        return False
    return name not in function.free and aligned(operands[1], name) and elementwise(function)


def aligned(term: Expr, name: str) -> bool:
    """Whether an array is the accumulator, or it zipped with other arrays."""
    applied = call(term)
    if applied is not None and applied[0] == "zip":
        return all(aligned(part, name) for part in applied[2])
    return name not in term.free or isinstance(term, Identifier)


def elementwise(function: Lambda) -> bool:
    """Whether a function gives no array: then it reads one element, and writes it."""
    return not has_array(function.body.type)


def _iteration(term: Expr) -> Result:
    turn = in_function(in_function(written(LOOP)))
    return seq(operand(readable), nth_operand(0, turn))(term)


iteration = Strategy("iteration", _iteration)


# --- places ---------------------------------------------------------------------------------------------


def in_function(s: Rewrite) -> Strategy:
    """In the body of a function, of data or of a size."""
    return Strategy("in_function", lambda term: at_child(0, s, term))


def operand(s: Rewrite) -> Strategy:
    """In the last argument."""
    return Strategy("operand", lambda term: at_child(1, s, term))


def nth_operand(position: int, s: Rewrite) -> Strategy:
    """In an argument of a primitive, by number."""

    def run(term: Expr) -> Result:
        applied = call(term)
        above = len(applied[2]) - 1 - position if applied is not None else 0

        def down(part: Expr, left: int) -> Result:
            return at_child(1, s, part) if left == 0 else at_child(0, lambda f: down(f, left - 1), part)

        return down(term, above)

    return Strategy("nth_operand", run)


def each_operand(s: Rewrite) -> Strategy:
    """In every argument that is data."""

    def run(term: Expr) -> Result:
        if not isinstance(term, Apply):
            return Success(term)
        return seq(*(nth_operand(n, s) for n in range(len(call(term)[2]))))(term)  # type: ignore[index]

    return Strategy("each_operand", run)
