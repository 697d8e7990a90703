"""A strategy applied to a whole program: the derivation, or an error that says why there is none."""

from __future__ import annotations

from rewrites.result import Failure, Success
from rise.data import shown
from rise.errors import RiseError, StrategyError
from rise.expr import Expr
from rise.normal import data_flow
from strategies.core import Strategy


def derived(program: Expr, strategy: Strategy) -> Success:
    """The low-level program and the steps to it. StrategyError R0606 where the strategy fails."""
    try:
        result = strategy(data_flow(program))
    except RiseError as error:
        if type(error) is RiseError or error.code.startswith("R06"):
            raise
        message = f"the strategy `{strategy.name}` fails: {error.message}"
        raise StrategyError("R0606", message, error.origin, error.hint) from error
    if isinstance(result, Failure):
        raise result.error(strategy.name)
    if not isinstance(result.term, Expr):
        raise StrategyError("R0631", f"`{strategy.name}` gives {shown(result.term)}, which is not a term")
    return result
