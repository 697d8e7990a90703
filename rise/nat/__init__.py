"""Natural numbers in types and indices: one normal form, so that equal sizes are equal objects.

A `Nat` is a sum of monomials with rational coefficients over atoms: variables, and the quotients,
remainders, minima, maxima and powers that do not simplify. An exact quotient (`m/128` where 128
divides m) is the rational multiple of m, hence `128 * (m/128) = m` holds by normalisation; that 128
does divide m is an obligation which whoever divides records (`rise.expr.Constraint`). A floor quotient
stays an atom until `Facts` show more about it.

`normal_form` has the sums and products, `facts` what is known and what follows from it, `division` and
`operations` what may stay an atom, `evaluation` the numbers.
"""

from rise.nat.division import ceiling_quotient, quotient, remainder
from rise.nat.evaluation import evaluate
from rise.nat.facts import NOTHING, Facts, at_least, divides, less_than, lower_bound, upper_bound
from rise.nat.limits import TooLarge
from rise.nat.normal_form import (
    Atom,
    Coefficient,
    Monomial,
    Nat,
    NatLike,
    NatUnknown,
    NatVariable,
    Operation,
    atom,
    constant,
    nat,
    variable,
)
from rise.nat.operations import maximum, minimum, power, simplify

__all__ = [
    "NOTHING", "Atom", "Coefficient", "Facts", "Monomial", "Nat", "NatLike", "NatUnknown", "NatVariable",
    "Operation", "TooLarge", "at_least", "atom", "ceiling_quotient", "constant", "divides", "evaluate",
    "less_than", "lower_bound", "maximum", "minimum", "nat", "power", "quotient", "remainder", "simplify",
    "upper_bound", "variable",
]  # fmt: skip
