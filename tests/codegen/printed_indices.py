"""What printed kernels compute their indices to, by C's rules and by those of whole numbers.

Nothing is run over arrays: a kernel's text is read line by line, and a thread goes through it at few
iterations of each loop. Numbers have the types that C gives them: `unsigned` ones of the registers wrap,
overflow of signed ones is undefined. Whatever is compared, stored or used as an index has to have the value
that it has without bounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

TOKEN = re.compile(r"\s*(\d+\.\w+|\d+|[A-Za-z_][\w.]*|&&|\|\||[<>=!]=|.)")
BITS = {"int": (-(2**31), 2**31), "unsigned": (0, 2**32), "long long": (-(2**63), 2**63)}
RANK = ("int", "unsigned", "long long")


class WrongIndex(AssertionError):
    """A number that C computes otherwise than mathematics does."""


@dataclass(frozen=True)
class Number:
    """A value by C's rules, its type, and the value without bounds."""

    value: int
    type: str
    exact: int

    @staticmethod
    def of(value: int, type_: str, exact: int, what: str) -> Number:
        low, high = BITS[type_]
        if type_ != "unsigned" and not low <= value < high:
            raise WrongIndex(f"{what}: {value} overflows {type_}")
        return Number((value - low) % (high - low) + low, type_, exact)

    def converted(self, type_: str) -> Number:
        low, high = BITS[type_]
        return Number((self.value - low) % (high - low) + low, type_, self.exact)

    def observed(self, what: str) -> int:
        if self.value != self.exact:
            raise WrongIndex(f"{what}: {self.value} in place of {self.exact}")
        return self.exact


@dataclass
class Expression:
    """A recursive descent over the operators that indices have. `other` sees what is no number."""

    text: str
    variables: Mapping[str, Number]
    tokens: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokens = TOKEN.findall(self.text)[::-1]

    def evaluate(self) -> Number:
        found = self._compared()
        if self.tokens:
            raise ValueError(f"{self.text!r} goes on with {self.tokens[-1]!r}")
        return found

    def _next(self) -> str:
        return self.tokens[-1] if self.tokens else ""

    def _compared(self) -> Number:
        left = self._sum()
        while self._next() in ("<", ">", "=="):
            operator, right = self.tokens.pop(), self._sum()
            type_ = RANK[max(RANK.index(left.type), RANK.index(right.type))]
            a, b = left.converted(type_), right.converted(type_)
            compared: dict[str, Callable[[int, int], bool]] = {
                "<": int.__lt__, ">": int.__gt__, "==": int.__eq__,
            }  # fmt: skip
            does = compared[operator]
            left = Number(does(a.value, b.value), "int", does(left.exact, right.exact))
        return left

    def _sum(self) -> Number:
        left = self._product()
        while self._next() in ("+", "-"):
            left = self._combined(self.tokens.pop(), left, self._product())
        return left

    def _product(self) -> Number:
        left = self._unary()
        while self._next() in ("*", "/", "%"):
            left = self._combined(self.tokens.pop(), left, self._unary())
        return left

    def _unary(self) -> Number:
        token = self.tokens.pop()
        if token == "-":
            return self._combined("-", Number(0, "int", 0), self._unary())
        if token == "(":
            for type_ in ("long long", "int"):
                words = [*type_.split(), ")"]
                if self.tokens[-len(words) :][::-1] == words:
                    del self.tokens[-len(words) :]
                    return self._unary().converted(type_)
            return self._until(")", self._compared())
        if token in ("min", "max"):
            self._expect("(")
            left = self._until(",", self._compared())
            right = self._until(")", self._compared())
            return self._combined(token, left, right)
        if token == "uniform":
            self._expect("(")
            return self._until(")", self._compared())
        if token.isdigit():
            return Number(int(token), "int" if int(token) < 2**31 else "long long", int(token))
        return self.variables[token]

    def _until(self, token: str, found: Number) -> Number:
        self._expect(token)
        return found

    def _expect(self, token: str) -> None:
        if self.tokens.pop() != token:
            raise ValueError(f"{self.text!r} has no {token!r} where one is expected")

    def _combined(self, operator: str, left: Number, right: Number) -> Number:
        type_ = RANK[max(RANK.index(left.type), RANK.index(right.type))]
        a, b = left.converted(type_).value, right.converted(type_).value
        value, exact = _applied(operator, a, b), _applied(operator, left.exact, right.exact)
        return Number.of(value, type_, exact, self.text)


def _applied(operator: str, a: int, b: int) -> int:
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
    if operator == "/":
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return abs(a) % abs(b) * (1 if a >= 0 else -1)


# --- statements -----------------------------------------------------------------------------------------

LOOP = re.compile(r"for \((int|long long) (\w+) = (.*?); \2 < (.*?); \2 \+= (.*?)\) \{")
INDEX = re.compile(r"(\w+)\[([^\[\]]*)\]")
INTEGER = re.compile(r"(?:const )?(int|long long) (\w+) = ([^\[\]?]*);")


@dataclass(frozen=True)
class Access:
    array: str
    index: int
    written: bool


@dataclass
class Thread:
    """One thread of a kernel: the arrays' elements that it uses, at some iterations of each loop.

    arrays: those whose accesses are wanted, with the number of their elements
    """

    lines: Sequence[str]
    arrays: Mapping[str, int]
    found: list[Access] = field(default_factory=list)

    def run(self, start: int, end: int, variables: dict[str, Number]) -> None:
        line = start
        while line < end:
            text = self.lines[line].split("//")[0].strip()
            closing = self._closing(line) if text.endswith("{") else line
            if loop := LOOP.match(text):
                self._loop(loop, line, closing, variables)
            elif text.startswith("if (") and text.endswith("{"):
                if self._value(text[4:-3], variables):
                    self.run(line + 1, closing, dict(variables))
            elif integer := INTEGER.match(text):
                type_, name, value = integer.groups()
                number = Expression(value, variables).evaluate().converted(type_)
                number.observed(text)
                variables[name] = number
            else:
                self._accesses(text, variables)
            line = closing + 1

    def _value(self, text: str, variables: Mapping[str, Number]) -> int:
        return Expression(text, variables).evaluate().observed(text)

    def _closing(self, line: int) -> int:
        depth = 0
        for number in range(line, len(self.lines)):
            code = self.lines[number].split("//")[0]
            depth += code.count("{") - code.count("}")
            if depth == 0:
                return number
        raise ValueError("a block is not closed")

    def _loop(self, loop: re.Match[str], line: int, closing: int, variables: dict[str, Number]) -> None:
        type_, name, first, count, step = loop.groups()
        start, end, by = (self._value(text, variables) for text in (first, count, step))
        for index in corners(max(0, -(-(end - start) // by))):
            value = start + index * by
            Number.of(value + by, type_, value + by, loop[0])
            self.run(line + 1, closing, {**variables, name: Number(value, type_, value)})

    def _accesses(self, text: str, variables: Mapping[str, Number]) -> None:
        target = text.split(" = ", maxsplit=1)[0] if " = " in text else ""
        for access in INDEX.finditer(text):
            array, inside = access.groups()
            index = self._value(inside, variables)
            if array in self.arrays:
                written = access.start() == 0 and bool(target)
                assert 0 <= index < self.arrays[array], (text, index)
                self.found.append(Access(array, index, written))


def corners(count: int, powers: Sequence[int] = (31, 32, 33)) -> Iterator[int]:
    """The first, the last, and those around powers of two, of so many."""
    wanted = {0, 1, count - 1, count // 2}
    for power in powers:
        wanted |= {2**power - 1, 2**power, 2**power + 1}
    return iter(sorted(n for n in wanted if 0 <= n < count))


def threads(grid: Sequence[int], block: Sequence[int]) -> Iterator[dict[str, Number]]:
    """The registers of threads at the corners of a launch, and around powers of two."""
    for x in sorted({n for p in (31, 32, 33) for n in _around(2**p // max(1, block[0]), grid[0])}):
        for y in sorted({0, grid[1] - 1}):
            for thread in sorted({0, block[0] - 1}):
                for other in sorted({0, block[1] - 1}):
                    given = {"blockIdx.x": x, "blockIdx.y": y, "blockIdx.z": grid[2] - 1}
                    given |= {"threadIdx.x": thread, "threadIdx.y": other, "threadIdx.z": block[2] - 1}
                    yield {name: Number(value, "unsigned", value) for name, value in given.items()}


def _around(block: int, count: int) -> Iterator[int]:
    return (n for n in (0, 1, block - 1, block, block + 1, count // 2, count - 1) if 0 <= n < count)


def accesses(
    source: str, grid: Sequence[int], block: Sequence[int], arrays: Mapping[str, int]
) -> list[list[Access]]:
    """Of each thread at a corner of the launch."""
    lines = source.splitlines()
    start = next(n for n, line in enumerate(lines) if line.endswith(") {") and "Global<" in line)
    found = []
    for registers in threads(grid, block):
        thread = Thread(lines, arrays)
        thread.run(start + 1, len(lines) - 1, dict(registers))
        found.append(thread.found)
    return found
