"""Attention by `one_pass` with several parameters beside cuDNN: which of its switches brings what, and where.

    python benchmarks/attention_variants.py [--lengths 512 …] [--dims 64 128 256] [--masks heads causalHeads]
    python benchmarks/attention_variants.py --lengths 8192 --dims 64 128 --masks softcap alibi window

The workload and the checks are those of benchmarks/attention.py. Modified scores stand beside FlexAttention
under torch.compile, other ones beside cuDNN. Kernels are derived and compiled by all cores first. Then the
variants of a size take turns in one process; the best of three medians counts.
"""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

from attention import MODIFIED, PROGRAMS, TOKENS, TURNS, WIDTH, modifications
from timing import median_ms

import codegen
from codegen.host.program import HostProgram
from rise.check.program import check_text, load
from rise.errors import RiseError
from strategies.matmul.one_pass import one_pass

TARGET = "sm_90a"
LIBRARY = "library"
WORDS = {"blocks": "persistent", "turns": "in turn"}
PERSISTENT: Mapping[str, Any] = {"blocks": 132}
AHEAD: Mapping[str, Any] = {**PERSISTENT, "ahead": 1}
TWO: Mapping[str, Any] = {**PERSISTENT, "ahead": 2}
SKEWED: Mapping[str, Any] = {"skewed": True}


def shape(rows: int, columns: int, **more: Any) -> Mapping[str, Any]:
    return {"rows": rows, "columns": columns, "stages": 2, **more}


IN_TURN: Mapping[str, Any] = {"skewed": True, "turns": True}

# by dimension, the parameters that are compared; the empty ones are `auto`
VARIANTS: Mapping[int, tuple[Mapping[str, Any], ...]] = {
    64: (
        {},
        shape(192, 128, **AHEAD),
        shape(192, 80, **AHEAD, **IN_TURN),
        shape(128, 128, **AHEAD, **SKEWED),
        shape(128, 128, **AHEAD, **IN_TURN),
        shape(128, 128, **TWO, **IN_TURN),
        shape(128, 112, **AHEAD, **IN_TURN),
    ),
    128: (
        {},
        shape(128, 128, **AHEAD, **SKEWED),
        shape(128, 128, **AHEAD, **IN_TURN),
        shape(128, 128, **TWO, **IN_TURN),
        shape(128, 112, **TWO, **IN_TURN),
    ),
    256: (
        {},
        shape(128, 48, **AHEAD, **IN_TURN),
        shape(128, 64, bulk_stores=False, **AHEAD, **SKEWED),
        shape(128, 64, bulk_stores=False, **AHEAD, **IN_TURN),
    ),
}
# the same for scores that are modified
OF_MODIFIED: Mapping[int, tuple[Mapping[str, Any], ...]] = {
    64: (
        {},
        shape(192, 128),
        shape(192, 128, **AHEAD),
        shape(192, 80, **AHEAD, **IN_TURN),
        shape(128, 128, **AHEAD),
        shape(128, 128, **AHEAD, **SKEWED),
        shape(128, 128, **AHEAD, **IN_TURN),
        shape(128, 128, **TWO, **IN_TURN),
    ),
    128: (
        {},
        shape(128, 128),
        shape(128, 128, **AHEAD),
        shape(128, 128, **AHEAD, **SKEWED),
        shape(128, 128, **AHEAD, **IN_TURN),
        shape(128, 128, **TWO, **IN_TURN),
    ),
}
EDITED = bool(os.environ.get("EDITED"))
MODIFICATIONS = ("softcap", "alibi", "window")


def edited(name: str, dim: int) -> tuple[Mapping[str, Any], ...]:
    """The schedules that `auto` takes, with the kernel's text as it is, and changed."""
    whole = shape(192, 128) if name == "causalHeads" else shape(192, 128, **TWO)
    apart = ("both apart", "scores apart") if name == "softcap" else ()
    in_steps = ("powers apart", *apart, "divided", "fences")
    found: list[tuple[Mapping[str, Any], tuple[str, ...]]] = [
        (shape(128, 128, **TWO, **SKEWED), ("early", "powers apart", *apart)),
        (shape(128, 128, **TWO, **IN_TURN), ("early", "powers apart", *apart)),
    ]
    if dim == 64:
        found.insert(0, (whole, in_steps))
    return ({}, *(m for s, edits in found for m in (s, *({**s, "edit": edit} for edit in edits))))


def variants(name: str, dim: int) -> tuple[Mapping[str, Any], ...]:
    if EDITED:
        return edited(name, dim)
    return (OF_MODIFIED if name in MODIFICATIONS else VARIANTS)[dim]


def sizes_of(dim: int, length: int) -> dict[str, int]:
    return {"b": max(TOKENS // length, 1), "h": WIDTH // dim, "m": length, "n": length, "d": dim, "e": dim}


BARRIER = "named_barrier(threadIdx.x / 128 + 1, 128);\n"


def divided(text: str) -> str:
    return text.replace("(-INFINITY)", "(-1.0f / 0.0f)")


def fenced(text: str) -> str:
    return text.replace("pin_registers(", "wgmma_fence(")


def early(text: str) -> str:
    return re.sub(r" +named_barrier\([^\n]*\n(?= +wgmma_wait<)", "", text)


def scores_apart(text: str) -> str:
    return re.sub(r"(= \(-reciprocal\(\(1.0f [^\n]*\n +\}\n)", r"\1" + BARRIER, text)


def powers_apart(text: str) -> str:
    loop = r"( +#pragma unroll\n[^\n]*num_elements[^\n]*\n +c_fragment\w*\.x\[\w+\] = power_of_two\(\(\()"
    return re.sub(loop, BARRIER + r"\1", text)


EDITS: Mapping[str, Callable[[str], str]] = {
    "": lambda text: text,
    "divided": divided,
    "fences": fenced,
    "early": early,
    "scores apart": scores_apart,
    "powers apart": powers_apart,
    "both apart": lambda text: powers_apart(scores_apart(text)),
}


def made(name: str, dim: int, length: int, parameters: Mapping[str, Any]) -> HostProgram | str:
    """The compiled program, or why there is none."""
    edit = EDITS[parameters.get("edit", "")]
    parameters = {key: value for key, value in parameters.items() if key != "edit"}
    try:
        program = check_text(MODIFIED)[name] if name in MODIFICATIONS else load(PROGRAMS)[name]
        compiled = codegen.compile(
            program,
            one_pass(**parameters) if parameters else None,
            sizes=sizes_of(dim, length),
            backend="emulate",
            target=TARGET,
            spills="allow",
        )
    except RiseError as error:
        return f"{error.code} {error.message}".splitlines()[0]
    kernels = tuple(replace(kernel, source=edit(kernel.source)) for kernel in compiled.program.kernels)
    return replace(compiled.program, kernels=kernels)


def label(parameters: Mapping[str, Any]) -> str:
    if not parameters:
        return "auto"
    rows, columns = parameters["rows"], parameters["columns"]
    switches = [k for k in ("blocks", "ahead", "skewed", "turns") if parameters.get(k)]
    words = [f"ahead {parameters['ahead']}" if k == "ahead" else WORDS.get(k, k) for k in switches]
    lanes = [] if parameters.get("bulk_stores", True) else ["by lanes"]
    lanes += [parameters["edit"]] if "edit" in parameters else []
    return ", ".join([f"{rows} × {columns}", *words, *lanes])


def modified_reference(torch: Any, name: str, q: Any, k: Any, v: Any) -> Any:
    """What a program computes of one head, in f64."""
    scores = q.double() @ k.double().T / math.sqrt(q.shape[-1])
    i, j = torch.arange(len(q), device=q.device)[:, None], torch.arange(len(k), device=q.device)[None, :]
    if name == "causalHeads":
        scores = scores.masked_fill(j > i, -math.inf)
    elif name != "heads":
        score, near = modifications(torch)[name]
        scores = score(scores, 0, 0, i, j)
        scores = scores if near is None else scores.masked_fill(~near(0, 0, i, j), -math.inf)
    return torch.softmax(scores, -1) @ v.double()


def library(torch: Any, name: str, q: Any, k: Any, v: Any) -> Callable[[], Any]:
    """FlexAttention for scores that are modified, cuDNN for others."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    from torch.nn.functional import scaled_dot_product_attention

    if name in MODIFICATIONS:
        length = q.shape[-2]
        score, near = modifications(torch)[name]
        mask = None if near is None else create_block_mask(near, None, None, length, length, device="cuda")
        flex = torch.compile(flex_attention)
        return lambda: flex(q, k, v, score_mod=score, block_mask=mask)

    def cudnn() -> Any:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return scaled_dot_product_attention(q, k, v, is_causal=name != "heads")

    return cudnn


def measured(
    torch: Any, name: str, dim: int, length: int, programs: Mapping[str, HostProgram]
) -> dict[str, float]:
    """TFLOP/s by variant; of products with all keys, where scores are modified."""
    sizes = sizes_of(dim, length)
    q, k, v = (
        torch.randn((sizes["b"], sizes["h"], length, dim), device="cuda", dtype=torch.float16)
        for _ in range(3)
    )
    wanted = modified_reference(torch, name, q[-1, -1], k[-1, -1], v[-1, -1])
    baseline = library(torch, name, q, k, v)
    launches: dict[str, Callable[[], Any]] = {LIBRARY: baseline}
    theirs = baseline()
    allowed = 2 * float((theirs[-1, -1].double() - wanted).abs().max()) + 1e-5
    for which, program in programs.items():
        compiled = codegen.compile(program, backend="cuda", spills="allow")
        result = torch.full_like(q, math.nan)
        compiled(q, k, v, out=result)
        error = float((result[-1, -1].double() - wanted).abs().max())
        differs = float((result - theirs).abs().max())
        if result.isnan().any() or error > allowed or differs > 8e-3:
            print(f"WRONG: {name} {sizes} {which}: {error:.1e}, from {differs:.1e}", flush=True)
            continue
        launches[which] = lambda compiled=compiled, result=result: compiled(q, k, v, out=result)  # type: ignore[misc]  # bound at once
    times = dict.fromkeys(launches, math.inf)
    for _ in range(TURNS):
        for which, launch in launches.items():
            times[which] = min(times[which], median_ms(torch, launch))
    operations = 4 * sizes["b"] * sizes["h"] * length * length * dim / (2 if name == "causalHeads" else 1)
    return {which: operations / ms / 1e9 for which, ms in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 2048, 8192])
    parser.add_argument("--dims", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--masks", nargs="+", default=["heads", "causalHeads"])
    parser.add_argument("--build", action="store_true", help="derive and compile only")
    given = parser.parse_args()
    points = [(name, dim, length) for name in given.masks for dim in given.dims for length in given.lengths]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        orders = {
            (point, label(parameters)): pool.submit(made, *point, parameters)
            for point in points
            for parameters in variants(point[0], point[1])
        }
        programs = {key: order.result() for key, order in orders.items()}
    for (point, which), program in programs.items():
        if isinstance(program, str):
            print(f"refused: {point} {which}: {program}")
    if given.build:
        return
    import torch

    torch.manual_seed(1)
    rates: dict[tuple[str, int], dict[str, dict[int, float]]] = {}
    for name, dim, length in points:
        mine = {
            which: program
            for (point, which), program in programs.items()
            if point == (name, dim, length) and isinstance(program, HostProgram)
        }
        for which, rate in measured(torch, name, dim, length, mine).items():
            rates.setdefault((name, dim), {}).setdefault(which, {})[length] = rate
    print(f"# Attention, TFLOP/s, and of the library, {torch.cuda.get_device_name()}")
    for (name, dim), by_variant in rates.items():
        print(f"\n| {name}, d = {dim} |", " | ".join(map(str, given.lengths)), "|")
        print("| --- |", " ---: |" * len(given.lengths))
        for which, found in by_variant.items():
            cells = (
                f"{found[n]:.0f} ({found[n] / by_variant[LIBRARY][n]:.2f})" if n in found else "-"
                for n in given.lengths
            )
            print(f"| {which} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
