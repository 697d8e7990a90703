"""The vocabulary of programs in Python: primitives, types, kinds and memories, by their names.

    from rise.ops import Array, Nat, add, f32, map, reduce

There is no list to keep: a name means what it means in the text of a program. Names that Python
reserves have an underscore behind them: `or_`, `and_`, `not_`.
"""

from __future__ import annotations

import keyword
from functools import cache
from typing import Any

from rise.embed import functions
from rise.embed import types as written
from rise.embed.traced import named
from rise.primitives.declare import REGISTRY
from rise.syntax.resolve import APPLICATIONS, FRAGMENT_KINDS, KINDS, LAYOUTS, SIZE_OPERATIONS, SPACES
from rise.types import ROW_MAJOR, SCALARS

# constructs of the language that are no primitives (`let` is one), by their name in `rise.embed.functions`
FORMS = {"fun": "fun", "depFun": "depfun", "natFun": "natfun", "typed": "typed"}
# types that have a notation of their own in the text of a program
TYPES = ("Pair", "Function")


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return _names()
    found = None if name.startswith("_") else _find(name)
    if found is None:
        raise AttributeError(f"module 'rise.ops' has no attribute {name!r}")
    return found


def __dir__() -> list[str]:
    return _names()


@cache
def _find(name: str) -> Any:
    """What a program means by a name; None where it means nothing."""
    if name in FORMS:
        return getattr(functions, FORMS[name])
    if name in KINDS:
        return written.KindConstructor(KINDS[name])
    if name in APPLICATIONS or name in TYPES:
        return written.constructor(name)
    bare = name[:-1] if keyword.iskeyword(name[:-1]) else name
    return named(bare) if bare in _plain() and name not in keyword.kwlist else None


@cache
def _plain() -> frozenset[str]:
    """Primitives, scalar types, memories, layouts, and the operations on sizes that have a name."""
    operations = (o for o in SIZE_OPERATIONS if o.isidentifier())
    return frozenset((*REGISTRY, *SCALARS, *SPACES, *FRAGMENT_KINDS, *LAYOUTS, ROW_MAJOR.name, *operations))


def _names() -> list[str]:
    plain = (f"{name}_" if keyword.iskeyword(name) else name for name in _plain())
    return sorted({*FORMS, *KINDS, *APPLICATIONS, *TYPES, *plain})
