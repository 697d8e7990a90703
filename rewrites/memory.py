"""Rules about where values are stored. Memory denotes the identity, so all of them are equations."""

from __future__ import annotations

from rewrites.rule import Rule
from rewrites.rule import library_rule as rule

SPACES = ("Global", "Shared", "Local")


def _stored(space: str) -> Rule:
    return rule(
        f"toMem({space})", "x", f"x |> toMem({space})", meaning="A value is stored, and read from there on."
    )


IN_GLOBAL, IN_SHARED, IN_LOCAL = map(_stored, SPACES)
MATERIALISED = tuple(
    rule(
        f"materialise generate in {space}",
        "generate(f)",
        f"generate(fun(i => i)) |> mapSeq(f) |> toMem({space})",
        meaning="A generated array is computed once, instead of wherever it is read.",
    )
    for space in SPACES
)
COPIED = tuple(
    rule(
        f"copy into {space}",
        "xs",
        f"xs |> mapSeq(fun(x => x)) |> toMem({space})",
        meaning="An array is copied by a loop.",
    )
    for space in SPACES
)

# --- stored values and views of them --------------------------------------------------------------------

NOT_STORED = rule(
    "toMem, removed",
    "x |> toMem(a, l)",
    "x",
    layouts=("l",),
    meaning="A value that is not stored is computed where it is read.",
)
STORED_PAIR = rule(
    "pair >> toMem",
    "(x, y) |> toMem(a, l)",
    "(x |> toMem(a, l), y |> toMem(a, l))",
    layouts=("l",),
    meaning="A pair is stored member by member.",
)
PAIR_STORED = rule(
    "pair of toMem",
    "(x |> toMem(a, l), y |> toMem(a, l))",
    "(x, y) |> toMem(a, l)",
    layouts=("l",),
    meaning="Two values stored alike are a stored pair.",
)
STORED_ZIP = rule(
    "zip >> toMem",
    "zip(xs)(ys) |> toMem(a, l)",
    "zip(xs |> toMem(a, l))(ys |> toMem(a, l))",
    layouts=("l",),
    meaning="A zip is stored component by component.",
)
LAYOUT_CHANGED = tuple(
    rule(
        f"toMem, {layout.split('(')[0]}",
        "x |> toMem(Shared)",
        f"x |> toMem(Shared, {layout})",
        sizes=sizes,
        meaning="Another layout of rows in shared memory, a property of the memory, not of the value.",
    )
    for layout, sizes in (("padded(p)", ("p",)), ("swizzled(b)", ("b",)))
)


def _view_of_stored(name: str, view: str) -> tuple[Rule, Rule]:
    """A view of what is stored, and what is stored as the view gives it."""
    primitive = view.split("(", maxsplit=1)[0]
    return (
        rule(
            f"toMem >> {name}",
            f"xs |> toMem(a, l) |> {view}",
            f"xs |> {view} |> toMem(a, l)",
            layouts=("l",),
            meaning=f"`{primitive}` of a stored array may precede the store.",
        ),
        rule(
            f"{name} >> toMem",
            f"xs |> {view} |> toMem(a, l)",
            f"xs |> toMem(a, l) |> {view}",
            layouts=("l",),
            meaning=f"`{primitive}` before a store may be a view of the stored array.",
        ),
    )


VIEWS_OF_STORED = tuple(
    made
    for name, view in (
        ("S", "split(n)"),
        ("J", "join"),
        ("T", "transpose"),
        ("asVector", "asVector(n)"),
        ("asScalar", "asScalar"),
    )
    for made in _view_of_stored(name, view)
)
STORED_BY_COLUMNS = rule(
    "toMem, by columns",
    "xss |> toMem(a, l)",
    "xss |> transpose |> toMem(a, l) |> transpose",
    layouts=("l",),
    meaning="A matrix is stored column by column, and read as it was.",
)

# --- how shared memory is filled ------------------------------------------------------------------------

COPIES = tuple(
    rule(
        f"toMem → {copy}",
        "x |> toMem(Shared, l)",
        f"x |> {copy}(l)",
        layouts=("l",),
        meaning=meaning,
    )
    for copy, meaning in (
        ("copyThreads", "By the threads of a block, through their registers."),
        ("copyAsync", "By the threads of a block, asynchronously."),
        ("bulkCopy", "By one thread, as a bulk tensor copy."),
    )
)
BULK_STORE = rule(
    "toMem → bulkStore",
    "x |> toMem(Shared, l) |> toMem(Global)",
    "x |> toMem(Shared, l) |> bulkStore",
    layouts=("l",),
    meaning="One thread copies a tile from shared memory, as a bulk tensor copy.",
)
