"""Every program in examples/ means what its reference in NumPy computes, and prints as itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from codegen.execute import available_backend, execute
from codegen.pipeline import generate
from rise.check.compare import REDUCTIONS, Tolerance, compare, tolerance
from rise.check.program import Loader, Program, check_definition
from rise.check.specialise import specialise
from rise.errors import RiseError
from rise.expr import Expr, Primitive, alpha_equal, subterms
from rise.interpret import call
from rise.nat import Nat
from rise.normal import data_flow
from rise.pretty import show_definition
from rise.source import Source
from rise.syntax.parser import parse_file
from strategies.registry import find
from tests.support.examples import EXAMPLES, REFERENCES, Reference, inputs_for
from tests.support.nightly import NIGHTLY
from tests.support.programs import succeeded

FILES = sorted(path.name for path in EXAMPLES.glob("*.rise"))
EACH = pytest.mark.parametrize(("file", "name"), sorted(REFERENCES), ids=lambda value: value)
DRAWS = 3  # inputs for each assignment of sizes: a definition on scalars has but one element to tell by


LOADER = Loader()


def program_of(file: str) -> Program:
    return LOADER.load(EXAMPLES / file).program


def test_every_definition_has_a_reference_and_every_reference_a_definition() -> None:
    defined = {(file, name) for file in FILES for name in program_of(file).own}
    assert defined == set(REFERENCES)


@pytest.mark.parametrize("file", FILES)
def test_a_file_says_what_it_shows(file: str) -> None:
    assert (EXAMPLES / file).read_text(encoding="utf-8").startswith("// ")


def test_there_are_sizes_of_one_and_others_for_each() -> None:
    for key, reference in REFERENCES.items():
        assert reference.sizes == ({},) or len(reference.sizes) >= 2, key


# --- comparison -------------------------------------------------------------------------------------


def widened(value: Any) -> Any:
    """Floats as f64, so that the reference rounds less than the program."""
    if isinstance(value, tuple):
        return tuple(widened(part) for part in value)
    return value if value.dtype.kind in "iub" else value.astype(np.float64)


def leaves(value: Any) -> list[Any]:
    """The arrays of a result, those of a pair one after the other."""
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple) else [value]


def roundings(program: Expr) -> int:
    """At most so many roundings lie between inputs and a result: each operation, each time it is done."""
    primitives = [term for term in subterms(program) if isinstance(term, Primitive)]
    operations = sum(p.declaration.elementwise for p in primitives)
    loops = [p for p in primitives if p.name in (*REDUCTIONS, "iterate")]
    longest = max((a.value or 1 for p in loops for a in p.arguments if isinstance(a, Nat)), default=1)
    return operations * (1 + longest)


def difference(program: Expr, reference: Reference, found: Any, expected: Any) -> str | None:
    """What is wrong with a result, or None.

    Whole numbers that stay whole have to be equal. Otherwise each rounding is of a number of the size of
    the largest result, or of 1 where that is larger. NaN is expected where a program defines nothing.
    """
    allowed = 0 if reference.exact else roundings(program)
    for part, wanted in zip(leaves(found), leaves(expected), strict=True):
        wanted = np.asarray(wanted)
        if part.shape != wanted.shape:
            return f"shape {part.shape}, expected {wanted.shape}"
        epsilon = np.finfo(part.dtype).eps if part.dtype.kind == "f" else 0
        defined = wanted == wanted  # noqa: PLR0124  # not NaN
        bound = allowed * epsilon * max(1.0, np.abs(wanted).max(initial=0.0, where=defined))
        wrong = np.argwhere(defined & ~(np.abs(part.astype(np.float64) - wanted) <= bound))
        if len(wrong):
            place = tuple(wrong[0])
            return (
                f"at {list(map(int, place))}: {part[place]}, expected {wanted[place]} (allowed {bound:.3g})"
            )
    return None


@EACH
def test_the_interpreter_agrees_with_numpy(file: str, name: str) -> None:
    definition, reference = program_of(file)[name], REFERENCES[file, name]
    for sizes in reference.sizes:
        program = specialise(definition, sizes)
        for seed in range(DRAWS):
            inputs = inputs_for(program, reference, seed)
            found = call(program, *inputs)
            expected = reference([widened(value) for value in inputs], sizes)
            wrong = difference(program, reference, found, expected)
            assert wrong is None, f"{sizes}, seed {seed}: {wrong}"


# --- printing ---------------------------------------------------------------------------------------


@EACH
def test_what_is_printed_is_the_same_definition(file: str, name: str) -> None:
    """Its text, next to what it refers to, gives the same type, constraints and body."""
    program = program_of(file)
    definition = program[name]
    text = show_definition(definition)
    (syntax,) = parse_file(Source("<printed>", text)).definitions
    again = check_definition(syntax, {n: d for n, d in program.definitions.items() if n != name})
    assert again.scheme == definition.scheme
    assert set(map(str, again.constraints)) == set(map(str, definition.constraints))
    assert alpha_equal(again.body, definition.body)


# --- on a machine -----------------------------------------------------------------------------------

# one of each kind, since each takes the compiler up to a second
COMPILED = [
    ("linear_algebra.rise", "sgemm"),
    ("networks.rise", "layerNorm"),
    ("complex_numbers.rise", "products"),
    ("kernels.rise", "matmulThreads"),
    ("kernels.rise", "matvecBlocks"),
]
LOW_LEVEL = ("copies.rise", "kernels.rise")


def lowered(file: str, program: Expr) -> Expr:
    """By the strategy `default`, unless the program says itself how it is executed."""
    if file in LOW_LEVEL:
        return data_flow(program)
    return succeeded(find("default").make({})(data_flow(program))).term


def run_in_emulator(file: str, name: str) -> None:
    """Compiles, runs, and compares with the interpreter."""
    reference = REFERENCES[file, name]
    program = specialise(program_of(file)[name], reference.sizes[-1])
    inputs = inputs_for(program, reference)
    found = execute(generate(lowered(file, program), "example"), inputs, "emulate")
    verdict = compare(found, call(program, *inputs), Tolerance() if reference.exact else tolerance(program))
    assert verdict.agrees, str(verdict)


@pytest.mark.skipif(available_backend() is None, reason="there is no C++ compiler")
@pytest.mark.parametrize(
    ("file", "name"), sorted(REFERENCES) if NIGHTLY else COMPILED, ids=lambda value: value
)
def test_examples_run_as_kernels(file: str, name: str) -> None:
    """These; in the nightly profile all, and what cannot be a kernel is skipped with the reason."""
    try:
        run_in_emulator(file, name)
    except RiseError as error:
        if (file, name) in COMPILED:
            raise
        pytest.skip(f"{error.code}: {error.message}")
