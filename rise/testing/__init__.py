"""Tools for property tests: generated programs, rules and inputs, and what they are compared by.

`programs`, `functions`, `types` and `inputs` are Hypothesis strategies. `assert_equivalent` compares
what two terms compute, `assert_preserves` a program before and after a strategy, `assert_sound` the two
sides of a rule on instances with random sizes, types and functions. Inputs are small integers, which
every numeric type but bool holds exactly, so results are compared bit by bit; `awkward_inputs` are the
floats that go wrong. `docs/testing.md` is the tutorial.

Hypothesis is needed only by what draws: `pip install hypothesis`.
"""

from rise.testing.choose import Choose, choices
from rise.testing.compare import assert_equivalent, differ, difference
from rise.testing.data import (
    SCALAR_TYPES,
    SIZES,
    awkward_input,
    awkward_inputs,
    data_type,
    data_types,
    exact_inputs,
    inputs,
    types,
)
from rise.testing.equivalence import Arguments, Different, Equal, arguments_of, assert_equal, check_equivalent
from rise.testing.naive import assert_evaluators_agree
from rise.testing.programs import call_of, program, program_texts, programs
from rise.testing.rewriting import assert_preserves, at, replaced, replayed
from rise.testing.rules import Evidence, assert_sound, check_instance, hiding, instance, redex
from rise.testing.samples import Hint
from rise.testing.shrink import Counterexample, shrunk
from rise.testing.structure import assert_structure, structure
from rise.testing.terms import NAMES, Generator, Parameters, functions, primitive_call, redexes
from rise.testing.vocabulary import every_primitive, exact, high_level, views

__all__ = [
    "Arguments",
    "Different",
    "Equal",
    "arguments_of",
    "assert_equal",
    "check_equivalent",
    "Parameters",
    "assert_structure",
    "structure",
    "redexes",
    "call_of",
    "views",
    "high_level",
    "exact",
    "every_primitive",
    "awkward_input",
    "differ",
    "redex",
    "shrunk",
    "Counterexample",
    "assert_evaluators_agree",
    "NAMES",
    "SCALAR_TYPES",
    "SIZES",
    "Choose",
    "Evidence",
    "Generator",
    "Hint",
    "assert_equivalent",
    "assert_preserves",
    "assert_sound",
    "at",
    "awkward_inputs",
    "check_instance",
    "choices",
    "data_type",
    "data_types",
    "difference",
    "exact_inputs",
    "functions",
    "hiding",
    "inputs",
    "instance",
    "primitive_call",
    "program",
    "program_texts",
    "programs",
    "replaced",
    "replayed",
    "types",
]
