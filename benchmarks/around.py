"""Batches of products with what users write around them, as programs and in torch.

C         α·A·B + β·C, with α = 0.5 and β = 2
bias      a row, the same for all matrices, added to each row of the result
relu      max(…, 0) of the result
clipped   max(…, 0) of the elements of the first operands
shared    one second operand for all of the batch
chosen    second operands that indices choose, from half as many
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batched import WIDTH, type_of

AROUND = ("C", "bias", "relu", "clipped", "shared", "chosen")
ALPHA, BETA = 0.5, 2.0  # exact in all types
# how an operand is stored, and what of it the product takes: as it is or, T, transposed
FIRST = {"A": ("m.k", "A"), "T": ("k.m", "transpose(A)")}
SECOND = {"A": ("k.n", "transpose(B)"), "T": ("n.k", "B")}
Sizes = Mapping[str, int]


def program(layouts: str, operand: str, result: str, around: Sequence[str]) -> str:
    """The text of a definition `products`.

    layouts: of both operands; operand, result: types of numbers; around: words of AROUND
    Exits where a word is none of these.
    """
    if unknown := set(around) - set(AROUND):
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(AROUND)}")
    stored = "f32" if operand == "tf32" else operand
    number = "f32(tf32({}))" if operand == "tf32" else "f32({})"
    (rows, a), (columns, b) = FIRST[layouts[0]], SECOND[layouts[1]]
    x = f"max({number.format('x')}, 0)" if "clipped" in around else number.format("x")
    value = f"zip(row)(column) |> map((x, y) => {x} * {number.format('y')}) |> reduce(+, 0)"
    if "C" in around:
        value = f"{ALPHA} * ({value}) + {BETA} * f32(c)"
    if "bias" in around:
        value = f"({value}) + d"
    if "relu" in around:
        value = f"max({value}, 0)"
    seconds = {"shared": columns, "chosen": f"p.{columns}"}
    given = [f"As: b.{rows}.{stored}"]
    given.append(
        f"Bs: {next((seconds[word] for word in around if word in seconds), f'b.{columns}')}.{stored}"
    )
    given += [f"Cs: b.m.n.{result}"] * ("C" in around) + ["ds: n.f32"] * ("bias" in around)
    given += ["chosen: b.Idx[p]"] * ("chosen" in around)
    each = _map([(b, "column"), ("cs", "c") if "C" in around else None,
                 ("ds", "d") if "bias" in around else None], f"{result}({value})")  # fmt: skip
    matrix = _map([(a, "row"), ("C", "cs") if "C" in around else None], each)
    if "shared" in around:
        matrix = f"let B = Bs in {matrix}"
    apart = "Bs |> gather(chosen)" if "chosen" in around else "Bs"
    batch = _map([("As", "A"), None if "shared" in around else (apart, "B"),
                  ("Cs", "C") if "C" in around else None], matrix)  # fmt: skip
    sizes = ", ".join(f"{name}: Nat" for name in ("b", "m", "n", "k", *["p"] * ("chosen" in around)))
    return f"def products({sizes})({', '.join(given)}) = {batch}"


def _map(arrays: Sequence[tuple[str, str] | None], body: str) -> str:
    """A map of what is in arrays, by their names and those of elements, beside each other."""
    (last, element), *others = reversed([array for array in arrays if array is not None])
    for array, name in others:
        last, element = f"zip({array})({last})", f"({name}, {element})"
    return f"{last} |> map({element} => {body})"


def bytes_of_matrix(m: int, n: int, k: int, operand: str, result: str, around: Sequence[str]) -> int:
    """What an element of a batch reads and writes, but for what all of them share."""
    read = m * k + (0 if "shared" in around else n * k)
    return read * WIDTH[operand] + (1 + ("C" in around)) * m * n * WIDTH[result]


class Drawn:
    """Operands on the GPU.

    inputs: of the program
    """

    def __init__(
        self, torch: Any, sizes: Sizes, layouts: str, operand: str, result: str, around: Sequence[str]
    ) -> None:
        self.torch, self.around = torch, around
        b, m, n, k = (sizes[name] for name in "bmnk")
        stored, shape = type_of(torch, operand), (b, m, n)
        seconds = 1 if "shared" in around else sizes.get("p", b)
        # numbers of 11 bits are the same in tf32
        x, y = (
            torch.randn((count, *(of[::-1] if way == "T" else of)), device="cuda").half().to(stored)
            for count, of, way in zip((b, seconds), ((m, k), (k, n)), layouts, strict=True)
        )
        self.out = torch.empty(shape, device="cuda", dtype=type_of(torch, result))
        self.c = torch.randn(shape, device="cuda").to(self.out.dtype) if "C" in around else None
        self.d = torch.randn(n, device="cuda") if "bias" in around else None
        self.chosen = (
            torch.randint(seconds, (b,), device="cuda", dtype=torch.int32) if "chosen" in around else None
        )
        self.x, self.y = (
            t.transpose(1, 2) if way == "T" else t for t, way in zip((x, y), layouts, strict=True)
        )
        beside = [each for each in (self.c, self.d, self.chosen) if each is not None]
        self.inputs = (x, y[0] if "shared" in around else y, *beside)

    def seconds(self, start: int, end: int) -> Any:
        """The second operands of these elements of the batch."""
        if self.chosen is not None:
            return self.y[self.chosen[start:end]]
        return self.y.expand(len(self.x), *self.y.shape[1:])[start:end]

    def largest_error(self) -> float:
        """In units of what rounding allows: of sums in f32, and of the result. NaN where something is."""
        torch, worst = self.torch, 0.0
        if self.out.isnan().any():
            return float("nan")
        part = max(1, (1 << 24) // max(self.x[0].numel(), self.y[0].numel(), self.out[0].numel()))
        for start in range(0, len(self.x), part):
            end = min(start + part, len(self.x))
            x, y = self.x[start:end].double(), self.seconds(start, end).double()
            x = x.clamp(min=0) if "clipped" in self.around else x
            exact, bound = x @ y, x.abs() @ y.abs() * x.shape[2]
            if self.c is not None:
                c = BETA * self.c[start:end].double()
                exact, bound = ALPHA * exact + c, bound + 2 * c.abs()
            if self.d is not None:
                exact, bound = exact + self.d.double(), bound + self.d.double().abs()
            bound = 2.0**-24 * (bound + exact.abs() + 1)
            exact = exact.clamp(min=0) if "relu" in self.around else exact
            allowed = bound + exact.abs() * torch.finfo(self.out.dtype).eps / 2
            worst = max(worst, float(((self.out[start:end].double() - exact).abs() / allowed).max()))
        return worst

    def product(self) -> Any:
        """A launch of the products alone, as torch has them: rounded to the type of the operands."""
        y = self.seconds(0, len(self.x))
        out = self.torch.empty(self.out.shape, device="cuda", dtype=self.x.dtype)
        return lambda: self.torch.bmm(self.x, y, out=out)
