"""What somebody who wrote an unknown name may have meant."""

from __future__ import annotations

from collections.abc import Iterable


def suggestion(name: str, known: Iterable[str]) -> str | None:
    """A hint with the most similar of the known names; None where none is similar."""
    from difflib import get_close_matches  # late: only mistakes need it

    close = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else None
