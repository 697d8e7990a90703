"""What a step of attention waits for: early maxima, releases, basic blocks, and clusters that share keys.

    python benchmarks/attention_steps.py [--length 8192] [--only REGEX] [--build] [NAME:DIM …]

The workload, the checks and the libraries are those of benchmarks/attention_variants.py. Some kernels are
edited as text: `late` hands the slot of the keys back behind that of the queries, whose condition is computed
first; `divided` has infinities as quotients of zero; `apart` ends a basic block behind the scores, or behind
the release.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

from attention_variants import AHEAD, IN_TURN, LIBRARY, SKEWED, TARGET, TWO, divided, made, measured, shape

from codegen.host.program import HostProgram
from codegen.runtime.compiling import compile_cubin
from rise.errors import RiseError

Variant = tuple[str, Mapping[str, Any], str]
WIDE, PAIRED = shape(192, 128, **TWO), shape(128, 128, **TWO, **SKEWED)
TURNING, DEEP = shape(128, 128, **TWO, **IN_TURN), shape(128, 64, bulk_stores=False, **AHEAD, **SKEWED)
EARLY, CLUSTER, THREE = {"early_maxima": True}, {"cluster": 2}, {"stages": 3}
TURNS: Mapping[str, Any] = {"turns": True}
RELEASE = r"( +if \(threadIdx\.x % 128 == 0\) barrier_arrive\(empty_1[^\n]*\n)"
APART = """__device__ __forceinline__ void apart(int number) {
  asm volatile(
      "{\\n.reg .pred p;\\nsetp.ne.s32 p, %0, -1;\\n@p bra DONE%=;\\n"
      "AGAIN%=:\\nnanosleep.u32 20;\\nbra AGAIN%=;\\nDONE%=:\\n}\\n" ::"r"(number)
      : "memory");
}
"""


def late(text: str) -> str:
    return re.sub(RELEASE + r"( +if \([^\n]*\n[^\n]*barrier_arrive\(empty [^\n]*\n +\}\n)", r"\2\1", text)


def _apart_behind(pattern: str, text: str) -> str:
    name = next(iter(re.findall(r"(block_\w*fst_)\.x\[", text)), "")
    found = re.sub(pattern, rf"\1apart(__float_as_int({name}.x[0]));\n", text, count=1)
    return text if found == text else found.replace('extern "C"', APART + 'extern "C"', 1)


def scores_apart(text: str) -> str:
    return _apart_behind(r"( +#pragma unroll\n[^\n]*c_fragment\.num_elements[^\n]*\n[^\n]*\n +\}\n)", text)


def release_apart(text: str) -> str:
    return _apart_behind(RELEASE, text)


EDITS: Mapping[str, Callable[[str], str]] = {
    "": lambda text: text,
    "late": late,
    "divided": divided,
    "scores apart": scores_apart,
    "release apart": release_apart,
}


def variants(name: str, dim: int) -> Sequence[Variant]:
    """Names, parameters and edits."""
    if dim == 256:
        return [
            ("128 × 64, skewed", DEEP, ""),
            ("cluster", {**DEEP, **CLUSTER}, ""),
            ("128 × 64, in turn", {**DEEP, "skewed": False, **TURNS}, ""),
        ]
    of_two: list[Variant] = [
        ("128 × 128, skewed", PAIRED, ""),
        ("128 × 128, skewed, in turn", TURNING, ""),
        ("128 × 128, in turn", {**PAIRED, "skewed": False, **TURNS}, ""),
    ]
    if dim == 128:
        found = [*of_two, ("cluster", {**PAIRED, **CLUSTER}, "")]
        if name == "softcap":
            found += [("early maxima", {**PAIRED, **EARLY}, "")]
            found += [("skewed, in turn, early maxima", {**TURNING, **EARLY}, "")]
        return found
    whole = shape(192, 128) if name in ("causalHeads", "window") else WIDE
    found = [
        ("192 × 128", whole, ""),
        ("in turn", {**whole, **TURNS}, ""),
        ("in turn, three slots", {**whole, **THREE, **TURNS}, ""),
        ("three slots", {**whole, **THREE}, ""),
        ("cluster", {**whole, **CLUSTER}, ""),
        *of_two,
    ]
    if name in ("causalHeads", "window"):
        return [*found, ("skewed, in turn, cluster", {**TURNING, **CLUSTER}, "")]
    found += [(edit, whole, edit) for edit in ("late", "divided", "late divided")]
    if name == "heads":
        return found
    found += [("scores apart", whole, "scores apart"), ("release apart", whole, "release apart")]
    if name == "softcap":
        found += [
            ("early maxima", {**whole, **EARLY}, ""),
            ("early maxima, in turn", {**whole, **EARLY, **TURNS}, ""),
            ("early maxima, late", {**whole, **EARLY}, "late"),
            ("early maxima, three slots", {**whole, **EARLY, **THREE}, ""),
            ("early maxima, cluster", {**whole, **EARLY, **CLUSTER}, ""),
            ("early maxima, skewed", {**PAIRED, **EARLY}, ""),
            ("early maxima, skewed, in turn", {**TURNING, **EARLY}, ""),
        ]
    return found


def edited(text: str, edit: str) -> str:
    """The text with all edits that a name is made of; an error where one changes nothing."""
    names = [known for known in EDITS if known and known in edit]
    for name in names:
        before, text = text, EDITS[name](text)
        if before == text:
            raise RiseError("R0799", f"`{name}` changes nothing")
    return text


def built(name: str, dim: int, length: int, variant: Variant) -> HostProgram | str:
    """The program, with its machine code in the cache; or why there is none."""
    _, parameters, edit = variant
    program = made(name, dim, length, parameters)
    if isinstance(program, str):
        return program
    try:
        kernels = tuple(replace(k, source=edited(k.source, edit)) for k in program.kernels)
        for kernel in kernels:
            compile_cubin(kernel.source, TARGET)
    except RiseError as error:
        return f"{error.code} {error.message}".splitlines()[0]
    return replace(program, kernels=kernels)


POINTS = (
    "softcap:64", "alibi:64", "heads:64", "causalHeads:64", "heads:128", "causalHeads:128", "softcap:128",
    "alibi:128", "heads:256", "window:64",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("points", nargs="*", default=POINTS, metavar="NAME:DIM")
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--only", default="", metavar="REGEX", help="variants whose names have it")
    parser.add_argument("--build", action="store_true", help="derive and compile only")
    given = parser.parse_args()
    points = [(name, int(dim)) for name, dim in (point.split(":") for point in given.points)]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        orders = {
            (name, dim, variant[0]): pool.submit(built, name, dim, given.length, variant)
            for name, dim in points
            for variant in variants(name, dim)
            if re.search(given.only, variant[0])
        }
        programs = {key: order.result() for key, order in orders.items()}
    for (name, dim, which), program in programs.items():
        if isinstance(program, str):
            print(f"refused: {name} {dim} {which}: {program}", flush=True)
    if given.build:
        return
    import torch

    torch.manual_seed(1)
    tables: list[str] = []
    for name, dim in points:
        mine = {
            which: program
            for (other, other_dim, which), program in programs.items()
            if (other, other_dim) == (name, dim) and isinstance(program, HostProgram)
        }
        rates = measured(torch, name, dim, given.length, mine)
        rows = [f"| {which} | {rate:.0f} ({rate / rates[LIBRARY]:.3f}) |" for which, rate in rates.items()]
        tables.append("\n".join([f"| {name}, d = {dim} | {given.length} |", "| --- | ---: |", *rows]))
        print(tables[-1], flush=True)
    print(f"# A step of attention, TFLOP/s, and of the library, {torch.cuda.get_device_name()}\n")
    print("\n\n".join(tables))


if __name__ == "__main__":
    main()
