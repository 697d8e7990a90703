"""Writes docs/gemm.md, docs/hopper-gemm.md and docs/tensor-cores.md: how programs of examples/ come to
tensor cores; and in docs/codegen.md and docs/batches.md what each command prints.

python docs/generate.py
"""

from __future__ import annotations

import difflib
import io
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache, partial
from itertools import dropwhile, groupby
from pathlib import Path
from textwrap import wrap
from typing import Any

ROOT = Path(__file__).parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from codegen.pipeline import generate  # noqa: E402
from codegen.passes.order import INDICES, STRUCTURE, Pass
from codegen.ir.show import show_program  # noqa: E402
from rewrites.library import rules as all_rules  # noqa: E402
from rewrites.result import Failure, Success  # noqa: E402
from rise import files  # noqa: E402
from rise.check.program import Program, load  # noqa: E402
from rise.check.specialise import specialise  # noqa: E402
from rise.cli.main import main  # noqa: E402
from rise.errors import RiseError  # noqa: E402
from rise.expr import Primitive, inline, subterms  # noqa: E402
from rise.instructions import INSTRUCTIONS, Family  # noqa: E402
from rise.normal import data_flow  # noqa: E402
from rise.pretty import show  # noqa: E402
from strategies.matmul.schedule import Schedule  # noqa: E402
from strategies.matmul.tensor_core import tensor_core  # noqa: E402
from strategies.search.space import Point  # noqa: E402
from strategies.settings import laws  # noqa: E402
from strategy_reference import page as strategies  # noqa: E402

SIZES = {"m": 1024, "n": 1024, "k": 1024}
LARGE = {"m": 4096, "n": 4096, "k": 4096}
HOPPER: Mapping[str, Any] = {
    "block": (128, 128, 64),
    "warp": (128, 128),
    "fragment": (64, 128, 16),
    "stages": 6,
    "raster_group": 16,
    "warp_specialised": True,
    "persistent_blocks": 132,
    "ping_pong": 2,
    "epilogue": "bulk",
}
# parameters of gemm, each of which is compared with the defaults, and what it changes
SWITCHES: Mapping[str, str] = {
    "stages=0": "Operands are read directly from global memory.",
    "stages=1": "Operands go through shared memory, without prefetching.",
    "padding=0": "Rows in shared memory are not padded, so columns share banks.",
    "vector=2": "A thread copies 4 bytes at once instead of 16.",
    "load_once=false": "A fragment of B is loaded again for every fragment of A.",
    "epilogue=direct": "α and β are applied to fragments, which are then stored.",
    "cp_async=false": "Tiles are prefetched into registers, and then stored to shared memory.",
    "slice_k=2": "Twice as many warps divide each step of k among them; their sums are added.",
    "raster_group=8": "The raster order has groups of eight rows of tiles.",
    "warp=32,64": "Warps have smaller tiles, and a block has more warps.",
    "fragment=8,32,16": "Instructions of another shape.",
    "fragment=16,8,16": "The shape selects instructions of another family, `mma.sync`.",
    "swizzled=true": "With `fragment=16,8,16`. Rows of up to 128 bytes are swizzled instead of padded; those of B"
    " are longer.",
    "prefetch_fragments=true": "With `fragment=16,8,16`. Fragments are loaded while those of the previous step are"
    " multiplied.",
    "split_k=2": "Two blocks divide the sums of a tile, and a second kernel adds the parts.",
}
# what a parameter is compared with, if it needs other instructions than the default
BASES: Mapping[str, dict[str, Any]] = dict.fromkeys(
    ("swizzled=true", "prefetch_fragments=true"), {"fragment": (16, 8, 16)}
)


@cache
def program(file: str) -> Program:
    return load(ROOT / "examples" / file)


@cache
def _derived(
    file: str, name: str, sizes: tuple[tuple[str, int], ...], given: tuple[tuple[str, Any], ...]
) -> Success:
    term = data_flow(inline(specialise(program(file)[name], dict(sizes))))
    result = tensor_core(**dict(given))(term)
    if isinstance(result, Failure):
        raise RiseError("R0606", result.story())
    return result


def derived(file: str, name: str, sizes: Mapping[str, int], **given: Any) -> Success:
    return _derived(file, name, tuple(sizes.items()), tuple(given.items()))


def rules(result: Success) -> str:
    """The names of the rules in the order of application, repetitions counted."""
    names = (
        f"`{name}`" + (f" ×{count}" if count > 1 else "")
        for name, count in (
            (name, len(list(same))) for name, same in groupby(step.rule for step in result.steps)
        )
    )
    return "\n".join(wrap(", ".join(names), 110, break_long_words=False, break_on_hyphens=False))


def counts(result: Success) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in subterms(result.term):
        if isinstance(part, Primitive):
            found[part.name] = found.get(part.name, 0) + 1
    return found


def block(text: str, language: str = "") -> str:
    return f"```{language}\n{text.strip()}\n```"


def source(file: str, name: str) -> str:
    """The text of a definition in its file, with the comment before it."""
    parts = (ROOT / "examples" / file).read_text(encoding="utf-8").split("\n\n")
    return next(part for part in parts if re.search(rf"def {name}\b", part))


# --- pages ------------------------------------------------------------------------------------------


def gemm() -> str:
    result = derived("gemm.rise", "gemm", SIZES)
    kernel = generate(result.term, "gemm_kernel")
    steps, kinds = len(result.steps), len({step.rule for step in result.steps})
    return "\n\n".join([
        "# GEMM, derived",
        "`D = αAB + βC` of `examples/gemm.rise` at m = n = k = 1024, by the strategy `tensor_core` with its"
        " default parameters. `python docs/generate.py` writes this page; the same output comes from\n"
        "`rise derive examples/gemm.rise gemm --strategy tensor_core --size m=1024 n=1024 k=1024` and by"
        " `rise compile`.",
        f"## The derivation: {steps} applications of {kinds} rules, in order",
        rules(result),
        "## The low-level program",
        block(show(result.term)),
        "## The kernel",
        f"{kernel.launch}.",
        block(kernel.source, "cuda"),
    ]) + "\n"  # fmt: skip


def hopper_gemm() -> str:
    name = "matmul_bt_f16"
    result = derived("gemm.rise", name, LARGE, **HOPPER)
    kernel = generate(result.term, f"{name}_kernel")
    steps, kinds = len(result.steps), len({step.rule for step in result.steps})
    clusters = derived("gemm.rise", name, LARGE, **HOPPER, cluster=2)
    return "\n\n".join([
        "# A product for Hopper, derived",
        f"`{name}` of `examples/gemm.rise` at m = n = k = 4096, by the strategy `tensor_core` with parameters"
        " for Hopper. A block has three warpgroups: one loads, and two alternate between tiles (ping-pong). There"
        " are 132 persistent blocks, one for each multiprocessor of an H200. With clusters this was the fastest"
        " schedule in `rise bench` there. `python docs/generate.py` writes this page; the same output comes from",
        block(_command("compile", name, "--target sm_90a"), "sh"),
        "with `--stage low`, with `--stage imperative --pass roles`, and as it is for the kernel. `rise derive`"
        " prints the steps. [hopper-machine.md](hopper-machine.md) explains the functions of the kernel, and"
        " what each parameter adds to the derivation.",
        "## The program",
        block(source("gemm.rise", name), "rise"),
        f"## The derivation: {steps} applications of {kinds} rules, in order",
        rules(result),
        "These rules do not occur in the derivation of [gemm.md](gemm.md):",
        _meanings(result, derived("gemm.rise", "gemm", SIZES)),
        "## The low-level program",
        block(show(result.term), "rise"),
        "## The imperative program after warp specialisation",
        "After the pass `roles` there are a program for the producer and one for the consumers. Both loop over all"
        " tiles, and synchronise at the mbarriers of the ring.",
        block(show_program(dict(kernel.stages)["roles"])),
        "## The kernel",
        f"{kernel.launch}. The operands of an instruction between the first and the last are left out.",
        block(abbreviated(kernel.source), "cuda"),
        "## In clusters",
        "With `cluster=2` these lines of the low-level program differ, apart from indentation:",
        block(_lines_changed(result, clusters), "diff"),
        "Two neighbours in raster order are in one column of tiles, so they share the tile of B. The compiler finds"
        " this from the indices; each block loads half of that tile, for both. The loads are",
        block("\n".join(_lines_with("bulk_load", generate(clusters.term, "clusters").source)), "cuda"),
        "## The goal",
        "`goal` of `examples/hopper.rise` is such a program in clusters, written by hand. It goes through the"
        " same passes. It differs from the program that the design asked for in these points:",
        _differences_from_the_design(),
    ]) + "\n"  # fmt: skip


def _command(command: str, name: str, more: str) -> str:
    given = (f"{key}={_written(value)}" for key, value in HOPPER.items())
    sizes = " ".join(f"{key}={value}" for key, value in LARGE.items())
    return (
        f"rise {command} examples/gemm.rise {name} --size {sizes} {more} \\\n"
        f"  --strategy tensor_core --set {' '.join(given)}"
    )


def _written(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value).lower()


def _meanings(result: Success, other: Success) -> str:
    """The meanings of the rules of one derivation that the other lacks, in the order of first application."""
    known = {step.rule for step in other.steps}
    names = dict.fromkeys(step.rule for step in result.steps if step.rule not in known)
    rows = (f"| `{name}` | {all_rules()[name].meaning} |" for name in names)
    return "\n".join(["| rule | meaning |", "| --- | --- |", *rows])


# of an instruction with very many registers: those between the first and the last
MANY = re.compile(r'(%0, |"\+f"\(r\[0\]\), )(?:%\d+, |"\+f"\(r\[\d+\]\), ){6,}')


def abbreviated(text: str) -> str:
    return MANY.sub(r"\1…, ", text)


def _lines_changed(before: Success, after: Success) -> str:
    texts = ([line.strip() for line in show(made.term).splitlines()] for made in (before, after))
    lines = difflib.unified_diff(*texts, lineterm="", n=0)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def _lines_with(part: str, text: str) -> Iterator[str]:
    return (line.strip() for line in text.splitlines() if part in line)


def _differences_from_the_design() -> str:
    """The items of the comment at the head of the goal program."""
    text = (ROOT / "examples" / "hopper.rise").read_text(encoding="utf-8").split("\n\n")[0]
    lines = [line.removeprefix("//").removeprefix(" ") for line in text.splitlines()]
    return "\n".join(dropwhile(lambda line: not line.startswith("- "), lines))


def tensor_cores() -> str:
    return "\n\n".join([
        "# One strategy, many products",
        "`tensor_core` finds matrix products in a program, whatever surrounds them. `python docs/generate.py`"
        " writes this page.",
        *_examples(),
        "## Instructions",
        "The shape of a fragment, m × n × k, and the types of its elements select the instruction. The layout of"
        " `wmma` fragments is unspecified. That of the others is known, so they can be loaded from and stored to"
        " any view, converted, and combined with matrices, rows and columns in the epilogue. The operands of"
        " `wgmma` stay in shared memory, where bulk copies of tiles put them.",
        _instructions(),
        "## Epilogues",
        "An epilogue is any function of elements: of one product or several, and of matrices, rows, columns and"
        " numbers, in any nesting of maps, zips, names and indices. The rule `pointwise` evaluates an element of the"
        " result, finds which products and which elements of arrays it is a function of, and writes the program as"
        " one map over these. Then the rule `pointwise on fragments` makes of the tile of a fragment one function of"
        " the elements that a lane holds. A transposed result is a product with operands swapped; a pair of matrices"
        " is two stores. With `epilogue=shared` all threads compute the same function row by row. `examples/fused.rise`"
        " has programs of all these kinds.",
        "## What each parameter changes",
        "Each section changes one parameter of GEMM (m = n = k = 1024), and compares the low-level program with"
        " that of the default parameters: how often each primitive occurs, and the first lines that differ.",
        *_switches(),
        "[hopper-machine.md](hopper-machine.md#from-programs) explains the parameters for Hopper:"
        " `warp_specialised`, `persistent_blocks`, `cluster`, `ping_pong` and `epilogue=bulk`.",
        "## What parameters ask of each other",
        "Their laws, as `strategies/matmul/schedule.py` declares them. Where one does not hold, the strategy is"
        " refused before anything is derived, with this message. What a block has room for is checked next"
        " ([tuning.md](tuning.md#what-is-legal)), then what instructions and copies require of the program.",
        _laws(),
    ]) + "\n"  # fmt: skip


EXAMPLES = (
    ("A bias and ReLU in one kernel", "biasRelu", SIZES),
    ("The sum of two products", "sumOfProducts", {**SIZES, "l": 512}),
    ("ReLU of an operand, applied while its tiles are loaded", "reluProduct", SIZES),
    ("Batched products", "batchedProducts", {"b": 8, **SIZES}),
    (
        "A convolution, whose matrix of patches is never stored",
        "convolution",
        {"h": 64, "w": 64, "c": 64, "o": 128},
    ),
)


def _examples() -> Iterator[str]:
    for title, name, sizes in EXAMPLES:
        result = derived("products.rise", name, sizes)
        yield f"## {title}"
        yield block(source("products.rise", name), "rise")
        given = ", ".join(f"{n} = {v}" for n, v in sizes.items())
        yield f"At {given}: {len(result.steps)} steps."
        yield rules(result)
        yield "The low-level program:"
        yield block(show(result.term), "rise")


def _instructions() -> str:
    head = ["| instruction | shapes | operands | sums | GPUs from |", "| --- | --- | --- | --- | --- |"]
    rows = (
        f"| `{i.family.value}` | {i.shapes} | {', '.join(sorted(i.operands))} |"
        f" {', '.join(sorted(i.accumulators))} | sm_{i.target}{'a' if i.family is Family.WGMMA else ''} |"
        for i in INSTRUCTIONS
    )
    return "\n".join([*head, *rows])


def _switches() -> Iterator[str]:
    for title, meaning in SWITCHES.items():
        base, given = BASES.get(title, {}), dict(Point.read("tensor_core", dict([title.split("=")])).parameters)
        usual = derived("gemm.rise", "gemm", SIZES, **base)
        other = derived("gemm.rise", "gemm", SIZES, **base, **given)
        yield f"### `{title}`"
        yield meaning + " " + _difference(counts(usual), counts(other))
        lines = difflib.unified_diff(
            show(usual.term).splitlines(), show(other.term).splitlines(), lineterm="", n=1
        )
        body = [line for line in lines if not line.startswith(("---", "+++"))]
        shown = body[:24] + ([f"… {len(body) - 24} more lines"] if len(body) > 24 else [])
        yield block("\n".join(shown), "diff")


def _laws() -> str:
    rows = ((law.code, re.sub(r"{[^}]*}", "…", law.reason), law.hint or "") for law in laws(Schedule))
    return "\n".join(["| code | message | what helps |", "| --- | --- | --- |", *map("| {0[0]} | {0[1]} | {0[2]} |".format, rows)])


def _difference(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    names = sorted(set(before) | set(after))
    changed = [
        f"`{n}` {before.get(n, 0)} → {after.get(n, 0)}" for n in names if before.get(n, 0) != after.get(n, 0)
    ]
    return f"Counts: {', '.join(changed)}." if changed else "The same primitives, with other sizes."


# commands, and the block after them
COMMANDS = re.compile(r"(```console\n\$ ([^`]*)\n```\n\n```\w*\n).*?(?=```)", re.DOTALL)


def with_output(name: str) -> str:
    """A page that is written by hand except for the output of its commands."""
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    return COMMANDS.sub(lambda found: found[1] + printed(found[2]), page)


def printed(command: str) -> str:
    """What `rise …` prints when it is called in the repository's root, without its notes."""
    _, *arguments = shlex.split(command.replace("\\\n", ""))
    out, notes = io.StringIO(), io.StringIO()
    with chdir(ROOT), redirect_stdout(out), redirect_stderr(notes):
        status = main(arguments)
    if status:
        raise RuntimeError(f"{command}\nexit status {status}\n{notes.getvalue()}")
    return out.getvalue()


def passes() -> str:
    """docs/passes.md, from the table of passes."""
    lines = [
        "# Passes",
        "Written by `docs/generate.py` from `codegen/passes/order.py`.",
        "A low-level program is translated (`translate`), and its views are resolved to indices (`resolve`)."
        " A result in global memory that is read again ends a kernel: there the program is cut. Each kernel"
        " then goes through these passes. `rise compile … --stage imperative --pass NAME` prints the program"
        " after one of them. `--verify` checks it after each: scopes, types, memory spaces, levels, and that"
        " no input is written (`codegen/passes/verify.py`). The tests run with it.",
        *_table("## The structure of the kernel", STRUCTURE),
        *_table("## How indices are computed", INDICES),
    ]
    return "\n\n".join(lines) + "\n"


def _table(title: str, of: tuple[Pass, ...]) -> Iterator[str]:
    yield title
    rows = ["| pass | does | comes after |", "| --- | --- | --- |"]
    for each in of:
        needs = "; ".join(f"`{name}`: {reason}" for name, reason in each.needs.items())
        name = f"`{each.name}`" + (" (a check)" if each.checks else "")
        rows.append(f"| {name} | {each.meaning} | {needs} |")
    yield "\n".join(rows)


PAGES = {
    "passes.md": passes,
    "gemm.md": gemm,
    "hopper-gemm.md": hopper_gemm,
    "tensor-cores.md": tensor_cores,
    "codegen.md": partial(with_output, "codegen.md"),
    "batches.md": partial(with_output, "batches.md"),
    "strategies.md": strategies,
}

if __name__ == "__main__":
    for file, page in PAGES.items():
        files.write(ROOT / "docs" / file, page())
