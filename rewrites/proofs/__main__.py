"""`python -m rewrites.proofs`: proves all rules, writes `proved.json`, and prints what is not proved."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from time import process_time

from rewrites.library import rules
from rewrites.proofs.marks import Mark, digest
from rewrites.proofs.verdicts import Verdict, Wrong, verdict
from rewrites.rule import Rule
from rise import files
from rise.progress import said, stepwise, watching
from rise.symbolic import Proved, Refuted


def main() -> int:
    started, marks, count = process_time(), {}, Counter[str]()
    for name, rule in stepwise("proving", rules().items(), len(rules())):
        if not isinstance(rule, Rule):
            continue
        found = verdict(rule)
        kind = _mark(found)
        count[kind.value] += 1
        if isinstance(found, Proved):
            marks[name] = (digest(rule), kind.name)
        elif isinstance(found, Refuted | Wrong):
            said(f"{name}: WRONG, {found}")
            return 1
        else:
            said(f"{name}: tested on {found.applied} instances; {found.reason}")
    lines = ",\n".join(f"{json.dumps(n, ensure_ascii=False)}: {json.dumps(m)}" for n, m in marks.items())
    files.write(Path(__file__).with_name("proved.json"), f"{{\n{lines}\n}}\n")
    total = sum(count.values())
    print(f"{total} declared rules: " + ", ".join(f"{n} {kind}" for kind, n in count.items()))
    print(f"{process_time() - started:.0f} s of CPU time")
    return 0


def _mark(found: Verdict) -> Mark:
    if not isinstance(found, Proved):
        return Mark.TESTED
    return Mark.REORDERED if found.reordered else Mark.PROVED


if __name__ == "__main__":
    with watching():
        sys.exit(main())
