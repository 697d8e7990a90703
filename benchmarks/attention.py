"""Attention through `auto` beside cuDNN and FlashAttention-2, as torch calls them: one process, in turns.

    python benchmarks/attention.py [--out FOLDER] [--causal] [--lengths 512 1024 …] [--dims 64 128 256]
    python benchmarks/attention.py --decode [--out FOLDER]
    python benchmarks/attention.py --modified [--out FOLDER] [--lengths 8192] [--dims 64 128]
    python benchmarks/attention.py --grouped [--out FOLDER] [--lengths 2048 4096 …]
    python benchmarks/attention.py --sums [--out FOLDER] [--lengths 8192] [--dims 64 128]

With `--decode` there are few queries a head, mostly one. With `--modified`, scores are modified (a bound, a
slope, a window), beside FlexAttention under torch.compile. With `--grouped`, 64 query heads share 8 key
heads, in bf16 and at d = 128, and keys have another dimension than values, beside cuDNN. With `--sums`, the
log-sum-exp of the scores is the result, beside torch.compile.

The workload is the one of the FlashAttention papers: f16, batch · length = 16384, heads · dimension = 2048.
Every result is compared with softmax(Q·Kᵀ/√d)·V in f64 for one head, after its memory was filled with NaN. A
time is the median over launches on a warm GPU; the variants take turns, and the best of three turns counts.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timing import median_ms, write

import codegen
from rise.check.program import check_text, load

PROGRAMS = Path(__file__).parents[1] / "examples" / "attention.rise"
TOKENS, WIDTH = 16384, 2048
TURNS = 3


@dataclass(frozen=True)
class Line:
    """A row of the table. rates: TFLOP/s by variant; errors: the largest ones, of ours and of cuDNN."""

    dim: int
    length: int
    rates: Mapping[str, float]
    errors: tuple[float, float]

    def __str__(self) -> str:
        ours, cudnn, flash = (self.rates[name] for name in ("ours", "cuDNN", "FlashAttention-2"))
        figures = f"{ours:.0f} | {cudnn:.0f} | {flash:.0f} | {ours / cudnn:.2f} | {ours / flash:.2f}"
        return f"| {self.dim} | {self.length} | {figures} | {self.errors[0]:.1e} | {self.errors[1]:.1e} |"


# scores that are modified: a function of the score and of the numbers of its query and key
MODIFIED = """
import "prelude.rise"

def ofHeads{b: Nat, h: Nat, m: Nat, n: Nat, d: Nat, e: Nat}
    (f: n.d.f16 -> n.e.f16 -> (d.f16, i32) -> e.f16, Q: b.h.m.d.f16, K: b.h.n.d.f16, V: b.h.n.e.f16) =
  zip(Q)(zip(K)(V)) |> map((Q, (K, V)) =>
    zip(Q)(zip(K)(V)) |> map((Q, (K, V)) => Q |> numbered |> map(f(K)(V))))

def softcap(b: Nat, h: Nat, m: Nat, n: Nat, d: Nat, e: Nat)
    (Q: b.h.m.d.f16, K: b.h.n.d.f16, V: b.h.n.e.f16): b.h.m.e.f16 =
  ofHeads(K => V => (q, i) =>
    attend((j, s) => 30.0 * tanh(s * rsqrt(cast(length(q))) / 30.0), K, V, q), Q, K, V)

def alibi(b: Nat, h: Nat, m: Nat, n: Nat, d: Nat, e: Nat)
    (Q: b.h.m.d.f16, K: b.h.n.d.f16, V: b.h.n.e.f16): b.h.m.e.f16 =
  ofHeads(K => V => (q, i) =>
    attend((j, s) => s * rsqrt(cast(length(q))) + 0.0625 * f32(j - i), K, V, q), Q, K, V)

def window(b: Nat, h: Nat, m: Nat, n: Nat, d: Nat, e: Nat)
    (Q: b.h.m.d.f16, K: b.h.n.d.f16, V: b.h.n.e.f16): b.h.m.e.f16 =
  ofHeads(K => V => (q, i) =>
    attend((j, s) => select(j <= i && i - j < 1024, s * rsqrt(cast(length(q))), -infinity), K, V, q), Q, K, V)
"""

HEADER = """\
| d | length | ours | cuDNN | FlashAttention-2 | of cuDNN | of FA2 | error | cuDNN's |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


def reference(torch: Any, q: Any, k: Any, v: Any, causal: bool) -> Any:
    scores = q.double() @ k.double().T / math.sqrt(q.shape[-1])
    if causal:
        later = torch.ones(scores.shape, device=q.device, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    return torch.softmax(scores, -1) @ v.double()


def measured(torch: Any, dim: int, length: int, causal: bool, only: bool = False) -> Line:
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    batch, heads = max(TOKENS // length, 1), WIDTH // dim
    shape = (batch, heads, length, dim)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.float16) for _ in range(3))
    sizes = {"b": batch, "h": heads, "m": length, "n": length, "d": dim, "e": dim}
    program = load(PROGRAMS)["causalHeads" if causal else "heads"]
    ours = codegen.compile(program, sizes=sizes, backend="cuda")
    result = torch.full_like(q, math.nan)

    def of_torch(backend: Any) -> Callable[[], Any]:
        def launch() -> Any:
            with sdpa_kernel(backend):
                return scaled_dot_product_attention(q, k, v, is_causal=causal)

        return launch

    variants: dict[str, Callable[[], Any]] = {
        "ours": lambda: ours(q, k, v, out=result),
        "cuDNN": of_torch(SDPBackend.CUDNN_ATTENTION),
        "FlashAttention-2": of_torch(SDPBackend.FLASH_ATTENTION),
    }
    variants["ours"]()
    wanted = reference(torch, q[-1, -1], k[-1, -1], v[-1, -1], causal)
    found = (result, result if only else variants["cuDNN"]())
    errors = tuple(float((x[-1, -1].double() - wanted).abs().max()) for x in found)
    if result.isnan().any() or errors[0] > min(2 * errors[1] + 1e-5, 2e-3):
        raise SystemExit(f"wrong at {sizes}: {errors}")
    if only:
        return Line(dim, length, dict.fromkeys(variants, math.nan), (errors[0], errors[1]))
    times = {name: min(median_ms(torch, launch) for _ in range(TURNS)) for name, launch in variants.items()}
    operations = 4 * batch * heads * length * length * dim / (2 if causal else 1)
    rates = {name: operations / ms / 1e9 for name, ms in times.items()}
    return Line(dim, length, rates, (errors[0], errors[1]))


# few queries a head: batch, heads, heads that keys and values have, queries, keys, dimension. Of the last
# ones there are fewer tiles than multiprocessors, so the keys are in parts.
FEW_QUERIES = (
    (16, 32, 32, 1, 4096, 128),
    (4, 32, 32, 1, 32768, 128),
    (16, 64, 8, 1, 8192, 128),
    (1, 32, 32, 1, 8192, 128),
    (1, 32, 32, 4, 8192, 128),
    (1, 64, 8, 1, 32768, 128),
    (2, 64, 8, 1, 8192, 128),
    (1, 16, 16, 1, 8192, 64),
    (1, 8, 1, 1, 131072, 128),
)


def decoded(torch: Any, batch: int, heads: int, shared: int, queries: int, length: int, dim: int) -> str:
    """A row: microseconds of ours and of cuDNN for few queries a head; bytes of keys and values a second."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    group = heads // shared
    q = torch.randn((batch, heads, queries, dim), device="cuda", dtype=torch.float16)
    k, v = (torch.randn((batch, shared, length, dim), device="cuda", dtype=torch.float16) for _ in range(2))
    rows = group * queries
    sizes = {"b": batch, "h": shared, "m": rows, "n": length, "d": dim, "e": dim}
    ours = codegen.compile(load(PROGRAMS)["heads"], sizes=sizes, backend="cuda")
    mine, result = (x.view(batch, shared, rows, dim) for x in (q, torch.full_like(q, math.nan)))

    def theirs() -> Any:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return scaled_dot_product_attention(q, k, v, enable_gqa=group > 1)

    ours(mine, k, v, out=result)
    wanted = reference(torch, mine[-1, -1], k[-1, -1], v[-1, -1], False)
    error = float((result[-1, -1].double() - wanted).abs().max())
    if result.isnan().any() or error > 1e-3:
        raise SystemExit(f"wrong at {sizes}: {error}")
    launches: tuple[Callable[[], Any], ...] = (lambda: ours(mine, k, v, out=result), theirs)
    times = [min(median_ms(torch, launch) for _ in range(TURNS)) * 1e3 for launch in launches]
    rate = 2 * k.nbytes / times[0] / 1e3
    shape = f"{batch} | {heads} | {shared} | {queries} | {length} | {dim}"
    kernels = len(ours.program.kernels)
    figures = f"{times[0]:.0f} | {times[1]:.0f} | {times[1] / times[0]:.2f} | {rate:.0f}"
    return f"| {shape} | {kernels} | {figures} |"


DECODED_HEADER = """\
| batch | heads | of keys | queries | keys | d | kernels | ours, µs | cuDNN, µs | ratio | ours, GB/s |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


def modifications(torch: Any) -> dict[str, tuple[Callable[..., Any], Callable[..., Any] | None]]:
    """FlexAttention's function of a score, and its mask, for each program of MODIFIED."""

    def capped(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return 30.0 * torch.tanh(score / 30.0)

    def sloped(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return score + 0.0625 * (j - i)

    def same(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return score

    def near(b: Any, h: Any, i: Any, j: Any) -> Any:
        return (j <= i) & (i - j < 1024)

    return {"softcap": (capped, None), "alibi": (sloped, None), "window": (same, near)}


def modified(torch: Any, name: str, dim: int, length: int) -> str:
    """A row: microseconds of ours and of FlexAttention under torch.compile, and the largest difference."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    batch, heads = max(TOKENS // length, 1), WIDTH // dim
    q, k, v = (torch.randn((batch, heads, length, dim), device="cuda", dtype=torch.float16) for _ in range(3))
    sizes = {"b": batch, "h": heads, "m": length, "n": length, "d": dim, "e": dim}
    ours = codegen.compile(check_text(MODIFIED)[name], sizes=sizes, backend="cuda")
    result = torch.full_like(q, math.nan)
    score, near = modifications(torch)[name]
    mask = None if near is None else create_block_mask(near, None, None, length, length, device="cuda")
    flex = torch.compile(flex_attention)
    variants: dict[str, Callable[[], Any]] = {
        "ours": lambda: ours(q, k, v, out=result),
        "flex": lambda: flex(q, k, v, score_mod=score, block_mask=mask),
    }
    variants["ours"]()
    error = float((variants["flex"]().double() - result.double()).abs().max())
    if result.isnan().any() or error > 4e-3:
        raise SystemExit(f"wrong at {name} {sizes}: {error}")
    times = {
        key: min(median_ms(torch, launch) for _ in range(TURNS)) * 1e3 for key, launch in variants.items()
    }
    figures = f"{times['ours']:.0f} | {times['flex']:.0f} | {times['flex'] / times['ours']:.2f}"
    return f"| {name} | {dim} | {length} | {figures} | {error:.1e} |"


# keys and values of several query heads, and a dimension of values of its own
GROUPED = """
import "prelude.rise"

def grouped(h: Nat, g: Nat, m: Nat, n: Nat, d: Nat, e: Nat)
    (Q: h.g.m.d.bf16, K: h.n.d.bf16, V: h.n.e.bf16): h.g.m.e.bf16 =
  zip(Q)(zip(K)(V)) |> map((Q, (K, V)) =>
    Q |> map(map(q => attend((j, s) => s * rsqrt(cast(length(q))), K, V, q))))

def groupedCausal(h: Nat, g: Nat, m: Nat, n: Nat, d: Nat, e: Nat)
    (Q: h.g.m.d.bf16, K: h.n.d.bf16, V: h.n.e.bf16): h.g.m.e.bf16 =
  zip(Q)(zip(K)(V)) |> map((Q, (K, V)) =>
    Q |> map(Q => Q |> numbered |> map((q, i) =>
      attend((j, s) => select(j <= i, s * rsqrt(cast(length(q))), -infinity), K, V, q))))

def sums(h: Nat, m: Nat, n: Nat, d: Nat)(Q: h.m.d.bf16, K: h.n.d.bf16): h.m.f32 =
  zip(Q)(K) |> map((Q, K) =>
    Q |> map(q => logSumExp(modifiedScores((j, s) => s * rsqrt(cast(length(q))), K, q))))
"""


def grouped(torch: Any, heads: int, shared: int, length: int, dim: int, wide: int, causal: bool) -> str:
    """A row: TFLOP/s of ours and of cuDNN where heads share keys, of `dim` numbers, and values, of `wide`."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    group = heads // shared
    q, k, v = (
        torch.randn((1, h, length, d), device="cuda", dtype=torch.bfloat16)
        for h, d in ((heads, dim), (shared, dim), (shared, wide))
    )
    sizes = {"h": shared, "g": group, "m": length, "n": length, "d": dim, "e": wide}
    program = check_text(GROUPED)["groupedCausal" if causal else "grouped"]
    ours = codegen.compile(program, sizes=sizes, backend="cuda")
    mine = q.view(shared, group, length, dim)
    result = torch.full((shared, group, length, wide), math.nan, device="cuda", dtype=torch.bfloat16)

    def theirs() -> Any:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=group > 1)

    ours(mine, k[0], v[0], out=result)
    rows = slice(length // 2, length // 2 + 128)
    scores = mine[-1, -1, rows].double() @ k[0, -1].double().T / math.sqrt(dim)
    if causal:
        numbers = torch.arange(length, device="cuda")
        scores = scores.masked_fill(numbers > numbers[rows, None], -math.inf)
    error = float((result[-1, -1, rows].double() - torch.softmax(scores, -1) @ v[0, -1].double()).abs().max())
    if result.isnan().any() or error > 1e-2:
        raise SystemExit(f"wrong at {sizes}: {error}")
    launches: tuple[Callable[[], Any], ...] = (lambda: ours(mine, k[0], v[0], out=result), theirs)
    times = [min(median_ms(torch, launch) for _ in range(TURNS)) for launch in launches[: 1 + _runs(theirs)]]
    times += [math.nan] * (2 - len(times))
    operations = 2 * heads * length * length * (dim + wide) / (2 if causal else 1)
    rates = [operations / ms / 1e9 for ms in times]
    shape = f"{heads} | {shared} | {dim} | {wide} | {length} | {'causal' if causal else 'full'}"
    return f"| {shape} | {rates[0]:.0f} | {rates[1]:.0f} | {rates[0] / rates[1]:.2f} | {error:.1e} |"


def _runs(launch: Callable[[], Any]) -> bool:
    """Whether a library takes a shape."""
    try:
        launch()
    except RuntimeError:
        return False
    return True


GROUPED_HEADER = """\
| heads | of keys | d | e | length | mask | ours | cuDNN | ratio | error |
| ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |"""


def log_sum_exp(torch: Any, dim: int, length: int) -> str:
    """A row: microseconds of the log-sum-exp of scores, ours and by torch.compile."""
    heads = TOKENS // length * WIDTH // dim
    q, k = (torch.randn((heads, length, dim), device="cuda", dtype=torch.bfloat16) for _ in range(2))
    sizes = {"h": heads, "m": length, "n": length, "d": dim}
    ours = codegen.compile(check_text(GROUPED)["sums"], sizes=sizes, backend="cuda")
    result = torch.full((heads, length), math.nan, device="cuda")
    by_torch = torch.compile(lambda q, k: torch.logsumexp((q @ k.mT).float() / math.sqrt(dim), -1))
    ours(q, k, out=result)
    wanted = torch.logsumexp(q[-1].double() @ k[-1].double().T / math.sqrt(dim), -1)
    error = float((result[-1].double() - wanted).abs().max())
    if result.isnan().any() or error > 1e-4:
        raise SystemExit(f"wrong at {sizes}: {error}")
    launches: tuple[Callable[[], Any], ...] = (lambda: ours(q, k, out=result), lambda: by_torch(q, k))
    times = [min(median_ms(torch, launch) for _ in range(TURNS)) * 1e3 for launch in launches]
    rate = 2 * heads * length * length * dim / times[0] / 1e6
    figures = f"{times[0]:.0f} | {times[1]:.0f} | {times[1] / times[0]:.2f} | {rate:.0f}"
    return f"| {heads} | {dim} | {length} | {figures} | {error:.1e} |"


SUMS_HEADER = """\
| heads | d | length | ours, µs | torch.compile, µs | ratio | ours, TFLOP/s | error |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


MODIFIED_HEADER = """\
| scores | d | length | ours, µs | FlexAttention, µs | ratio | difference |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |"""


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="a folder for the table")
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--check", action="store_true", help="run only ours, once: for compute-sanitizer")
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 1024, 2048, 4096, 8192, 16384])
    parser.add_argument("--dims", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--modified", action="store_true", help="modified scores, beside FlexAttention")
    parser.add_argument("--decode", action="store_true", help="few queries a head, beside cuDNN")
    parser.add_argument("--grouped", action="store_true", help="several query heads share keys, beside cuDNN")
    parser.add_argument("--sums", action="store_true", help="the log-sum-exp of scores, beside torch.compile")
    given = parser.parse_args()
    if given.decode:
        rows = [decoded(torch, *shape) for shape in FEW_QUERIES]
        title = f"# Few queries a head, f16, {torch.cuda.get_device_name()}"
        write(given.out, "attention-decode.md", "\n".join([title, "", DECODED_HEADER, *rows, ""]))
        return
    if given.grouped:
        shapes = [
            (64, 8, n, 128, 128, causal) for n in given.lengths if n >= 2048 for causal in (False, True)
        ]
        shapes += [(16, 16, n, 192, 128, True) for n in given.lengths if 2048 <= n <= 8192]
        rows = [grouped(torch, *shape) for shape in shapes]
        title = f"# Heads that share keys, bf16, TFLOP/s, {torch.cuda.get_device_name()}"
        write(given.out, "attention-grouped.md", "\n".join([title, "", GROUPED_HEADER, *rows, ""]))
        return
    if given.sums:
        rows = [log_sum_exp(torch, d, length) for d in given.dims for length in given.lengths]
        title = f"# Log-sum-exp of scores, bf16, {torch.cuda.get_device_name()}"
        write(given.out, "attention-sums.md", "\n".join([title, "", SUMS_HEADER, *rows, ""]))
        return
    if given.modified:
        names = modifications(torch)
        rows = [modified(torch, n, d, length) for n in names for d in given.dims for length in given.lengths]
        title = f"# Modified scores, f16, {torch.cuda.get_device_name()}"
        write(given.out, "attention-modified.md", "\n".join([title, "", MODIFIED_HEADER, *rows, ""]))
        return
    lines = []
    for dim in given.dims:
        for length in given.lengths:
            lines.append(measured(torch, dim, length, given.causal, given.check))
            print(lines[-1], flush=True)
    if given.check:
        return
    mean = {
        name: math.exp(sum(math.log(x.rates["ours"] / x.rates[name]) for x in lines) / len(lines))
        for name in ("cuDNN", "FlashAttention-2")
    }
    said = ", ".join(f"{ratio:.3f} of {name}" for name, ratio in mean.items())
    title = (
        f"{'Causal attention' if given.causal else 'Attention'}, f16, TFLOP/s, {torch.cuda.get_device_name()}"
    )
    table = "\n".join([f"# {title}", "", f"Geometric means: {said}.", "", HEADER, *map(str, lines), ""])
    write(given.out, f"attention{'-causal' if given.causal else ''}.md", table)


if __name__ == "__main__":
    main()
