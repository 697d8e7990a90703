"""References of attention and what modifies its scores."""

# ruff: noqa: N803  # matrices are called Q, K, V

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from references.reference import Array, References, rounded, sizes

Modify = Callable[[Array, Array, Array], Array]  # of scores, numbers of queries and numbers of keys


def attended(Q: Array, K: Array, V: Array, modify: Modify) -> Array:
    """Over the last two axes; those in front are heads. Rows of which every score is -∞ are not numbers."""
    m, n = Q.shape[-2], K.shape[-2]
    scores = modify(Q @ np.swapaxes(K, -1, -2), np.arange(m)[:, None], np.arange(n))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ V


def with_log_sum_exp(Q: Array, K: Array, V: Array, modify: Modify) -> tuple[Array, Array]:
    scores = modify(Q @ np.swapaxes(K, -1, -2), np.arange(Q.shape[-2])[:, None], np.arange(K.shape[-2]))
    return attended(Q, K, V, modify), np.logaddexp.reduce(scores, axis=-1)


def root(Q: Array) -> float:
    return 1 / sqrt(Q.shape[-1])


def attention(scale: Array, Q: Array, K: Array, V: Array) -> Array:
    return attended(Q, K, V, lambda s, i, j: s * scale)


def causal(scale: Array, Q: Array, K: Array, V: Array) -> Array:
    return attended(Q, K, V, lambda s, i, j: np.where(j <= i, s * scale, -np.inf))


def window(width: Array, scale: Array, Q: Array, K: Array, V: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return attended(Q, K, V, lambda s, i, j: np.where((j <= i) & (i - j < width), s * scale, -np.inf))


def alibi(slope: Array, scale: Array, Q: Array, K: Array, V: Array) -> Array:
    return attended(Q, K, V, lambda s, i, j: s * scale - slope * np.abs(i - j))


def softcap(bound: Array, scale: Array, Q: Array, K: Array, V: Array) -> Array:
    return attended(Q, K, V, lambda s, i, j: bound * np.tanh(s * scale / bound))


def biased(scale: Array, Q: Array, K: Array, V: Array, bias: Array) -> Array:
    return attended(Q, K, V, lambda s, i, j: s * scale + bias)


def streaming(first: Array, width: Array, scale: Array, Q: Array, K: Array, V: Array) -> Array:
    def seen(i: Array, j: Array) -> Array:
        return (j <= i) & ((j < first) | (i - j < width))

    with np.errstate(invalid="ignore"):
        return attended(Q, K, V, lambda s, i, j: np.where(seen(i, j), s * scale, -np.inf))


def prefix(known: Array, scale: Array, Q: Array, K: Array, V: Array) -> Array:
    return attended(Q, K, V, lambda s, i, j: np.where((j < known) | (j <= i), s * scale, -np.inf))


def masked(scale: Array, Q: Array, K: Array, V: Array, mask: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return attended(Q, K, V, lambda s, i, j: np.where(mask, s * scale, -np.inf))


def documents(scale: Array, Q: Array, K: Array, V: Array, mine: Array, its: Array) -> Array:
    return masked(scale, Q, K, V, mine[:, None] == its)


def sinks(sinks: Array, Q: Array, K: Array, V: Array) -> Array:
    """A further key, of which no value is taken."""
    i, j = np.arange(Q.shape[-2])[:, None], np.arange(K.shape[-2])
    scores = np.where(j <= i, Q @ np.swapaxes(K, -1, -2) * root(Q), -np.inf)
    of_sinks = np.broadcast_to(sinks[:, None, None], (*scores.shape[:-1], 1))
    scores = np.concatenate([of_sinks, scores], axis=-1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True))[..., 1:] @ V


def log_sum_exps(scale: Array, Q: Array, K: Array) -> Array:
    return np.logaddexp.reduce(Q @ K.T * scale, axis=-1)


def attention_with_log_sum_exp(scale: Array, Q: Array, K: Array, V: Array) -> tuple[Array, Array]:
    return with_log_sum_exp(Q, K, V, lambda s, i, j: s * scale)


def heads(Q: Array, K: Array, V: Array) -> Array:
    return attended(Q, K, V, lambda s, i, j: s * root(Q))


def causal_heads(Q: Array, K: Array, V: Array) -> Array:
    return attended(Q, K, V, lambda s, i, j: np.where(j <= i, s * root(Q), -np.inf))


def causal_heads_with_log_sum_exp(Q: Array, K: Array, V: Array) -> tuple[Array, Array]:
    return with_log_sum_exp(Q, K, V, lambda s, i, j: np.where(j <= i, s * root(Q), -np.inf))


def by_token(of_heads: Callable[[Array, Array, Array], Array]) -> Callable[[Array, Array, Array], Array]:
    """A function of arrays by batch, head and token, for such by batch, token and head."""
    return lambda *arrays: of_heads(*(xs.swapaxes(1, 2) for xs in arrays)).swapaxes(1, 2)


def grouped(Q: Array, K: Array, V: Array) -> Array:
    b, h, g, m, d = Q.shape
    return heads(Q.reshape(b, h, g * m, d), K, V)


def packed(QKV: Array) -> Array:
    """Queries, keys and values by batch, token and head."""
    return by_token(heads)(*np.moveaxis(QKV, 2, 0))


def cached(Q: Array, K: Array, V: Array, *, n: int) -> Array:
    return heads(Q, K[:, :, :n], V[:, :, :n])


ONE = sizes(m=(1, 5), n=(1, 7), d=(1, 3), e=(1, 2))
MANY = sizes(b=(1, 2), h=(1, 3), m=(1, 5), n=(1, 7), d=(1, 3), e=(1, 2))
GROUPS = sizes(b=(1, 2), h=(1, 3), g=(1, 2), m=(1, 5), n=(1, 7), d=(1, 3), e=(1, 2))

ATTENTION: References = {
    "attention": rounded(attention, ONE),
    "causal": rounded(causal, ONE),
    "window": rounded(window, ONE, width=(1, 8)),
    "alibi": rounded(alibi, ONE),
    "softcap": rounded(softcap, ONE, bound=(1, 8)),
    "streaming": rounded(streaming, ONE, first=(0, 3), width=(1, 4)),
    "prefix": rounded(prefix, ONE, known=(0, 6)),
    "biased": rounded(biased, ONE),
    "masked": rounded(masked, ONE),
    "documents": rounded(documents, ONE, ofQueries=(0, 2), ofKeys=(0, 2)),
    "sinks": rounded(sinks, sizes(h=(1, 3), m=(1, 5), n=(1, 7), d=(1, 3), e=(1, 2))),
    "logSumExps": rounded(log_sum_exps, sizes(m=(1, 5), n=(1, 7), d=(1, 3))),
    "attentionWithLogSumExp": rounded(attention_with_log_sum_exp, ONE),
    "heads": rounded(heads, MANY),
    "causalHeads": rounded(causal_heads, MANY),
    "causalHeadsWithLogSumExp": rounded(causal_heads_with_log_sum_exp, MANY),
    "headsByToken": rounded(by_token(heads), MANY),
    "causalHeadsByToken": rounded(by_token(causal_heads), MANY),
    "packedByToken": rounded(packed, sizes(b=(1, 2), h=(1, 3), n=(1, 7), d=(1, 3))),
    "cached": rounded(cached, sizes(b=(1, 2), h=(1, 3), m=(1, 5), n=(1, 7), c=(1, 4), d=(1, 3))),
    "grouped": rounded(grouped, GROUPS),
}
