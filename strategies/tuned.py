"""The strategy `auto` with a store of remembered parameters, and the choice whose parameters are searched."""

from __future__ import annotations

from strategies.auto import Auto, by_search
from strategies.core import prints_as_call
from strategies.search.choice import Search
from strategies.search.hardware import for_target


@prints_as_call
def tuned(target: str = "sm_90a", store: str = "", strategy: str = "tensor_core") -> Auto:
    """The parameters that `rise tune` remembers for a program; else the first that the cost model ranks.

    target:   the GPU that code is for
    store:    a file of remembered parameters, besides those that are found always
    strategy: whose parameters the model chooses, where nothing is remembered
    """
    return by_search("tuned", Search(for_target(target), target, store, strategy))
