"""What somebody who wrote an unknown name may have meant."""

from __future__ import annotations

from collections.abc import Iterable

# how alike two names have to be, from 0 to 1: `mpa` and `map` are, `wrong` and `round` are not
ALIKE = 0.65


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The most similar of the known names, None where none is similar; case alone is no difference."""
    from difflib import get_close_matches  # late: only mistakes need it

    names = list(dict.fromkeys(known))
    exact = [other for other in names if other.lower() == name.lower()]
    if exact:
        return exact[0]
    lowered = {other.lower(): other for other in names}
    close = get_close_matches(name, names, 1, ALIKE) or [
        lowered[other] for other in get_close_matches(name.lower(), lowered, 1, ALIKE)
    ]
    return close[0] if close else None


def suggestion(name: str, known: Iterable[str]) -> str | None:
    """A hint with the most similar of the known names; None where none is similar."""
    close = nearest(name, known)
    return f"did you mean `{close}`?" if close else None
