"""What somebody who wrote an unknown name may have meant."""

from __future__ import annotations

from collections.abc import Iterable

# how alike two names have to be, from 0 to 1: `mpa` and `map` are, `wrong` and `round` are not
ALIKE = 0.65
# of more names, those are compared whose length is nearest
MOST_COMPARED = 2000
# so many that are alike are compared by what was mistyped
CANDIDATES = 20


def nearest(name: str, known: Iterable[str], alike: float = ALIKE) -> str | None:
    """The most similar of the known names, None where none is similar; case alone is no difference."""
    names = list(dict.fromkeys(known))
    exact = [other for other in names if other.lower() == name.lower()]
    if exact:
        return exact[0]
    if len(names) > MOST_COMPARED:
        names = sorted(names, key=lambda other: abs(len(other) - len(name)))[:MOST_COMPARED]
    lowered = {other.lower(): other for other in names}
    return _closest(name, {other: other for other in names}, alike) or _closest(name.lower(), lowered, alike)


def _closest(name: str, names: dict[str, str], alike: float) -> str | None:
    """Of the names that are alike, the one with the fewest slips of the finger."""
    from difflib import get_close_matches  # late: only mistakes need it

    close = get_close_matches(name, names, CANDIDATES, alike)
    return names[min(close, key=lambda other: slips(name, other))] if close else None


def slips(written: str, meant: str) -> int:
    """How many letters are wrong, missing, too many or swapped with their neighbour."""
    before: list[int] = []
    last = list(range(len(meant) + 1))
    for i, letter in enumerate(written, 1):
        row = [i]
        for j, other in enumerate(meant, 1):
            least = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == meant[j - 2] and written[i - 2] == other:
                least = min(least, before[j - 2] + 1)
            row.append(least)
        before, last = last, row
    return last[-1]


def suggestion(name: str, known: Iterable[str]) -> str | None:
    """A hint with the most similar of the known names; None where none is similar."""
    close = nearest(name, known)
    return f"did you mean `{close}`?" if close else None
