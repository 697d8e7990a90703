"""The last matrices of an array by finer tiles than the others, in a kernel of their own.

Tiles that persistent blocks compute are done in waves, and the last wave of large tiles may be almost empty.
So the first matrices, as many as fill whole waves, have large tiles, and the rest finer ones.
"""

from __future__ import annotations

from rewrites.slicing import MAP_CONCAT, SPLIT_AT
from rise.expr import Expr
from rise.nat import at_least
from rise.types import shape
from strategies.core import Rewrite, Strategy, argument, check, depending, function, prints_as_call, seq
from strategies.matmul.products import rank
from strategies.normal_forms import view_inward
from strategies.places import computes
from strategies.result_views import under_views


@prints_as_call
def first_and_rest(count: int, first: Rewrite, rest: Rewrite) -> Strategy:
    """An array of matrices by two schedules: one for the first `count` of them, another one for the rest.

    before: xs |> map(x => A·B)
    after:  concat(first(xs |> take(count) |> map(x => A·B)))(rest(xs |> drop(count) |> map(x => A·B)))
    """

    def is_longer(term: Expr) -> bool:
        return at_least(shape(term.type)[0][0], count + 1)

    both = seq(
        check(is_longer, "first_and_rest", f"no matrices are behind the first {count}"),
        argument(SPLIT_AT.with_sizes(n=count)),
        MAP_CONCAT,
        function(argument(seq(argument(view_inward), first))),
        argument(seq(argument(view_inward), rest)),
    )
    return depending(lambda term: both if rank(term) == 3 and computes(term) else under_views(both))
