"""For each code that a program text can cause: a program that is wrong, and what it should have been.

`rise explain CODE` shows them with the message; a test runs every one. A program with a definition
`main` that has no parameters is evaluated as well: codes R05 come up only then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A text that has exactly one mistake, and the text without it."""

    wrong: str
    right: str


def _twice(times: int) -> str:
    """Definitions that each use the one before twice."""
    uses = ["f", *(f"f{number}" for number in range(1, times))]
    return "".join(f"def f{n} = fun(x => {f}({f}(x)))\n" for n, f in enumerate(uses, 1))


EXAMPLES: Mapping[str, Example] = {
    "R0101": Example("def f x = x + 1", "def f(x) = x + 1"),
    "R0102": Example("def f(x: f32) = (x + 1", "def f(x: f32) = (x + 1)"),
    "R0103": Example("def f(x: f32) = x > 0 & x < 1", "def f(x: f32) = x > 0 && x < 1"),
    "R0104": Example("/* twice\ndef f = fun(x: f32 => x + x)", "/* twice */\ndef f = fun(x: f32 => x + x)"),
    "R0105": Example(f"def f: f64 = 1{'0' * 400}", "def f: f64 = 1e300"),
    "R0201": Example(
        "def f(xs: 4.f32) = xs |> mapp(x => x + 1)",
        "def f(xs: 4.f32) = xs |> map(x => x + 1)",
    ),
    "R0202": Example("def f(xs: 4.f23) = xs", "def f(xs: 4.f32) = xs"),
    "R0203": Example(
        "def f(n: Nat)(xs: Array[f32, n]) = xs",
        "def f(n: Nat)(xs: Array[n, f32]) = xs",
    ),
    "R0204": Example("def f(xs: Array[f32]) = xs", "def f(xs: Array[4, f32]) = xs"),
    "R0205": Example(
        "def f(n: Nat, n: Nat)(xs: n.n.f32) = xs",
        "def f(n: Nat, m: Nat)(xs: n.m.f32) = xs",
    ),
    "R0206": Example(
        "def f(xs: 64.f32) = xs |> split |> join", "def f(xs: 64.f32) = xs |> split(32) |> join"
    ),
    "R0208": Example("def f{n: nat}(xs: n.f32) = xs", "def f{n: Nat}(xs: n.f32) = xs"),
    "R0211": Example(
        "def f = fun(x: f32 => x)\ndef f = fun(x: i32 => x)",
        "def f = fun(x: f32 => x)\ndef g = fun(x: i32 => x)",
    ),
    "R0212": Example('import "preludes.rise"\ndef f(x: f32) = x', "def f(x: f32) = x"),
    "R0213": Example("def sum(xs: 4.f32) = sum(xs)", "def sum(xs: 4.f32) = xs |> reduce(+, 0)"),
    "R0214": Example(
        "def f(n: Nat)(xs: (n / 0).f32) = xs",
        "def f(n: Nat)(xs: (n / 2).f32) = xs",
    ),
    "R0301": Example("def f(x: f16, y: f32) = x * y", "def f(x: f16, y: f32) = f32(x) * y"),
    "R0302": Example("def f(g) = g(g)", "def f(g: f32 -> f32, x: f32) = g(g(x))"),
    "R0303": Example("def f(x: f32) = (x, (y: f32) => y + x)", "def f(x: f32, y: f32) = (x, y + x)"),
    "R0304": Example("def f(x: f32) = max(x, 0, 1)", "def f(x: f32) = max(x, 0)"),
    "R0305": Example("def f(xs: 4.f32) = xs + 1", "def f(xs: 4.f32) = xs |> map(x => x + 1)"),
    "R0306": Example("def f(n: i32) = n * 1.5", "def f(n: i32) = f32(n) * 1.5"),
    "R0307": Example("def f(x: i8) = x + 300", "def f(x: i8) = i32(x) + 300"),
    "R0308": Example(
        "def f(xs: 3.f32, ys: 3.f32) = xs + ys",
        "def f(xs: 3.f32, ys: 3.f32) = zip(xs)(ys) |> map((x, y) => x + y)",
    ),
    "R0309": Example(
        "def f(xs: 4.f32) = xs |> reduce(x => x, 0)",
        "def f(xs: 4.f32) = xs |> reduce((x, y) => x + y, 0)",
    ),
    "R0310": Example(
        "def f(xs: 4.f32) = xs |> map((x, y) => x + y)",
        "def f(xs: 4.(f32, f32)) = xs |> map((x, y) => x + y)",
    ),
    "R0311": Example(
        "def f = fun(xs => xs |> iterate(2)(depFun((l: Nat) =>\n  fun(ys: (2*l).l.f32 => ys |> take(l)))))",
        "def f = fun(xs => xs |> iterate(2)(depFun((l: Nat) =>\n  fun(ys: (2*l).4.f32 => ys |> take(l)))))",
    ),
    "R0401": Example("def f(xs: 100.f32) = xs |> split(32)", "def f(xs: 96.f32) = xs |> split(32)"),
    "R0402": Example(
        "def f(n: Nat, m: Nat)(xs: n.f32, ys: m.f32) = zip(xs)(ys)",
        "def f(n: Nat)(xs: n.f32, ys: n.f32) = zip(xs)(ys)",
    ),
    "R0403": Example(
        "def f(xs: 12.f32): 12.f32 = join(generate(i => generate(j => 1.0)))",
        "def f(xs: 12.f32): 12.f32 = join(generate(i => generate(j => 1.0)): 3.4.f32)",
    ),
    "R0404": Example("def f(xs: 3.f32) = xs |> take(4)", "def f(xs: 5.f32) = xs |> take(4)"),
    "R0411": Example("def f(xs: (2^2^2^2^2).f32) = xs", "def f(xs: (2^2^2^2).f32) = xs"),
    "R0412": Example(
        "def d = fun(x => (x, x))\ndef main = 1.0" + " |> d" * 13,
        "def d = fun(x => (x, x))\ndef main = 1.0 |> d |> d |> d",
    ),
    "R0413": Example(
        "def f = fun(x: f32 => x + 1)\n" + _twice(18) + "def main = f18(1.0)",
        "def f = fun(x: f32 => x + 1)\ndef main = f(1.0)",
    ),
    "R0503": Example(
        "def main = makeArray(2)(10)(20) |> idx(natAsIndex(2)(1 + 1))",
        "def main = makeArray(2)(10)(20) |> idx(natAsIndex(2)(1))",
    ),
    "R0504": Example("def main = 1 / 0", "def main = 1.0 / 0.0"),
    "R0510": Example(
        "def main = makeArray(2)(10)(20) |> reorder(2)(natFun(i => 0))(natFun(i => i))",
        "def main = makeArray(2)(10)(20) |> reorder(2)(natFun(i => 1 - i))(natFun(i => 1 - i))",
    ),
}


def message(text: str) -> str:
    """What the checker, or the interpreter, says of a text; empty where it says nothing."""
    from rise.check.program import check_text
    from rise.check.specialise import specialise
    from rise.errors import RiseError
    from rise.interpret import evaluate

    try:
        program = check_text(text, "program.rise")
        if "main" in program.own:
            evaluate(specialise(program["main"], {}))
    except RiseError as error:
        return error.render()
    return ""


def explained(code: str, meaning: str) -> str:
    """The long form: what it means, a wrong program with its message, and the right one."""
    example = EXAMPLES.get(code)
    if example is None:
        return f"{code}: {meaning}"
    parts = [
        f"{code}: {meaning}",
        f"Wrong:\n{_indented(example.wrong)}",
        f"The message:\n{_indented(message(example.wrong))}",
        f"Right:\n{_indented(example.right)}",
    ]
    return "\n\n".join(parts)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())
