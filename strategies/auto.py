"""The strategy for any program: it is cut into kernels, and each gets the schedules of its family.

`tensor_core` takes the kernels that compute products of matrices, with remembered parameters or with those
that the cost model ranks first; `default` takes what no other schedule does. A candidate counts only if it
derives, and if it builds where that is tried (`first_that`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rewrites.lets import named_value
from rewrites.maps import LET_REPEATED
from rewrites.reductions import ARRAYS_BY_ELEMENTS
from rewrites.result import Failure, Result, Success
from rewrites.storing import GLOBAL_FIRST
from rewrites.unused import DROP_UNUSED
from rise.canonical import canonical
from rise.check.symbolic import RuntimeSize
from rise.errors import RiseError
from rise.expr import Expr, Identifier, Lambda, application, call, children, subterms
from rise.generator import Builds, refusal
from rise.types import Array, Pair, Type
from strategies.batches.threads import one_map
from strategies.complete import first_incomplete
from strategies.core import (
    FunctionStrategy,
    Rewrite,
    Strategy,
    check,
    choice,
    id_,
    normalize,
    prints_as_call,
    seq,
    try_,
)
from strategies.cuts import (
    columns_reduced,
    invariant_first,
    part_stored,
    rows_stored,
    scan_in_blocks,
    terms_stored,
    value_stored,
    values_stored,
)
from strategies.default import default, lowered_by, most_levels
from strategies.evaluation import bytes_of, has_array, has_levels, is_expression
from strategies.forms import FORMS, inlined, members_apart
from strategies.kernels import each_kernel
from strategies.matmul.alignment import computed_in_copies
from strategies.matmul.beside import stored_together
from strategies.matmul.columns import scales_outside
from strategies.matmul.kernels import has_product
from strategies.matmul.offsets import is_worthwhile, offsets_outside
from strategies.matmul.recomputed import recomputed
from strategies.matmul.separate import (
    differences_stored,
    is_array_of_sums,
    operands_stored,
    product_stored,
    separate_kernels,
)
from strategies.memory_bound.family import fitting, is_over_columns
from strategies.nests import (
    are_alone,
    chain_as_list,
    is_over_matrices,
    is_over_rows,
    listed_rows,
    of_short_rows,
    over_rows,
    rows_as_list,
)
from strategies.normal_forms import view_inlined
from strategies.operands import each_operand, in_function, nth_operand, operand
from strategies.places import as_one_array, below_shape, in_inputs, mapped
from strategies.result_views import (
    computed_in,
    under_views,
    views_outward,
)
from strategies.search.batches import batched
from strategies.search.choice import (
    NOTHING,
    Choice,
    Search,
    chosen,
    pays,
    reduced_beside,
    remembered,
    separate_operands,
    starts_beside,
)
from strategies.search.choice import reason as why
from strategies.search.hardware import for_target
from strategies.search.identity import identity
from strategies.search.open_sizes import Expected
from strategies.search.passes import in_one_pass
from strategies.search.space import Point
from strategies.search.threads import beyond_instructions, by_threads

DEFAULT = Point.of("default", {})
LEVELS = "the program has levels, which stay"
EMPTY = "an array of the program has no elements"
IN_FRONT = "each row is reduced by itself, beside the first tiles of the product that uses the results"
MANY = 8  # kernels of a program, from which on no value is stored a second time
NO_SUM = "no difference of products is faster as a sum"
GENERAL = "no other schedule is for this program"


@dataclass(frozen=True)
class Plan:
    """What was chosen for each kernel of a program, in the order in which they run."""

    strategy: str
    kernels: tuple[Choice, ...]

    def __str__(self) -> str:
        if not self.kernels:
            return f"{self.strategy}: the program is low-level already"
        if len(self.kernels) == 1:
            return f"{self.strategy}: {self.kernels[0]}"
        numbered = enumerate(self.kernels, 1)
        return "\n".join(f"{self.strategy}, kernel {number}: {choice}" for number, choice in numbered)


@dataclass(frozen=True, repr=False)
class Auto(FunctionStrategy):
    """choice: what becomes of a program, and why.

    first_that: the same strategy, for which a candidate counts only if the program that it gives builds.
    expecting: the same strategy, which is told how large sizes are, about, that are open until launch.
    """

    choice: Callable[[Expr], Plan] = field(kw_only=True)
    first_that: Callable[[Builds], Auto] = field(kw_only=True)
    expecting: Callable[[Sequence[RuntimeSize], Mapping[str, int]], Auto] = field(kw_only=True)

    @property
    def fallback(self) -> Strategy:
        """What lowers any program, at any sizes."""
        return default()


@prints_as_call
def auto(target: str = "sm_90a", store: str = "") -> Auto:
    """Any program: cut into kernels, each lowered by the schedule that its structure asks for.

    target: the GPU that code is for
    store:  a file of remembered parameters, besides those that are found always
    """
    return by_search("auto", Search(for_target(target), target, store))


def by_search(name: str, search: Search) -> Auto:
    """The strategy of that name, which takes the first candidates of a search that build."""
    done: dict[str, tuple[Plan, Result]] = {}

    def planned(term: Expr) -> tuple[Plan, Result]:
        key = identity(term)
        if key not in done:
            done[key] = _planned(name, search, term)
        return done[key]

    return Auto(
        name, lambda term: planned(term)[1], choice=lambda term: planned(term)[0],
        first_that=lambda builds: by_search(name, replace(search, builds=builds)),
        expecting=lambda sizes, expected: by_search(
            name, replace(search, expected=Expected.of(sizes, expected))
        ),
    )  # fmt: skip


def _planned(name: str, search: Search, program: Expr) -> tuple[Plan, Result]:
    inputs, body = split(program)
    is_generated = has_array(body.type) and is_expression(body)  # complete, but one thread would write it
    if first_incomplete(body) is None and not is_generated:
        return Plan(name, ()), Success(program)
    if has_levels(body):
        return Plan(name, (Choice(DEFAULT, LEVELS),)), default()(program)
    if any(is_empty(type_) for type_ in (body.type, *(given.type for given in inputs))):
        return Plan(name, (Choice(DEFAULT, EMPTY),)), default()(program)
    kernels = _Kernels(search, inputs)
    result = in_inputs(kernels.all)(program)
    if isinstance(result, Success):
        # one kernel that is all of the program has been built already, as this term
        result = replace(result, term=next((t for t in kernels.terms if t == result.term), result.term))
    if isinstance(result, Success) and kernels.in_front and not _builds(search, result.term):
        return _planned(name, replace(search, beside=False), program)
    error = refusal(result.term) if isinstance(result, Success) else None
    if error is not None:  # each kernel builds, and the program of all of them does not
        reason = f"its kernels do not build together: {why(error)}"
        return Plan(name, (Choice(DEFAULT, reason),)), default()(program)
    return Plan(name, tuple(kernels.made)), result


def is_empty(type_: Type) -> bool:
    """Whether an array in data of the type has no elements."""
    match type_:
        case Array(size, element):
            return size.value == 0 or is_empty(element)
        case Pair(first, second):
            return is_empty(first) or is_empty(second)
        case _:
            return False


def _builds(search: Search, program: Expr) -> bool:
    """Whether the kernels of a program build together: one beside another has fewer registers than alone."""
    try:
        _ = search.builds is not None and search.builds(program, search.target)
    except RiseError:
        return False
    return True


@dataclass
class _Kernels:
    """The kernels of a program with these inputs; what was chosen for those that have been lowered.

    results: values that a kernel stores and that are results
    stored: the same of all values, once there are many
    terms: the kernels as programs of what they use
    in_front: those beside which the next one starts
    """

    search: Search
    inputs: tuple[Identifier, ...]
    made: list[Choice] = field(default_factory=list)
    results: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    terms: list[Expr] = field(default_factory=list)
    in_front: list[Expr] = field(default_factory=list)

    @property
    def all(self) -> Strategy:
        """Every kernel of a program."""
        together = try_(seq(try_(GLOBAL_FIRST), stored_together))
        return seq(together, each_kernel(FunctionStrategy("kernel", self._kernel)))

    def _kernel(self, term: Expr) -> Result:
        """One kernel; several where no schedule takes all of it."""
        inner = as_one_array(term)
        if inner is not term and (is_over_rows(inner) or is_over_matrices(inner)):
            return below_shape(self._again)(term)
        below = under_views(separate_kernels)
        cuts = map(self._parts, (separate_kernels, below, value_stored, rows_stored))
        again = seq(recomputed, self._again)
        parts = choice(again, self._rows_as_list, self._rows_reduced, *cuts, self._one)
        whole = choice(self._one_pass, self._rows_of_arrays)
        after = seq(inlined, views_outward) if is_array_of_sums(term) else id_
        simpler = normalize(choice(DROP_UNUSED, view_inlined, ARRAYS_BY_ELEMENTS, invariant_first(term)))
        return seq(simpler, try_(after), choice(whole, seq(inlined, parts)))(term)

    def _one_pass(self, term: Expr) -> Result:
        closed, bound = closed_over(term, self.inputs)
        found = in_one_pass(self.search, closed)
        if found is None:
            return Failure("one_pass", term, "it is not one pass over products and rows")
        self.made.append(found[0])
        return self._of_closed(found[1], bound)

    def _batched(self, term: Expr) -> Result:
        return self._batch(*closed_over(term, self.inputs))

    def _batch(self, closed: Expr, bound: int, single: bool = False) -> Result:
        """A batch of small matrices, of which a block takes several.

        single: also of few or large matrices. Tiles of each are faster, but not behind other kernels
        """
        found = batched(self.search, closed, single)
        if found is None:
            return Failure("batched", closed, "it is not a batch of small matrices")
        self.made.append(found[0])
        return self._of_closed(found[1], bound)

    def _rows_of_arrays(self, term: Expr) -> Result:
        """Rows that are computed by themselves, also in arrays in arrays. They are no product."""
        fused = try_(mapped(one_map))(term)
        if not isinstance(fused, Success) or over_rows(fused.term) is None or has_product(fused.term):
            return Failure("rows_of_arrays", term, "no rows are computed by themselves")
        short = seq(of_short_rows, below_shape(self._batched))
        alone = seq(check(are_alone, "rows_of_arrays", "rows need more of their matrix"), rows_as_list)
        by_columns = check(lambda found: not is_over_columns(found), "rows_of_arrays", "columns are reduced")
        rows = seq(by_columns, short)  # of a list: neighbours would read the columns of a matrix far apart
        ways = choice(
            seq(alone, below_shape(rows)), short, seq(rows_as_list, below_shape(rows)), self._long_rows
        )
        ways = ways if is_over_rows(fused.term) else rows
        return seq(lambda _: fused, ways)(term)

    def _long_rows(self, term: Expr) -> Result:
        closed, bound = closed_over(term, self.inputs)
        listed = self._in_form(rows_as_list)
        return listed(term) if fitting(closed) is None else self._memory_bound(term, closed, bound)

    def _rows_as_list(self, term: Expr) -> Result:
        """A product for all rows of an array of matrices as one, if these are no batch."""
        ways = (listed_rows, under_views(listed_rows), chain_as_list)
        listed = choice(*ways)(term) if has_product(term) else None
        if not isinstance(listed, Success) or not has_product(computed_in(listed.term) or listed.term):
            return Failure("rows_as_list", term, "it does not multiply the rows of arrays by one matrix")
        whole = seq(lambda _: listed, below_shape(FunctionStrategy("kernel", self._kernel)))
        return choice(self._batched, whole)(term)

    def _rows_reduced(self, term: Expr) -> Result:
        """A product and reductions of its first operand's rows: in one kernel, or in two, what is faster."""
        outside = scales_outside(term)
        if isinstance(outside, Failure):
            return outside
        return seq(lambda _: outside, choice(self._rows_beside, self._rows_in_front))(term)

    def _rows_beside(self, term: Expr) -> Result:
        """In one kernel, whose loop reduces the rows."""
        closed, bound = closed_over(term, self.inputs)
        found = chosen(self.search, closed) if reduced_beside(self.search, closed) else ""
        if isinstance(found, str):
            return Failure("rows_beside", term, "a kernel before reduces the rows faster")
        self.made.append(found[0])
        return self._of_closed(found[1], bound)

    def _rows_in_front(self, term: Expr) -> Result:
        """By a kernel of few blocks, beside which the product starts that needs the results at last."""
        cut = seq(separate_kernels, GLOBAL_FIRST)(term)
        named = named_value(cut.term) if isinstance(cut, Success) else None
        if named is None:
            return Failure("rows_in_front", term, "no rows of an operand are reduced before its product")
        (stored, rest), search = named, self.search
        front, bound = closed_over(application(stored)[2][-1], self.inputs)
        last, _ = closed_over(rest.body, self.inputs)
        read = sum(bytes_of(each.type) or 0 for each in split(front)[0])
        point = Point.of("rows", {"few_blocks": search.gpu.multiprocessors})
        few = search.attempt(point, front) if search.beside else None
        if not isinstance(few, Success) or not starts_beside(search, last, read):
            return seq(lambda _: cut, self._again)(term)
        self.made.append(Choice(point, IN_FRONT))
        self.in_front.append(few.term)
        first = self._of_closed(few, bound)
        behind = replace(self, search=replace(search, in_front=read))
        reduced, multiplied = operand(lambda _: first), in_function(lambda part: behind.all(part))
        return seq(lambda _: cut, nth_operand(0, reduced), nth_operand(1, multiplied))(term)

    def _parts(self, cut: Rewrite) -> Strategy:
        """The kernels of what a cut gives."""
        return seq(cut, self._new, self._again)

    def _new(self, term: Expr) -> Result:
        """Refuses a cut that would store a value a second time, in a program of many kernels."""
        if len(self.made) >= MANY:
            first = GLOBAL_FIRST(term)
            named = named_value(first.term) if isinstance(first, Success) else None
            if named is not None:
                value = canonical(named[0])
                if value in self.stored:
                    return Failure("new", term, "the value is stored already")
                self.stored.add(value)
        return Success(term)

    @property
    def _again(self) -> Strategy:
        """Every kernel of a part, which is looked at only when the strategy runs."""
        return FunctionStrategy("kernels", lambda part: self.all(part))

    def _one(self, term: Expr) -> Result:
        closed, bound = closed_over(term, self.inputs)
        if not has_product(term):
            return self._memory_bound(term, closed, bound)
        small = self._batch(closed, bound)
        if isinstance(small, Success):
            return small
        signed = self._of_signed_bytes(term, closed)
        if isinstance(signed, Success):
            return signed
        beyond = beyond_instructions(self.search, closed)
        if beyond is not None and isinstance(remembered(self.search, closed), str):
            threads = self._by_threads(term, beyond)
            if isinstance(threads, Success):
                return threads
            if is_pair_of_kernels(term):
                return self._members(term)
        summed = self._summed(term, closed)
        if isinstance(summed, Success):
            return summed
        if separate_operands(self.search, closed):
            alone = self._batch(closed, bound, single=True)
            if isinstance(alone, Success):
                return alone
            separate = self._parts(operands_stored)(term)
            if isinstance(separate, Success):
                return separate
        found = chosen(self.search, closed)
        if isinstance(found, str):
            alone = self._batch(closed, bound, single=True)
            if isinstance(alone, Success):
                return alone
            if is_pair_of_kernels(term):
                return self._members(term)
            ways = (
                self._parts(terms_stored),
                self._parts(product_stored),
                lambda part: self._by_threads(part, found),
            )
            return choice(*ways, lambda part: self._default(part, found))(term)
        self.made.append(found[0])
        return self._of_closed(found[1], bound)

    def _of_signed_bytes(self, term: Expr, closed: Expr) -> Result:
        """Products of bytes with offsets, or of unsigned bytes, as products of signed bytes."""
        pays = self.search.gpu.multiplies("i8") and is_worthwhile(term)
        unknown = pays and isinstance(remembered(self.search, closed), str)
        changed = offsets_outside(term) if unknown else None
        if not isinstance(changed, Success) or not changed.steps:
            return Failure("signed_bytes", term, "it is not a large product of bytes with offsets")
        return seq(lambda _: changed, self._again)(term)

    def _by_threads(self, term: Expr, reason: str) -> Result:
        """Reductions of all pairs of rows that tensor cores do not compute, for this reason."""
        closed, bound = closed_over(term, self.inputs)
        found = by_threads(self.search, closed)
        if found is None:
            return Failure("by_threads", term, "it does not reduce all pairs of rows of two matrices")
        self.made.append(replace(found[0], reason=f"{found[0].reason}; {reason}"))
        return self._of_closed(found[1], bound)

    def _summed(self, term: Expr, closed: Expr) -> Result:
        """Differences of products as sums, where the kernel that negates an operand pays."""
        added = seq(differences_stored, computed_in_copies)(term)
        cut = seq(lambda _: added, GLOBAL_FIRST)(term)
        if isinstance(added, Success) and not isinstance(cut, Success):
            return self._added(term, closed, added)
        named = named_value(cut.term) if isinstance(cut, Success) else None
        if named is not None:
            stored, rest = named
            last, _ = closed_over(rest.body, self.inputs)
            if pays(self.search, closed, last, bytes_of(stored.type) or 0):
                return self._parts(lambda _: cut)(term)
        return Failure("differences_stored", term, NO_SUM)

    def _added(self, term: Expr, closed: Expr, added: Success) -> Result:
        """A sum of products, one of whose operands is negated where it is copied."""
        whole, bound = closed_over(added.term, self.inputs)
        found = chosen(self.search, whole) if pays(self.search, closed, whole, 0) else ""
        if isinstance(found, str):
            return Failure("differences_stored", term, NO_SUM)
        self.made.append(found[0])
        return seq(lambda _: added, lambda _: self._of_closed(found[1], bound))(term)

    def _memory_bound(self, term: Expr, closed: Expr, bound: int) -> Result:
        if is_pair_of_kernels(term):
            return self._members(term)
        if names_for_a_pair(term):
            return seq(LET_REPEATED, self._again)(term)
        before = remembered(self.search, closed)
        if not isinstance(before, str):
            self.made.append(before[0])
            return self._of_closed(before[1], bound)
        found = self._fitted(closed)
        if isinstance(found, str):
            ways = (terms_stored, columns_reduced, scan_in_blocks, part_stored, values_stored)
            cuts = map(self._parts, ways)
            others = choice(*map(self._in_form, FORMS), seq(members_apart, self._again), *cuts, self._listed)
            return choice(others, lambda part: self._default(part, found))(term)
        chosen, result = found
        said = chosen.reason if before == NOTHING else f"{chosen.reason}; {before}"
        self.made.append(replace(chosen, reason=said))
        return self._of_closed(result, bound)

    def _listed(self, term: Expr) -> Result:
        """What is in arrays in arrays as one list, if that is not left to loops, too."""
        listed = rows_as_list(term)
        if not isinstance(listed, Success):
            return Failure("listed", term, "nothing is in arrays in arrays")
        tried = replace(self, made=[], terms=[], in_front=[], results={*self.results}, stored={*self.stored})
        found = below_shape(tried.all)(listed.term)
        looped = any(made.point.strategy == DEFAULT.strategy for made in tried.made)
        if looped or not isinstance(found, Success):
            return Failure("listed", term, "loops compute a list of it")
        self.made += tried.made
        self.terms += tried.terms
        self.in_front += tried.in_front
        self.results, self.stored = tried.results, tried.stored
        return seq(lambda _: listed, lambda _: found)(term)

    def _fitted(self, closed: Expr) -> tuple[Choice, Success] | str:
        """A program by the memory-bound schedule that fits it, or why there is none."""
        fits = fitting(closed)
        if fits is None:
            return GENERAL
        refused = ""
        for parameters in fits.parameters:
            point = Point.of(fits.strategy.name, parameters)
            result = self.search.attempt(point, closed)
            if isinstance(result, Success):
                return Choice(point, fits.reason), result
            refused = refused or f"`{point}` does not take it: {why(result)}"
        return refused

    def _in_form(self, form: Strategy) -> Strategy:
        """The program in another form, where a memory-bound schedule takes that."""

        def run(term: Expr) -> Result:
            formed = form(term)
            if not isinstance(formed, Success):
                return formed
            closed, bound = closed_over(formed.term, self.inputs)
            found = self._fitted(closed)
            if isinstance(found, str):
                return Failure("in_form", term, found)
            self.made.append(found[0])
            return seq(lambda _: formed, lambda _: self._of_closed(found[1], bound))(term)

        return FunctionStrategy("in_form", run)

    @property
    def _members(self) -> Strategy:
        """Two results, each of which kernels of its own compute."""
        return each_operand(FunctionStrategy("member", self._member))

    def _member(self, term: Expr) -> Result:
        """A result. A value that a kernel has stored needs no other kernel the first time it is a result."""
        if isinstance(term, Identifier) and term not in self.inputs and term.name not in self.results:
            self.results.add(term.name)
            return Success(term)
        return self.all(term)

    def _of_closed(self, success: Success, bound: int) -> Success:
        self.terms.append(success.term)
        return below(success, bound)

    def _default(self, term: Expr, reason: str) -> Result:
        levels = most_levels(term)
        listed = rows_as_list(term) if levels == 1 else None
        if isinstance(listed, Success):  # the outer of two maps is too long for a dimension of the grid
            return seq(lambda _: listed, below_shape(lambda rows: self._default(rows, reason)))(term)
        self.made.append(Choice(Point.of("default", {"levels": levels}) if levels > 1 else DEFAULT, reason))
        return lowered_by(levels)(term)


def is_pair_of_kernels(term: Expr) -> bool:
    """Whether a result is two arrays or numbers that take loops, each of which is computed by itself."""
    applied = call(term)
    return (
        applied is not None
        and applied[0] == "pair"
        and all(has_array(part.type) or not is_expression(part) for part in applied[2])
    )


def names_for_a_pair(term: Expr) -> bool:
    """Whether both of two such results may use a value that takes no loop: each computes it by itself."""
    named = named_value(term)
    if named is None or not is_expression(named[0]):
        return False
    return is_pair_of_kernels(named[1].body) or names_for_a_pair(named[1].body)


def split(program: Expr) -> tuple[tuple[Identifier, ...], Expr]:
    """The inputs of a program, and its body."""
    inputs: list[Identifier] = []
    while isinstance(program, Lambda):
        inputs.append(program.parameter)
        program = program.body
    return tuple(inputs), program


def closed_over(term: Expr, inputs: Sequence[Identifier]) -> tuple[Expr, int]:
    """A kernel as a program of what it uses, inputs first, in their order; and how many there are."""
    known = {part.name: part for part in subterms(term) if isinstance(part, Identifier)}
    order = {given.name: number for number, given in enumerate(inputs)}
    used = sorted(term.free, key=lambda name: (order.get(name, len(order)), name))
    program = term
    for name in reversed(used):
        program = Lambda(known[name], program, term.origin)
    return program, len(used)


def below(success: Success, bound: int) -> Success:
    """What happened to a program, as what happened to its body, under so many inputs."""
    term = success.term
    for _ in range(bound):
        (term,) = children(term)
    return Success(term, tuple(replace(step, path=step.path[bound:]) for step in success.steps))
