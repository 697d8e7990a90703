"""From a program to kernels: what each process that builds candidates calls."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from bench.build import Order
from bench.table import Source
from codegen.compiled import built, resources_of
from codegen.host.program import HostProgram
from codegen.ir.kernel import Kernel
from codegen.pipeline import assemble
from rise.check.program import Program, load
from rise.check.specialise import specialise
from strategies.auto import Auto
from strategies.derive import derived
from strategies.registry import find
from strategies.user_defined import imported


@cache
def program(source: Source) -> Program:
    """A file, read and checked once in each process, which imports the user's modules for it."""
    for module in source.modules:
        imported(module)
    return load(source.file, source.imports)


def derive(order: Order) -> Kernel | HostProgram:
    """The kernel for an order, or several with their host program; compiled, so the cache has them."""
    term = specialise(program(order.source)[order.definition], dict(order.sizes))
    strategy = find(order.candidate.strategy).make(dict(order.candidate.settings))
    if isinstance(strategy, Auto):
        strategy = strategy.first_that(lambda low, target: built(assemble(low, "candidate"), target))
    made = assemble(derived(term, strategy).term, f"{order.definition}_kernel")
    resources_of(made, order.target, "allow" if isinstance(strategy, Auto) else "refuse")
    kernels = tuple(replace(kernel, stages=()) for kernel in made.kernels)
    return kernels[0] if len(kernels) == 1 else replace(made, kernels=kernels)
