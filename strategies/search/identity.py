"""Which program it is: a digest of its normal form that neither names nor places change."""

from __future__ import annotations

import hashlib

from rise.canonical import canonical
from rise.expr import Expr
from rise.normal import data_flow


def identity(program: Expr) -> str:
    """16 hexadecimal digits. Programs that differ in names of variables only have the same."""
    return hashlib.sha256(canonical(data_flow(program)).encode()).hexdigest()[:16]
