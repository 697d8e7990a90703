"""Programs as functions of indices, over sizes and elements that nothing is known of.

`evaluate` gives the value of a term; what its elements are stays open, indices are numbers or terms that z3
decides. `decide` compares two terms: equal for all sizes, different at some, or neither found.
"""

from rise.symbolic.decide import Open, Problem, Proved, Refuted, Verdict, decide, examined, problem, prove

__all__ = ["Open", "Problem", "Proved", "Refuted", "Verdict", "decide", "examined", "problem", "prove"]
