"""Rules proved for all sizes, types and functions, or refuted, or tested: which, and how that is found.

`verdict` decides a rule, a user's own too; `mark` is what is known of one of ours, without any work.
"""

from rewrites.proofs.marks import Mark, mark
from rewrites.proofs.verdicts import Tested, of_rule, verdict

__all__ = ["Mark", "Tested", "mark", "of_rule", "verdict"]
