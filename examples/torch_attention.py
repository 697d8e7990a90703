"""Attention of a torch model by a kernel that rules derive, in the place of `scaled_dot_product_attention`.

    python examples/torch_attention.py [--tokens 1000] [--layers 4]

Needs torch and a GPU of sm_80 or later. The kernel takes tensors as the layers have them, by batch,
token and head, without copies. Both models have the same weights; what they compute is compared, and timed in
turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import codegen
from rise.check.program import load

PROGRAMS = load(Path(__file__).parent / "attention.rise")
BATCH, HEADS, WIDTH = 2, 16, 1024

Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def of_torch(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Causal attention of tensors by batch, token and head."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)


@cache
def compiled(batch: int, tokens: int, heads: int, dim: int) -> Any:
    sizes = {"b": batch, "h": heads, "m": tokens, "n": tokens, "d": dim, "e": dim}
    return codegen.compile(PROGRAMS["causalHeadsByToken"], sizes=sizes, backend="cuda")


def by_rules(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The same by a kernel that `auto` derives."""
    result = torch.empty_like(q)
    compiled(*q.shape)(q, k, v, out=result)
    return result


class Layer(nn.Module):
    """Attention, and two products with a gelu between, each added to what it is of."""

    def __init__(self, attention: Attention) -> None:
        super().__init__()
        self.attention = attention
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.projections = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.perceptron = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        *of_inputs, last = self.projections
        normed = self.norms[0](x)
        q, k, v = (project(normed).view(*x.shape[:2], HEADS, -1) for project in of_inputs)
        x = x + last(self.attention(q, k, v).reshape(x.shape))
        return x + self.perceptron(self.norms[1](x))


def milliseconds(model: nn.Module, x: torch.Tensor) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(10):
        model(x)
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 10


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokens", type=int, default=1000)
    parser.add_argument("--layers", type=int, default=4)
    given = parser.parse_args()
    torch.manual_seed(0)
    models = [
        nn.Sequential(*(Layer(a) for _ in range(given.layers))).half().cuda() for a in (of_torch, by_rules)
    ]
    models[1].load_state_dict(models[0].state_dict())
    x = torch.randn(BATCH, given.tokens, WIDTH, device="cuda", dtype=torch.float16)
    with torch.inference_mode():
        wanted, found = (model(x) for model in models)
        difference, largest = float((wanted - found).abs().max()), float(wanted.abs().max())
        print(f"largest difference: {difference:.1e}, of {largest:.1f}")
        times = [min(milliseconds(model, x) for _ in range(3)) for model in models]
    print(f"torch {times[0]:.3f} ms, by rules {times[1]:.3f} ms")


if __name__ == "__main__":
    main()
