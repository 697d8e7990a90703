"""Normal forms as strategies: what moves views towards the leaves, what fuses, what brings forms out."""

from __future__ import annotations

from rewrites import algorithmic as a
from rewrites import movement as m
from rewrites import tensor as t
from strategies.core import Strategy, choice, normalize, repeat

CANCEL = (m.SPLIT_OF_JOIN, m.JOIN_OF_SPLIT, m.TRANSPOSE_TWICE, t.FRAGMENT_OF_MATRIX, a.MAP_IDENTITY)
CONSTANTS = (
    a.MAP_CONSTANT,
    a.GENERATE_MAP,
    m.SPLIT_CONSTANT,
    m.TRANSPOSE_CONSTANT,
    m.JOIN_CONSTANT,
    m.ZIP_CONSTANT_FIRST,
    m.ZIP_CONSTANT_SECOND,
    t.FRAGMENT_OF_CONSTANT,
)
MOVE = (
    m.SPLIT_MAP,
    m.SPLIT_ZIP,
    m.TRANSPOSE_ROWS,
    m.TRANSPOSE_CONSTANT_ROWS,
    m.TRANSPOSE_ZIP,
    m.TRANSPOSE_MAP,
)
FUSE = (a.MAP_VIEW_FUSION, a.REDUCE_SEQ_MAP, m.ZIP_VIEW_FIRST, m.ZIP_VIEW_SECOND, m.DROP_UNUSED)

# views next to the arrays they rearrange, maps fused, constants seen through
view_inward: Strategy = normalize(choice(*CANCEL, *CONSTANTS, *FUSE, *MOVE))

# the maps in the components of a zip fused with the map over it, at the top of a term only
fuse_components: Strategy = repeat(choice(a.MAP_FUSION, m.ZIP_MAP_FIRST, m.ZIP_MAP_SECOND, m.DROP_UNUSED))

# what only changes the form of results out of maps, and through accumulators
form_outward: Strategy = normalize(choice(*t.ACCUMULATE, *t.MAP_OUT, *t.MAP_MAP_OUT))
