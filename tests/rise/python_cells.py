"""Cells of a notebook, and what the tests of programs written in Python share."""

from __future__ import annotations

import linecache
import textwrap
from itertools import count
from pathlib import Path
from typing import Any

import rise
from rise import Definition
from rise.expr import alpha_equal

ROOT = Path(__file__).parent.parent.parent

PREAMBLE = """\
import operator
import builtins
import numpy as np
import rise
from rise.ops import *
m, n, k = Nat("m n k")
t = DataType("t")
"""
cells = count(1)


def run(text: str) -> dict[str, Any]:
    """Runs a text as a notebook runs a cell: it is no file, but linecache knows it."""
    code = textwrap.dedent(text)
    namespace: dict[str, Any] = {"__name__": "cell"}
    exec(PREAMBLE, namespace)
    exec(compile(code, cell(code), "exec"), namespace)
    return namespace


def cell(code: str) -> str:
    """The name of a new cell with this text."""
    name = f"<cell {next(cells)}>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    return name


def defined(text: str) -> Definition:
    """The definition `f` that a text makes; `def f` without a decorator gets one."""
    found = run(text)["f"]
    return found if isinstance(found, Definition) else rise.define(found)


def same(left: Definition, right: Definition) -> bool:
    """Equal up to the names of bound variables, with the same parameters and constraints."""
    return left.type == right.type and alpha_equal(left.body, right.body)


GEMM = """
@rise.define(sizes=(m, n, k))
def matmul(A: Array[m, k, f16], B: Array[k, n, f16]):
    return A | map(lambda row: B | transpose | map(lambda col:
        zip(row)(col) | map(lambda a, b: f32(a) * f32(b)) | reduce(add, 0)))

@rise.define(sizes=(m, n, k))
def gemm(A: Array[m, k, f16], B: Array[k, n, f16], C: Array[m, n, f32], alpha: f32, beta: f32):
    return zip(A, C) | map(lambda rowAC:
        zip(B | transpose)(rowAC.snd) | map(lambda colBC:
            zip(rowAC.fst)(colBC.fst) | map(lambda a, b: f32(a) * f32(b)) | reduce(add, 0)
            | (lambda r: (alpha * r) + (beta * colBC.snd))))
"""

SPLIT = """
def f(xs: Array[n, f32]):
    return xs | split(32) | join
"""
