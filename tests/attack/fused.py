"""Fused programs drawn at random, through `auto` for warpgroups, emulated, and compared with the interpreter.

A program has one to three products (a sum or a difference of such, products that share an operand, a chain, a
convolution, a batch), a prologue for each operand, an epilogue of steps in any order, and results: a matrix,
its transposed matrix, two matrices, reductions of rows or columns, beside the matrix or alone. Everything is
drawn by itself, and so is each size: multiples of tiles, multiples of eight, odd numbers, one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from random import Random

from codegen.compiled import built
from codegen.pipeline import assemble
from codegen.runtime import can_compile
from rise.check.specialise import inputs_of
from rise.depth import deep
from rise.errors import RiseError
from rise.expr import Expr
from rise.interpret import random_inputs
from tests.attack.outcome import Outcome, Verdict, refused
from tests.attack.through_auto import chosen, definition

TARGET = "sm_90a"
WORK = 200_000  # products of numbers, at most, of what is emulated
SMALL = ((64, 128), (8, 16, 40, 72, 136), (5, 7, 31, 33, 67, 131), (1, 2, 3))
LARGE = ((128, 256, 512, 1024), (72, 200, 504, 776, 1000), (67, 131, 509, 1031), (1, 3, 7))
# how large numbers are added up in, by the type of operands
SUMS = {"f16": "f32", "bf16": "f32", "tf32": "f32", "i8": "i32"}
FUNCTIONS = (
    "max({x}, 0)",
    "abs({x})",
    "min(max({x}, -6), 6)",
    "{x} * {x}",
    "gelu({x})",
    "{x} * sigmoid({x})",
    "tanh({x})",
    "f32(f16({x}))",
    "f32(bf16({x}))",
    "0.5 * {x} - 1",
)
MASKS = ("i < j", "j <= i", "i - j < 5 && j <= i", "j < 40", "i == j", "i < 3 || j <= 2 * i")
CORES = (
    "one", "one", "one", "sum", "sum", "difference", "three", "gated", "sharedRight", "chain", "layers",
    "batch", "convolution",
)  # fmt: skip
RESULTS = (
    "matrix", "matrix", "matrix", "matrix", "transposed", "two", "rows", "columns", "rowsBeside",
    "columnsBeside", "bytes",
)  # fmt: skip


def by_numbers(matrix: str, element: str) -> str:
    """A function of elements x and their rows and columns, i and j."""
    return f"(numbered({matrix}) |> map((row, i) => numbered(row) |> map((x, j) => {element})))"


@dataclass
class Drawing:
    """What is drawn of a program so far: its parameters, each with its type, in their order."""

    random: Random
    parameters: dict[str, str] = field(default_factory=dict)
    fresh: Iterator[int] = field(default_factory=count)

    def array(self, name: str, type_: str) -> str:
        """A new parameter."""
        name = f"{name}{next(self.fresh)}"
        self.parameters[name] = type_
        return name

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def matrix(self, rows: str, columns: str, element: str) -> str:
        """Rows × columns in memory, or columns × rows that are transposed."""
        if self.chance(0.3):
            return f"({self.array('M', f'{columns}.{rows}.{element}')} |> transpose)"
        return self.array("M", f"{rows}.{columns}.{element}")

    def operand(self, rows: str, columns: str, element: str) -> str:
        """A matrix, or a function of one's elements."""
        if element == "i8" or not self.chance(0.4):
            return self.matrix(rows, columns, element)
        kind = self.random.choice(("relu", "cast", "scaledBytes", "scaledRows", "scaledColumns", "masked"))
        vectors = {"scaledBytes": rows, "scaledRows": rows, "scaledColumns": columns}
        scales = self.array("v", f"{vectors[kind]}.f32") if kind in vectors else ""
        of = {"cast": "f32", "scaledBytes": "i8"}.get(kind, "f16" if element == "tf32" else element)
        matrix = self.matrix(rows, columns, of)
        rounded = f"{element}({{x}})" if of != element else "{x}"
        match kind:
            case "relu":
                return f"({matrix} |> map2D(x => {element}(max(x, 0))))"
            case "cast":
                return f"({matrix} |> map2D(x => {rounded.format(x='x')}))"
            case "masked":
                return by_numbers(matrix, rounded.format(x="select(j <= i, x, 0)"))
            case "scaledColumns":
                return f"({matrix} |> map(row => zip(row)({scales}) |> map((x, s) => {element}(f32(x) * s))))"
            case _:
                return f"(zip({matrix})({scales}) |> map((row, s) => row |> map(x => {element}(f32(x) * s))))"

    def product(
        self, rows: str, columns: str, depth: str, element: str, left: str = "", right: str = ""
    ) -> str:
        """A product in f32; operands that are not given are drawn. The second one has rows along k."""
        left = left or self.operand(rows, depth, element)
        right = right or self.operand(columns, depth, element)
        made = f"product{element.upper()}({left}, {right})"
        return f"({made} |> map2D(x => f32(x)))" if SUMS[element] != "f32" else made

    def step(self, matrix: str, rows: str = "m", columns: str = "n") -> str:
        """One step of an epilogue."""
        number = self.random.choice(("f32", "f32", "f16", "bf16"))
        match self.random.choice(
            ("function", "function", "row", "column", "matrix", "scale", "mask", "selected")
        ):
            case "function":
                function = self.random.choice(FUNCTIONS).format(x="x")
                return f"({matrix} |> map2D(x => {function}))"
            case "row":
                bias = self.array("v", f"{columns}.{number}")
                return f"({matrix} |> map(row => zip(row)({bias}) |> map((x, b) => x + f32(b))))"
            case "column":
                scales = self.array("v", f"{rows}.{number}")
                return f"(zip({matrix})({scales}) |> map((row, s) => row |> map(x => x * f32(s))))"
            case "matrix":
                other = self.matrix(rows, columns, number)
                return f"(zip2D({matrix}, {other}) |> map2D((x, y) => x + f32(y)))"
            case "scale":
                return f"({matrix} |> map2D(x => x * {self.array('a', 'f32')}))"
            case "mask":
                mask = self.random.choice(MASKS)
                return by_numbers(matrix, f"select({mask}, x, 0)")
            case _:
                other = self.matrix(rows, columns, "f16")
                return f"(zip2D({matrix}, {other}) |> map2D((x, y) => select(y > 0, x, 0)))"

    def epilogue(self, matrix: str) -> str:
        for _ in range(self.random.choice((0, 0, 1, 1, 2, 3, 4))):
            matrix = self.step(matrix)
        return matrix

    def core(self, kind: str, element: str) -> str:
        """A matrix of m × n."""
        match kind:
            case "sum" | "difference":
                other = self.random.choice("kl")
                sign = "+" if kind == "sum" else "-"
                both = self.product("m", "n", "k", element), self.product("m", "n", other, element)
                return f"(zip2D({', '.join(both)}) |> map2D((x, y) => x {sign} y))"
            case "three":
                parts = [self.product("m", "n", depth, element) for depth in "kkl"]
                return (
                    f"(zip2D({parts[0]}, zip2D({parts[1]}, {parts[2]})) |> map2D((x, (y, z)) => x + y + z))"
                )
            case "gated" | "sharedRight":
                shared = (
                    {"left": self.operand("m", "k", element)}
                    if kind == "gated"
                    else {"right": self.operand("n", "k", element)}
                )
                gates, values = (self.product("m", "n", "k", element, **shared) for _ in range(2))
                function = self.random.choice(FUNCTIONS).format(x="x")
                return f"(zip2D({gates}, {values}) |> map2D((x, y) => {function} * y))"
            case "chain" | "layers":
                inner = self.product("m", "l", "k", element)
                if kind == "layers":
                    for _ in range(self.random.choice((1, 1, 2))):
                        inner = self.step(inner, "m", "l")
                cast = "i8(min(max(x, -100), 100))" if element == "i8" else f"{element}(x)"
                return self.product("m", "n", "l", element, left=f"({inner} |> map2D(x => {cast}))")
            case "convolution":
                image = self.array("image", f"(m + 2).k.{element}")
                weights = self.matrix("n", "(3*k)", element)
                return self.product(
                    "m", "n", "(3*k)", element, f"({image} |> slide(3, 1) |> map(join))", weights
                )
            case _:
                return self.product("m", "n", "k", element)

    def result(self, kind: str, matrix: str) -> str:
        number = self.random.choice(("f16", "f16", "f32", "bf16"))
        reduction = self.random.choice(("sum", "maximum", "x => x |> map(y => y * y) |> sum"))
        match kind:
            case "transposed":
                return f"{matrix} |> map2D(x => {number}(x)) |> transpose"
            case "two":
                return f"let D = {matrix} in (D |> map2D(x => {number}(x)), D |> map2D(x => f16(max(x, 0))))"
            case "rows":
                return f"{matrix} |> map({reduction})"
            case "columns":
                return f"{matrix} |> transpose |> map({reduction})"
            case "rowsBeside":
                return f"let D = {matrix} in (D |> map2D(x => {number}(x)), D |> map({reduction}))"
            case "columnsBeside":
                return (
                    f"let D = {matrix} in (D |> map2D(x => {number}(x)), D |> transpose |> map({reduction}))"
                )
            case "bytes":
                return f"{matrix} |> map2D(x => i8(min(max(x, -128), 127)))"
            case _:
                return f"{matrix} |> map2D(x => {number}(x))"


@dataclass(frozen=True)
class Drawn:
    """A program's text and sizes, and what was drawn for it."""

    text: str
    sizes: dict[str, int]
    core: str
    element: str
    result: str


@dataclass(frozen=True)
class Fused:
    """A program and its sizes, by their seed.

    work: products of numbers, at most, of what is emulated; 0: large sizes, and nothing is
    """

    seed: int
    work: int = WORK

    @cached_property
    def drawn(self) -> Drawn:
        random = Random(self.seed)
        drawing = Drawing(random)
        kind, result = random.choice(CORES), random.choice(RESULTS)
        element = random.choice(("f16", "f16", "f16", "bf16", "tf32", "i8"))
        body = drawing.result(kind=result, matrix=drawing.epilogue(drawing.core(kind, element)))
        parameters = drawing.parameters
        if kind == "batch":
            body, parameters = _batched(random, body, parameters)
        sums = SUMS[element]
        x, y = (f"{sums}({name})" for name in "xy")
        given = ", ".join(f"{name}: {type_}" for name, type_ in parameters.items())
        text = f"""import "prelude.rise"
def product{element.upper()}{{m: Nat, n: Nat, k: Nat}}(A: m.k.{element}, B: n.k.{element}): m.n.{sums} =
  A |> map(row => B |> map(column =>
    zip(row)(column) |> map((x, y) => {x} * {y}) |> reduce(+, 0)))
def f(b: Nat, m: Nat, n: Nat, k: Nat, l: Nat)({given}) =
  {body}"""
        return Drawn(text, self._sizes(random), kind, element, result)

    def _sizes(self, random: Random) -> dict[str, int]:
        of = SMALL if self.work else LARGE
        while True:
            found = {
                name: random.choice(of[random.choice((0, 0, 0, 1, 1, 1, 2, 2, 2, 3))]) for name in "mnkl"
            }
            found["b"] = random.choice((1, 2, 3))
            if (
                not self.work
                or found["b"] * found["m"] * found["n"] * max(found["k"], found["l"]) <= self.work
            ):
                return found

    @property
    def term(self) -> Expr:
        drawn = self.drawn
        return definition(drawn.text, drawn.sizes)

    def __str__(self) -> str:
        return f"fused {self.seed}, work {self.work}: {self.drawn.sizes}\n{self.drawn.text}"


def _batched(random: Random, body: str, parameters: dict[str, str]) -> tuple[str, dict[str, str]]:
    """The program for every element of the arrays that are matrices; some are the same for all."""
    each = [name for name, type_ in parameters.items() if type_.count(".") == 2 and random.random() < 0.8]
    each = each or [next(iter(parameters))]
    given = {name: f"b.{type_}" if name in each else type_ for name, type_ in parameters.items()}
    zipped, pattern = each[-1], each[-1]
    for name in reversed(each[:-1]):
        zipped, pattern = f"zip({name})({zipped})", f"({name}, {pattern})"
    whole = f"{zipped} |> map({pattern if pattern.startswith('(') else f'({pattern})'} => {body})"
    return whole, given


def fused(seed: int) -> Iterator[Fused]:
    """Every other one is compiled at large sizes, where a compiler is installed; the others are emulated."""
    large = can_compile()
    return (Fused(seed * 1_000_000 + number, 0 if large and number % 2 else WORK) for number in count())


@deep
def outcome(trial: Fused) -> Outcome:
    try:
        if not trial.work:
            return _compiled(trial)
        program = chosen(trial.term, TARGET)
        if isinstance(program, Outcome):
            return program
        return program.agrees(random_inputs(inputs_of(program.term), trial.seed, exact=True), TARGET)
    except RiseError as error:
        return refused(error)


def _compiled(trial: Fused) -> Outcome:
    """Right if the kernels compile."""
    program = chosen(trial.term, TARGET, lambda low, target: built(assemble(low, "f"), target))
    if isinstance(program, Outcome):
        return program
    built(program.assembled(), TARGET)
    return Outcome(Verdict.RIGHT, "", program.ways, program.ways)
