"""A definition at given sizes: what the interpreter runs and a strategy starts from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from rise.bounds import check_types, check_written_out
from rise.constraint import Constraint
from rise.errors import TypeMismatch, UsageError
from rise.expr import Definition, DependentLambda, Expr, Lambda, inline, substitute_sizes
from rise.nat import Atom, Nat, NatUnknown, NatVariable, atom, constant, evaluate, variable
from rise.normal import with_inputs
from rise.numbers import written
from rise.solve import solve
from rise.source import Note
from rise.suggest import suggestion
from rise.types import Argument, Array, Fragment, Kind, Pair, Type, Unknown, Variable, Vector, is_data

Shape = tuple[int, ...]
LARGEST = 2**40


def specialise(definition: Definition, sizes: Mapping[str, int]) -> Expr:
    """The function of the inputs, each of them named, references and sizes replaced.

    Raises UsageError where a size is missing, unknown or no natural number, TypeMismatch where the
    definition asks something of its sizes that does not hold.
    """
    names = size_names(definition)
    check_names(definition, names, sizes, names)
    for constraint in definition.constraints:
        check_constraint(definition.name, constraint, sizes)
    return instantiated(definition, {NatVariable(name): constant(sizes[name]) for name in names})


def instantiated(definition: Definition, sizes: Mapping[Atom, Nat]) -> Expr:
    """The function of the inputs, each of them named, with other sizes for its own, references replaced.

    RiseError R0412 or R0413 where written out it would be too large.
    """
    solution: dict[Atom | Variable | Unknown, Argument] = dict(sizes.items())
    check_written_out(definition)
    program = inline(substitute_sizes(undepended(definition.body), solution))
    check_types(definition, program)
    return with_inputs(program)


def undepended(body: Expr) -> Expr:
    """The body under the sizes that a definition abstracts over."""
    while isinstance(body, DependentLambda):
        body = body.body
    return body


def size_names(definition: Definition) -> tuple[str, ...]:
    """The sizes a definition abstracts over, implicit ones first. It must abstract over nothing else."""
    named = [(p.name, p.kind) for p in definition.parameters]
    body = definition.body
    while isinstance(body, DependentLambda):
        named.append((body.name, body.kind))
        body = body.body
    for name, kind in named:
        if kind is not Kind.NAT:
            raise UsageError(
                "R0408",
                f"`{definition.name}` abstracts over `{name}: {kind.value}`, which is no size",
                definition.origin,
                "define a function in which it is fixed, and run that",
            )
    return tuple(dict.fromkeys(name for name, _ in named))


def inputs_of(program: Expr) -> list[tuple[str, Type]]:
    """The inputs of a function by name, outermost first; those that it does not name are called x, x_1, …"""
    program = with_inputs(program)
    found: list[tuple[str, Type]] = []
    while isinstance(program, Lambda):
        found.append((program.parameter.name, program.parameter.type))
        program = program.body
    return found


def check_names(
    definition: Definition, wanted: tuple[str, ...], sizes: Mapping[str, int], names: tuple[str, ...]
) -> None:
    """Raises UsageError unless those wanted are given, and all that are given are among the names."""
    known = ", ".join(f"`{n}`" for n in names) or "none"
    for name, value in sizes.items():
        if name not in names:
            hint = suggestion(name, names) or f"its sizes: {known}"
            raise UsageError("R0406", f"`{definition.name}` has no size `{name}`", None, hint)
        check_natural(name, value)
    missing = [n for n in wanted if n not in sizes]
    if missing:
        raise UsageError(
            "R0405",
            f"`{definition.name}` needs a number for {', '.join(f'`{n}`' for n in missing)}",
            definition.origin,
            f"give {'it' if len(missing) == 1 else 'them'} by `--size "
            f"{' '.join(f'{n}=128' for n in missing)}`, or inputs that show it",
        )


def check_natural(name: str, value: int) -> None:
    """A size is a natural number, and no absurd one."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
        shown = written(value) if isinstance(value, int) else value
        raise UsageError("R0407", f"the size {name}={shown} is not a natural number up to 2^40")


def check_constraint(name: str, constraint: Constraint, sizes: Mapping[str, int]) -> None:
    """Raises TypeMismatch, naming sizes and values, where what a program asks of them does not hold."""
    where = ", ".join(f"{n} = {sizes[n]}" for n in sorted(constraint.variables) if n in sizes)
    asked = f"`{name}` needs {constraint}, which does not hold for {where}"
    code = "R0404" if constraint.divisor is None else "R0401"
    reason = _violation(constraint, sizes)
    if reason:
        notes = constraint.notes
        if constraint.asker:
            notes = (Note(f"{constraint.asker} asks for it", constraint.origin), *notes)
        raise TypeMismatch(code, f"{asked}: {reason}", constraint.origin, notes=notes)


def holds(constraint: Constraint, sizes: Mapping[str, int]) -> bool:
    """Whether what a program asks of its sizes is so."""
    return not _violation(constraint, sizes)


def _violation(constraint: Constraint, sizes: Mapping[str, int]) -> str:
    """What is wrong with sizes; nothing where the constraint holds, or is about a type."""
    value, divisor = constraint.value, constraint.divisor
    if not isinstance(value, Nat):
        return ""
    number, below = _evaluated(value, sizes), None if divisor is None else _evaluated(divisor, sizes)
    if number is None or (divisor is not None and not below):
        return "it would be divided by zero"
    if below is None:
        return f"a size would be {number}" if number < 0 else ""
    return f"{below} does not divide {number}" if (number / below).denominator != 1 else ""


def _evaluated(size: Nat, sizes: Mapping[str, int]) -> Fraction | None:
    try:
        return evaluate(size, sizes)
    except ZeroDivisionError:
        return None


# --- sizes from inputs ------------------------------------------------------------------------------


def sizes_from_inputs(
    definition: Definition, shapes: Mapping[str, Shape], given: Mapping[str, int]
) -> dict[str, int]:
    """The sizes that are given and those that the shapes of inputs determine.

    A shape that contradicts what is known already is left for the check of the inputs, where the
    message names input, expected and found shape; two inputs that contradict each other are R0409, and
    so is a dimension that no size fits.
    """
    inputs = [(n, t) for n, t in inputs_of(undepended(definition.body)) if is_data(t)]
    return sizes_from_shapes(size_names(definition), inputs, shapes, given)


def sizes_from_shapes(
    names: Sequence[str],
    inputs: Sequence[tuple[str, Type]],
    shapes: Mapping[str, Shape],
    given: Mapping[str, int],
) -> dict[str, int]:
    """As `sizes_from_inputs`, for inputs of data whose types are over these sizes."""
    unknown = {name: NatUnknown(-1 - i) for i, name in enumerate(names)}
    opened = {NatVariable(name): atom(u) for name, u in unknown.items()}
    back = {u: name for name, u in unknown.items()}
    sizes = dict(given)
    told: dict[str, str] = {}
    equations = [
        (name, extent.substitute(opened), found)
        for name, type_ in inputs
        if name in shapes
        for extent, found in zip(_extents(type_), shapes[name], strict=False)
    ]
    for _ in range(len(names) + 1):
        for name, extent, found in equations:
            _learn(name, extent, found, back, sizes, told)
    return sizes


def _learn(
    name: str,
    extent: Nat,
    found: int,
    back: Mapping[NatUnknown, str],
    sizes: dict[str, int],
    told: dict[str, str],
) -> None:
    """One dimension of one input: a size that follows from it, or a contradiction."""
    known = {u: constant(sizes[n]) for u, n in back.items() if n in sizes}
    left = extent.substitute(known)
    if left.value is None:
        solved = solve(left, constant(found))
        if solved is None or solved[1].atoms:
            return
        size, number = back[solved[0]], solved[1].value
        if number is None or number < 0:
            shown = extent.substitute({u: variable(n) for u, n in back.items()})
            raise UsageError("R0409", f"a dimension of `{name}` is `{shown}`: {found} for no `{size}`")
        sizes[size], told[size] = number, name
        return
    others = [(n, told[n]) for u, n in back.items() if u in extent.unknowns and n in told]
    if left.value != found and others and others[0][1] != name:
        size, other = others[0]
        raise UsageError(
            "R0409",
            f"the inputs do not fit together: `{other}` has {size} = {sizes[size]}, "
            f"with which a dimension of `{name}` is {left.value}, not {found}",
        )


def _extents(type_: Type) -> list[Nat]:
    """The sizes of the array that holds data of a type, as `rise.interpret.shape_of`, unevaluated."""
    match type_:
        case Array(size, element) | Vector(size, element):
            return [size, *_extents(element)]
        case Fragment(rows, columns, _, element, _):
            return [rows, columns, *_extents(element)]
        case _:
            return []


def leaves_of(name: str, type_: Type) -> list[tuple[str, Type]]:
    """The arrays that data is stored in, by name: `p`, or `p_0` and `p_1` of a pair (an array of pairs)."""
    sizes: list[Nat] = []
    inner = type_
    while isinstance(inner, Array):
        sizes.append(inner.size)
        inner = inner.element
    if isinstance(inner, Pair):
        parts = []
        for number, part in enumerate((inner.first, inner.second)):
            for size in reversed(sizes):
                part = Array(size, part)
            parts += leaves_of(f"{name}_{number}", part)
        return parts
    return [(name, type_)]
