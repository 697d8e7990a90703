"""What there is to say of the rules, read from their declarations: for a terminal, and for docs/.

`python -m rise.cli.rules` writes docs/rules.md.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import count, groupby
from pathlib import Path
from textwrap import fill
from typing import Any

from rewrites.conditions import described
from rewrites.examples import example
from rewrites.instances import parameters
from rewrites.library import modules, places, rules
from rewrites.proofs.marks import Mark, mark
from rewrites.rule import Computed, Rule
from rise.interpret.evaluate import free_identifiers
from rise.nat import NatUnknown, variable
from rise.syntax.format import format_expression
from rise.types import Type, Variable, substitute_type, unknowns

Item = dict[str, Any]

INEXACT = "Changes the order of sums: floats may be rounded differently."
HEADER = """\
# Rules

Written by `python -m rise.cli.rules`, from the declarations in `rewrites/`.

The names are the rules: `*f` is map(f), `**f` map(map(f)); `S`, `J`, `T` are split, join and transpose;
`f >> g` is g after f. What is free in an equation stands for any term of its type, in which no bound variable
occurs but those that it is applied to. `rise rules NAME` prints a rule with its meaning, parameters, types,
conditions, an example and the strategies that use it. A rule whose equation is long is listed by its meaning.

The rules of a file together are a set that `rise search --rules` takes by the file's name. Of all of them
{unused} are in no strategy of ours: they are the algebra of their primitives, so that a search, a normal form
or a strategy of yours need not stop where ours had no use for a law.

{legend}
"""
SYMBOLS = {Mark.PROVED: "∎", Mark.REORDERED: "≈", Mark.TESTED: "·"}
LEGEND = (
    "∎ marks a rule that is proved for all sizes, types and functions, ≈ one that is proved up to the"
    " rounding of sums; the others, ·, are tested on instances."
)
SHORT = 160  # the longest equation in the list


def items() -> list[Item]:
    """One item a rule, those of a file together."""
    return [item(rule) for rule in rules().values()]


def in_full(item: Item) -> str:
    """Everything about one rule, for a terminal."""
    rule = rules()[item["name"]]
    return "\n".join([_title(item), *(f"    {line}" for line in _about(rule, item))])


def details(item: Item) -> Item:
    """The item with its types, its example and its uses, which take longer to find out."""
    rule = rules()[item["name"]]
    made = example(rule)
    shown = {"before": made.before, "after": made.after, "where": made.names} if made else None
    return {**item, "types": _types(rule), "example": shown, "used": list(uses().get(rule.name, ()))}


def listed(all_items: list[Item]) -> str:
    """Name and equation of each, grouped by the file that declares them."""
    blocks = []
    for group, members in groupby(all_items, key=lambda item: str(item["group"])):
        lines = [f"  {_symbol(item)} {item['name']}:  {item['equation']}" for item in members]
        blocks.append("\n".join([f"{group}: {purpose(group)}", *lines]))
    return "\n\n".join([*blocks, f"  {LEGEND}"])


def markdown() -> str:
    """The reference page docs/rules.md."""
    legend = fill(f"{LEGEND} [proofs.md](proofs.md) says how.", 110)
    parts = [HEADER.format(legend=legend, unused=len(rules().keys() - uses().keys()))]
    for group, members in groupby(items(), key=lambda item: str(item["group"])):
        parts.append(f"## {group}\n\n{purpose(group)}\n")
        parts += [*map(_entry, members), ""]
    return "\n".join(parts).rstrip("\n") + "\n"


# --- one rule -------------------------------------------------------------------------------------------


def item(rule: Rule | Computed) -> Item:
    """What a list says of a rule."""
    conditions = () if isinstance(rule, Computed) else rule.conditions
    return {
        "name": rule.name,
        "group": places()[rule.name][0],
        "equation": equation(rule),
        "sizes": [] if isinstance(rule, Computed) else parameters(rule),
        "meaning": rule.meaning,
        "exact": rule.exact,
        "known": mark(rule).value,
        "conditions": [dict(zip(("name", "reason"), described(c), strict=True)) for c in conditions],
    }


def equation(rule: Rule | Computed) -> str:
    """left → right, on one line."""
    if isinstance(rule, Computed):
        return rule.equation
    return f"{format_expression(rule.left)} → {format_expression(rule.right)}"


def _title(item: Item) -> str:
    given = f"  (parameters: {', '.join(item['sizes'])})" if item["sizes"] else ""
    return f"{item['name']}{given}"


def _about(rule: Rule | Computed, item: Item) -> Iterator[str]:
    full = details(item)
    if isinstance(rule, Computed):
        yield rule.equation
    else:
        yield format_expression(rule.left)
        yield f"→ {format_expression(rule.right)}"
    if item["meaning"]:
        yield item["meaning"]
    yield f"{_symbol(item)} {item['known']}"
    if full["types"]:
        yield f"of type {full['types'][0]}" + (f", where {full['types'][1]}" if full["types"][1] else "")
    yield from (f"only if {c['name']}. {c['reason']}" for c in item["conditions"])
    if not item["exact"]:
        yield INEXACT
    if full["example"]:
        yield f"{full['example']['before']}"
        given = full["example"]["where"]
        yield f"→ {full['example']['after']}" + (f"    with {given}" if given else "")
    module, constant = places()[rule.name]
    yield f"declared in rewrites.{module}, in {constant}"
    yield (
        f"used in {', '.join(full['used'])}" if full["used"] else f"a law for `rise search --rules {module}`"
    )


def _entry(item: Item) -> str:
    """A rule on one line: its equation where that is short, else its meaning."""
    what = f"`{item['equation']}`" if len(item["equation"]) <= SHORT else item["meaning"]
    return f"* **{escaped(item['name'])}**: {_symbol(item)} {what}"


def doc_entry(rule: Rule | Computed) -> str:
    """A rule's name, mark, equation and meaning; empty where it is one of a user's own."""
    if rule.name not in places():
        return ""
    made = item(rule)
    short = f"`{made['equation']}` " if len(made["equation"]) <= SHORT else ""
    return f"**{escaped(made['name'])}**: {_symbol(made)} {short}{made['meaning']}"


def _symbol(item: Item) -> str:
    return SYMBOLS[Mark(item["known"])]


def escaped(name: str) -> str:
    """A name in which Markdown finds no emphasis."""
    return name.replace("*", "\\*")


# --- types ----------------------------------------------------------------------------------------------


def _types(rule: Rule | Computed) -> tuple[str, str] | None:
    """The type of both sides, and those of the free names, with letters for what is open."""
    if isinstance(rule, Computed):
        return None
    given = sorted(free_identifiers(rule.lhs), key=lambda i: i.name)
    letters = letters_of(rule)
    shown = [str(substitute_type(t, letters)) for t in (rule.lhs.type, *(i.type for i in given))]
    return shown[0], ", ".join(f"{i.name}: {t}" for i, t in zip(given, shown[1:], strict=True))


def letters_of(rule: Rule) -> Mapping[Any, Any]:
    """A letter for each size and type that the left side leaves open."""
    given = sorted(free_identifiers(rule.lhs), key=lambda i: i.name)
    letters: dict[Any, Any] = {unknown: variable(name) for name, unknown in rule.sizes.items()}
    taken = {str(v) for v in letters.values()} | {i.name for i in given}
    for type_ in (rule.lhs.type, *(i.type for i in given)):
        _name_unknowns(type_, letters, taken)
    return letters


def _name_unknowns(type_: Type, letters: dict[Any, Any], taken: set[str]) -> None:
    """m, n, … for sizes, s, t, … for types."""
    for unknown in sorted(set(unknowns(type_)) - letters.keys(), key=lambda u: u.identity):
        is_size = isinstance(unknown, NatUnknown)
        name = next(name for name in _names("mnklpq" if is_size else "stuvrw") if name not in taken)
        taken.add(name)
        letters[unknown] = variable(name) if is_size else Variable(name)


def _names(letters: str) -> Iterator[str]:
    yield from letters
    yield from (f"{letter}{number}" for number in count(1) for letter in letters)


# --- where it is used -----------------------------------------------------------------------------------


@cache
def uses() -> Mapping[str, tuple[str, ...]]:
    """For each rule the definitions in strategies/ that mention its constant: `tensor_core.tile_output`."""
    import strategies

    holders: dict[tuple[str, str], list[str]] = {}
    for name, place in places().items():
        holders.setdefault(place, []).append(name)
    found: dict[str, list[str]] = {}
    for folder in strategies.__path__:
        for path in sorted(Path(folder).rglob("*.py")):
            for where, constant in _mentions(ast.parse(path.read_text(encoding="utf-8"))):
                for rule in holders.get(constant, _re_exported(constant, holders)):
                    found.setdefault(rule, []).append(f"{path.stem}.{where}")
    return {rule: tuple(dict.fromkeys(where)) for rule, where in found.items()}


def _re_exported(constant: tuple[str, str], holders: Mapping[tuple[str, str], list[str]]) -> list[str]:
    """A name that another module than the declaring one has, too."""
    module, name = constant
    if not hasattr(modules().get(module), name):
        return []
    return [rule for (_, other), members in holders.items() if other == name for rule in members]


def _mentions(source: ast.Module) -> Iterator[tuple[str, tuple[str, str]]]:
    """The definitions of a module, each with the constants of rule modules that it mentions."""
    names: dict[str, tuple[str, str | None]] = {}
    for node in source.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rewrites":
            inner = (node.module or "").split(".")[1:]
            for alias in node.names:
                local = alias.asname or alias.name
                names[local] = (inner[0], alias.name) if inner else (alias.name, None)
            continue
        where = _defined(node)
        for part in ast.walk(node):
            match part:
                case ast.Attribute(ast.Name(local), constant) if local in names and names[local][1] is None:
                    yield where, (names[local][0], constant)
                case ast.Name(local) if local in names and (named := names[local][1]) is not None:
                    yield where, (names[local][0], named)


def _defined(node: ast.stmt) -> str:
    match node:
        case ast.FunctionDef(name) | ast.ClassDef(name) | ast.AnnAssign(ast.Name(name)):
            return name
        case ast.Assign([ast.Name(name)]):
            return name
        case _:
            return "module"


def purpose(group: str) -> str:
    """What the rules of a file are about: the first line of the module's docstring."""
    return (modules()[group].__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")


if __name__ == "__main__":
    print(markdown(), end="")
