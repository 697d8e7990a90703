"""Programs that are nearly right: the texts of the examples and of the prelude, each changed a little.

`mutants(seed)` is endless and the same for one seed; `outcome` runs what a user would run on a text. A mutant
is accepted or refused with a code. Anything else, an exception of Python or no answer, is a mistake of the
compiler: the exception is raised here, and the caller limits the time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from random import Random

from rise.check.program import Loader
from rise.depth import deep, too_deep
from rise.errors import Mistakes, RiseError, together
from rise.pretty import full_type
from rise.source import Source
from rise.syntax.format import format_text
from tests.attack.outcome import Outcome, Verdict, refused

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "rise" / "library"
TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|"[^"\n]*"|[A-Za-z_]\w*|\d+(?:\.\d+)?|\|>|>>|=>|->|[<>=!]=|&&|\|\||\S', re.DOTALL
)


@dataclass(frozen=True)
class Mutant:
    """A text, and how it came about."""

    text: str
    description: str

    def __str__(self) -> str:
        return self.description


def mutants(seed: int) -> Iterator[Mutant]:
    """Without end; every one from its number and the seed alone."""
    for number in count():
        yield mutant(seed, number)


def mutant(seed: int, number: int) -> Mutant:
    """The mutant of that number."""
    random = Random(f"{seed}/{number}")
    name, text = random.choice(originals())
    changes = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        change = random.choice(CHANGES)
        text = change(random, text)
        changes.append(change.__name__.strip("_"))
    return Mutant(text, f"seed {seed}, number {number}: {name}, {', '.join(changes)}")


@deep
def outcome(mutant: Mutant) -> Outcome:
    """Parses, checks and formats. Raises whatever is no refusal, a refusal without a code included."""
    try:
        return _outcome(Source("mutant.rise", mutant.text))
    except RecursionError:
        return refused(too_deep())


def _outcome(source: Source) -> Outcome:
    checked = _loader().check(source, LIBRARY)
    for name in checked.own:
        full_type(checked.definitions[name])
    found: list[RiseError] = [together(checked.mistakes)] if checked.mistakes else []
    try:
        format_text(source)
    except RiseError as error:
        found.append(error)
    each = [m for told in found for m in (told.mistakes if isinstance(told, Mistakes) else (told,))]
    for told in found:
        told.render()
    outcomes = [refused(mistake) for mistake in each]
    return next((o for o in outcomes if o.verdict.is_defect), (*outcomes, Outcome(Verdict.RIGHT))[0])


# --- the texts --------------------------------------------------------------------------------------------


@cache
def originals() -> tuple[tuple[str, str], ...]:
    """Each definition of the examples and the prelude with what it uses, and where it is from."""
    found = []
    for path in (*sorted((ROOT / "examples").glob("*.rise")), LIBRARY / "prelude.rise"):
        head, *definitions = re.split(r"^(?=def )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        imports = "".join(line + "\n" for line in head.splitlines() if line.startswith("import"))
        texts = {text.split()[1].rstrip(":"): text for text in definitions}
        for name in texts:
            found.append((f"{name} of {path.name}", imports + "".join(_with_used(name, texts))))
    return tuple(found)


def _with_used(name: str, texts: dict[str, str]) -> list[str]:
    """A definition behind those that it uses, in the order of the file."""
    used, waiting = set(), [name]
    while waiting:
        if (one := waiting.pop()) not in used:
            used.add(one)
            waiting += [word for word in re.findall(r"\w+", texts[one]) if word in texts]
    return [text for other, text in texts.items() if other in used]


@cache
def _loader() -> Loader:
    """One for all: the prelude, which nearly all import, is checked once."""
    return Loader()


# --- the changes ------------------------------------------------------------------------------------------


def _tokens(text: str) -> list[re.Match[str]]:
    return list(TOKEN.finditer(text))


def _replaced(text: str, found: re.Match[str], new: str) -> str:
    return text[: found.start()] + new + text[found.end() :]


def _some(random: Random, text: str, wanted: Callable[[str], bool]) -> re.Match[str] | None:
    tokens = [token for token in _tokens(text) if wanted(token[0])]
    return random.choice(tokens) if tokens else None


def _token_deleted(random: Random, text: str) -> str:
    found = _some(random, text, lambda _: True)
    return _replaced(text, found, "") if found else text


def _token_doubled(random: Random, text: str) -> str:
    found = _some(random, text, lambda _: True)
    return _replaced(text, found, f"{found[0]} {found[0]}") if found else text


def _tokens_swapped(random: Random, text: str) -> str:
    tokens = _tokens(text)
    if len(tokens) < 2:
        return text
    at = random.randrange(len(tokens) - 1)
    first, second = tokens[at], tokens[at + 1]
    between = text[first.end() : second.start()]
    return text[: first.start()] + second[0] + between + first[0] + text[second.end() :]


def _token_from_elsewhere(random: Random, text: str) -> str:
    found, other = _some(random, text, lambda _: True), _some(random, text, lambda _: True)
    return _replaced(text, found, other[0]) if found and other else text


def _line_deleted(random: Random, text: str) -> str:
    lines = text.split("\n")
    del lines[random.randrange(len(lines))]
    return "\n".join(lines)


def _line_doubled(random: Random, text: str) -> str:
    lines = text.split("\n")
    at = random.randrange(len(lines))
    return "\n".join([*lines[: at + 1], *lines[at:]])


def _lines_swapped(random: Random, text: str) -> str:
    lines = text.split("\n")
    a, b = random.randrange(len(lines)), random.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


def _bracket_changed(random: Random, text: str) -> str:
    found = _some(random, text, lambda token: token in "()[]{}")
    return _replaced(text, found, random.choice("()[]{}")) if found else text


def _end_cut_off(random: Random, text: str) -> str:
    return text[: random.randrange(len(text) + 1)]


def _character_inserted(random: Random, text: str) -> str:
    at = random.randrange(len(text) + 1)
    letters = ";#$@\\'\"`~²×·λ\ufeff\u200b\u00a0\x00\x0c\r\t|&.,:=-^!?é\U0001f600"
    return text[:at] + random.choice(letters) + text[at:]


def _is_number(token: str) -> bool:
    return token.isascii() and token[0].isdigit()


def _is_name(token: str) -> bool:
    return token.isidentifier()


def _number(random: Random) -> str:
    """Small, at a limit, huge, or a tower of powers."""
    large = "9" * random.choice((9, 19, 40, 200, 400, 401, 5000))
    tower = "^".join(str(random.randrange(2, 20)) for _ in range(random.randrange(2, 7)))
    small = random.choice(("0", "1", "2", "3", "7", "65536", "4294967296", "1e999", "1e-999", "1.5", "0.0"))
    return random.choice((small, small, large, f"({tower})", f"({small} - {small})", f"(n^{small})"))


def _number_replaced(random: Random, text: str) -> str:
    found = _some(random, text, _is_number)
    return _replaced(text, found, _number(random)) if found else text


def _number_for_a_name(random: Random, text: str) -> str:
    found = _some(random, text, _is_name)
    return _replaced(text, found, _number(random)) if found else text


def _name_misspelt(random: Random, text: str) -> str:
    found = _some(random, text, _is_name)
    if not found:
        return text
    letters = list(found[0])
    at = random.randrange(len(letters))
    letters[at : at + 2] = reversed(letters[at : at + 2])
    return _replaced(text, found, "".join(letters))


def _nested_deeply(random: Random, text: str) -> str:
    """Around a token, hundreds of brackets, operators or functions."""
    found = _some(random, text, lambda token: _is_name(token) or _is_number(token))
    if not found:
        return text
    depth = random.choice((3, 30, 300))
    before, after = random.choice(
        (("(", ")"), ("-", ""), ("!", ""), ("(1 + ", ")"), ("fun(q => ", ")"), ("f32(", ")"))
    )
    return _replaced(text, found, before * depth + found[0] + after * depth)


def _doubled_often(random: Random, text: str) -> str:
    """A value that is paired with itself, again and again: its type is a small graph and a huge text."""
    found = _some(random, text, lambda token: token == "=>")
    if not found:
        return text
    value = random.choice(("1.0", "x", "xs", "(1, 2.0)"))
    times = random.choice((3, 12, 40))
    lets = "".join(f"let y{i + 1} = (y{i}, y{i}) in " for i in range(times))
    return _replaced(text, found, f"=> let y0 = {value} in {lets}")


def _piped_often(random: Random, text: str) -> str:
    found = _some(random, text, lambda token: token == "|>")
    if not found:
        return text
    step = random.choice(("fun(x => (x, x))", "zip", "split(2)", "map(fun(x => x))", "transpose", "join"))
    return _replaced(text, found, f"|> {step} " * random.choice((2, 10, 40)) + "|>")


def _size_multiplied(random: Random, text: str) -> str:
    """A size in a type or an argument becomes a long product, a deep quotient, a large power."""
    found = _some(random, text, lambda token: token in ("n", "m", "k"))
    if not found:
        return text
    n, times = found[0], random.choice((3, 12, 40))
    new = random.choice(
        (
            "*".join(f"({n} + {i})" for i in range(times)),
            n + "".join(f"/{i + 2}%{i + 3}" for i in range(times)),
            f"min({n}, " * times + n + ")" * times,
            n + "".join(f"^{i + 2}" for i in range(times)),
            f"({n} + 1)^{10**times}",
            f"{10**times}^{n}",
        )
    )
    return _replaced(text, found, f"({new})")


CHANGES = (
    _token_deleted, _token_doubled, _tokens_swapped, _token_from_elsewhere, _line_deleted, _line_doubled,
    _lines_swapped, _bracket_changed, _end_cut_off, _character_inserted, _number_replaced, _number_for_a_name,
    _name_misspelt, _nested_deeply, _doubled_often, _piped_often, _size_multiplied,
)  # fmt: skip
