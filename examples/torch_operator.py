"""A layer of a torch model whose forward and backward passes are definitions.

    python examples/torch_operator.py [--device cuda]

Needs torch. Each row of `silu(x) = x / (1 + exp(-x))` has its own weight; both derivatives are definitions,
too. `torch.compile` keeps the operators in one graph. The gradients are compared with those of torch.
"""

from __future__ import annotations

import argparse

import torch

import codegen.torch
import rise

PROGRAM = rise.parse("""
def sigmoid(x: f32): f32 = 1 / (1 + exp(-x))

// y[i][j] = w[i] * x[i][j] * sigmoid(x[i][j])
def scaledSilu{m: Nat, n: Nat}(xss: m.n.f32, ws: m.f32): m.n.f32 =
  zip(xss, ws) |> map((xs, w) => xs |> map(x => w * x * sigmoid(x)))

def byInput{m: Nat, n: Nat}(grad: m.n.f32, xss: m.n.f32, ws: m.f32): m.n.f32 =
  zip(zip(grad, xss), ws) |> map((rows, w) =>
    zip(fst(rows), snd(rows)) |> map((g, x) => g * w * sigmoid(x) * (1 + x * (1 - sigmoid(x)))))

def byWeights{m: Nat, n: Nat}(grad: m.n.f32, xss: m.n.f32): m.f32 =
  zip(grad, xss) |> map((gs, xs) => zip(gs, xs) |> map((g, x) => g * x * sigmoid(x)) |> reduce(+, 0))
""")

scaled_silu = codegen.torch.operator(
    PROGRAM.scaledSilu,
    name="examples::scaled_silu",
    backward={"xss": PROGRAM.byInput, "ws": PROGRAM.byWeights},
)


def loss(xss: torch.Tensor, ws: torch.Tensor) -> torch.Tensor:
    return scaled_silu(2 * xss, ws).square().mean()


def of_torch(xss: torch.Tensor, ws: torch.Tensor) -> torch.Tensor:
    return (ws[:, None] * torch.nn.functional.silu(2 * xss)).square().mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    torch.manual_seed(0)
    inputs = [torch.randn(shape, device=given.device, requires_grad=True) for shape in ((48, 100), (48,))]
    in_one_graph = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for name, function in (("eager", loss), ("torch.compile", in_one_graph)):
        found = torch.autograd.grad(function(*inputs), inputs)
        wanted = torch.autograd.grad(of_torch(*inputs), inputs)
        differences = [float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, wanted, strict=True)]
        print(f"{name}: differences {', '.join(f'{d:.0e}' for d in differences)} of the largest gradient")
        assert max(differences) < 1e-5


if __name__ == "__main__":
    main()
