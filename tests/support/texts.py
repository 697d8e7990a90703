"""Random programs as texts: chains of views, maps and sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

SCALARS = ("f32", "i32")


@dataclass(frozen=True)
class Value:
    """A program's text, and the shape and element type of what it computes."""

    text: str
    shape: tuple[int, ...]
    element: str  # f32, i32, or pair: of two f32

    def then(self, step: str, shape: tuple[int, ...], element: str | None = None) -> Value:
        return Value(f"{self.text} |> {step}", shape, element or self.element)


def nested(function: str, depth: int) -> str:
    return "map(" * depth + function + ")" * depth


def elementwise(random: Random, value: Value) -> Value:
    """A map over the elements."""
    depth = len(value.shape)
    if value.element == "pair":
        body = random.choice(
            ["fun((a, b) => a - b)", "fun(p => fst(p) * snd(p))", "fun((a, b) => max(a, b))"]
        )
        return value.then(nested(body, depth), value.shape, "f32")
    bodies = [
        "fun(x => x * 3 + 1)",
        "fun(x => select(x < 1)(-x)(x + 2))",
        "fun(x => let y = x + 1 in y * y - x)",
    ]
    if value.element == "f32":
        bodies.append("fun(x => (x, x + 2))")
    body = random.choice(bodies)
    return value.then(nested(body, depth), value.shape, "pair" if "(x, x" in body else value.element)


def reduced(random: Random, value: Value) -> Value:
    """The sums of the innermost arrays; the whole sum where there is one dimension."""
    if value.element == "pair":
        return elementwise(random, value)
    operator = random.choice(["reduce(+, 0)", "reduce(fun((a, b) => a + b), 0)"])
    depth = len(value.shape) - 1
    return value.then(nested(f"fun(r => r |> {operator})", depth) if depth else operator,
                      value.shape[:-1])  # fmt: skip


def zipped(random: Random, value: Value) -> Value:
    """With another view of itself, or with its indices."""
    n = value.shape[0]
    if value.element != "f32" or len(value.shape) > 1:
        return elementwise(random, value)
    other = random.choice(["vs |> take({n})", "generate(fun(i => f32(indexToInt(i))))"])
    text = f"zip({value.text})({other.format(n=n)})"
    projected = random.choice(
        [f"fst(unzip({text}))", f"snd(unzip({text}))", f"{text} |> map(fun((a, b) => a - b))"]
    )
    return replace(value, text=projected)


def viewed(random: Random, value: Value) -> Value:
    n, *rest = value.shape
    divisor = random.choice([d for d in range(1, n + 1) if n % d == 0])
    size = random.randint(1, n)
    views = [(f"take({size})", (size, *rest)), (f"drop({n - size})", (size, *rest))]
    if len(value.shape) < 3:
        views += [
            (f"split({divisor})", (n // divisor, divisor, *rest)),
            (f"slide({size}, 1)", (n - size + 1, size, *rest)),
        ]
    if len(value.shape) > 1:
        m, *inner = rest
        views += [("transpose", (m, n, *inner)), ("join", (n * m, *inner))]
    step, shape = random.choice(views)
    return value.then(step, shape)


def high(seed: int) -> str:
    """A well-typed program of four to seven steps."""
    random = Random(seed)
    shape = tuple(random.choice([1, 2, 3, 5, 6, 8]) for _ in range(random.randint(1, 3)))
    element = random.choice(SCALARS)
    if seed % 3 == 0:  # else arrays are rarely such that they can be zipped
        shape, element = shape[:1], "f32"
    value = Value("xs", shape, element)
    if seed % 3 == 0:
        value = zipped(random, value)
    for _ in range(random.randint(4, 7)):
        step = random.choice([viewed, viewed, viewed, elementwise, zipped])
        value = step(random, value)
    if random.random() < 0.4 and value.element != "pair":
        value = reduced(random, value)
    type_ = ".".join(map(str, shape)) + f".{element}"
    return f"fun((xs: {type_}, vs: 600.f32) => {value.text})"
