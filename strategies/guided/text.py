"""Sketches as text: `map m/32 > map n/32 > reduce k/4 > (map 32 | mapSeq 32) & toMem(Global)`.

    sketch ::= both | both `|` sketch
    both   ::= nest | nest `&` both
    nest   ::= part | loop `>` nest
    part   ::= loop | `_` | ( sketch ) | `` `term` ``
    loop   ::= name | name(word, …) | name size | name(word, …) size
    size   ::= an expression over sizes with + - * / ( ), in which `_` is a hole

What is in parentheses after a name follows without a space; a size follows with one. `/` is exact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce

from rise.check.program import check_text
from rise.check.specialise import specialise
from rise.errors import RiseError, StrategyError
from rise.nat import Nat, constant, variable
from rise.normal import data_flow
from rise.primitives.declare import REGISTRY
from rise.source import Source, Span
from rise.suggest import suggestion
from strategies.guided.sketch import ANY_SIZE, LOOP, VECTOR, Contains, Node, Sketch, Term, anything

WORDS = re.compile(r"\s*(?:(`[^`]*`)|(\w+)|(\S))")
FORMS = "`map m/32 > reduce 4` is a map over m/32 that contains a reduction over 4"
OPERATORS = {"+": 1, "-": 1, "*": 2, "/": 2}


@dataclass(frozen=True)
class Word:
    """A word of a sketch, and whether it stands directly behind the one before it."""

    text: str
    start: int
    close: bool


def sketch(text: str) -> Sketch:
    """The sketch that a text says. StrategyError R0640, with the place, where it says none."""
    parser = Parser(Source("sketch", text), words(text))
    made = parser.sketch()
    if parser.next is not None:
        raise parser.error(f"`{parser.next.text}` does not continue a sketch", FORMS)
    return made


def words(text: str) -> tuple[Word, ...]:
    found, end = [], 0
    while (match := WORDS.match(text, end)) is not None:
        start = match.start(match.lastindex or 0)
        found.append(Word(match[match.lastindex or 0], start, start == end and end > 0))
        end = match.end()
    return tuple(found)


@dataclass
class Parser:
    """Recursive descent; `position` is the number of the next word."""

    source: Source
    words: tuple[Word, ...]
    position: int = 0

    @property
    def next(self) -> Word | None:
        return self.words[self.position] if self.position < len(self.words) else None

    def take(self, *texts: str) -> Word | None:
        """The next word, if it is one of these."""
        word = self.next
        if word is None or (texts and word.text not in texts):
            return None
        self.position += 1
        return word

    def expect(self, text: str, opened: Word) -> None:
        if self.take(text) is None:
            raise self.error(f"`{opened.text}` is not closed by `{text}`", None, opened)

    def span(self, word: Word | None) -> Span:
        """The place of a word; behind the last one where there is none."""
        line_of = self.source.text.count
        start = len(self.source.text) if word is None else word.start
        line, before = 1 + line_of("\n", 0, start), self.source.text.rfind("\n", 0, start) + 1
        width = 1 if word is None else len(word.text)
        return Span(self.source, line, start - before + 1, line, start - before + 1 + width)

    def error(self, message: str, hint: str | None, word: Word | None = None) -> StrategyError:
        return StrategyError("R0640", message, self.span(word or self.next), hint)

    # --- sketches ---------------------------------------------------------------------------------------

    def sketch(self) -> Sketch:
        parts = [self.both()]
        while self.take("|"):
            parts.append(self.both())
        return reduce(lambda a, b: a | b, parts)

    def both(self) -> Sketch:
        parts = [self.nest()]
        while self.take("&"):
            parts.append(self.nest())
        return reduce(lambda a, b: a & b, parts)

    def nest(self) -> Sketch:
        first = self.next
        outer = self.part()
        arrow = self.take(">")
        if arrow is None:
            return outer
        if not isinstance(outer, Contains) or outer.within != anything:
            raise self.error(f"`{outer}` is not one loop, and can contain nothing", FORMS, first)
        return Contains(outer.node, self.nest())

    def part(self) -> Sketch:
        word = self.take()
        if word is None:
            raise self.error("the sketch ends where a loop, a primitive or `_` has to follow", FORMS)
        if word.text == "_":
            return anything
        if word.text == "(":
            inner = self.sketch()
            self.expect(")", word)
            return inner
        if word.text.startswith("`"):
            return self.term(word)
        if not word.text.isidentifier():
            raise self.error(f"`{word.text}` is no loop, no primitive and not `_`", FORMS, word)
        return self.loop(word)

    def term(self, word: Word) -> Sketch:
        """A closed term of the language, checked by itself."""
        try:
            program = check_text(f"def term = {word.text[1:-1]}")
            return Term(data_flow(specialise(program["term"], {})))
        except RiseError as wrong:
            raise self.error(f"the term of a sketch is none: {wrong.message}", wrong.hint, word) from None

    def loop(self, word: Word) -> Sketch:
        name = word.text
        if name not in REGISTRY and name not in (LOOP, VECTOR):
            hint = suggestion(name, {*REGISTRY, LOOP, VECTOR})
            raise self.error(f"there is no loop and no primitive `{name}`", hint or FORMS, word)
        opened = self.next if self.next is not None and self.next.close else None
        given = self.given() if opened is not None and self.take("(") else ()
        size = None if self.next is None or self.next.text in ("|", "&", ">", ")") else self.size()
        return Contains(Node(name, size, given, self.span(word)))

    def given(self) -> tuple[str, ...]:
        """The words in parentheses behind a name."""
        found = []
        opened = self.words[self.position - 1]
        while (word := self.take()) is not None and word.text != ")":
            found.append(word.text)
            if self.take(",") is None:
                self.expect(")", opened)
                return tuple(found)
        raise self.error("a word is missing in the parentheses", "as in `toMem(Global)`", opened)

    # --- sizes ------------------------------------------------------------------------------------------

    def size(self) -> Nat:
        start, first = self.position, self.next
        size = self.sum(1)
        if sum(word.text == "_" for word in self.words[start : self.position]) > 1:
            raise self.error(
                "a size has one hole `_` at most", "the size that `_` stands for is found", first
            )
        return size

    def sum(self, binding: int) -> Nat:
        """Operators that bind as tightly as `binding`, or tighter, from left to right."""
        left = self.operand() if binding > 2 else self.sum(binding + 1)
        while binding <= 2 and (word := self.next) is not None and OPERATORS.get(word.text) == binding:
            self.position += 1
            left = self.combined(left, word, self.sum(binding + 1))
        return left

    def combined(self, left: Nat, operator: Word, right: Nat) -> Nat:
        match operator.text:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case _:
                quotient = left.exact_quotient(right)
                if quotient is None:
                    raise self.error(f"`{left}` cannot be divided by `{right}`", None, operator)
                return quotient

    def operand(self) -> Nat:
        word = self.take()
        if word is None:
            raise self.error("a size is missing", "`_` is any size")
        if word.text == "(":
            inner = self.sum(1)
            self.expect(")", word)
            return inner
        if word.text == "_":
            return ANY_SIZE
        if word.text.isdecimal():
            return constant(int(word.text))
        if not word.text.isidentifier():
            raise self.error(f"`{word.text}` is no size", "sizes are numbers, names and `_`", word)
        return variable(word.text)
