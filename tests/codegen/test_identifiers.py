"""Whatever a program calls its own, its kernels compile and compute the same."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import codegen
from codegen.compiled import Compiled
from codegen.emulation import compiling
from codegen.ir import identifiers
from codegen.ir.fragments import emulated
from rise.check.program import check_text
from rise.errors import RiseError
from strategies.registry import find

needs_compiler = pytest.mark.skipif(compiling.compiler() is None, reason="there is no C++ compiler")
DEVICE = Path(compiling.__file__).parents[1] / "cuda" / "device"
KEYWORDS = """
alignas asm and auto bool case class const_cast constexpr co_await default delete do double else enum export
extern float for friend goto int long mutable namespace new not_eq nullptr operator private register return
short signed sizeof static_assert struct switch template this throw true typedef typename union unsigned using
virtual void volatile wchar_t while xor half half2 bfloat16 wmma nvcuda blockIdx threadIdx blockDim dim3
"""
C_NAMES = """
remainder modf frexp ldexp hypot fdim nan lgamma tgamma scalbn ilogb logb lrint isnan labs memcpy memset
memcmp strlen malloc calloc free exit abort printf puts round trunc erf cbrt exp2 log2 copysign mmap
size_t std int32_t va_list launch main errno assert NULL EOF stdin I M_PI M_PI_2 INT_MAX y0 j1 gamma min
max abs output thread_x __LINE__ __FILE__ __COUNTER__ __global__ __restrict __attribute__ _Complex __x
x__y _ global_x rise_emulation
"""


def names_in_headers() -> set[str]:
    """Words of the headers that kernels include, and of all that these include on this machine."""
    texts = [path.read_text(encoding="utf-8") for path in DEVICE.glob("*.cuh")]
    texts.append(compiling.header_text())
    command = compiling.compiler()
    if command is not None:
        include = f'{emulated()}#include "hopper.cuh"\n'
        for flags in (["-dM", "-E"], ["-E", "-P"]):
            call = [str(command), "-std=c++17", *flags, "-isystem", str(compiling.HEADERS), "-x", "c++", "-"]
            texts.append(
                subprocess.run(call, input=include, capture_output=True, text=True, check=True).stdout
            )
    return {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)}


def exported() -> set[str]:
    """What the C and mathematics libraries export."""
    found: set[str] = set()
    if shutil.which("nm") is None:
        return found
    for name in ("libc.so.6", "libm.so.6", "libstdc++.so.6"):
        for path in Path("/usr/lib").glob(f"*/{name}"):
            printed = subprocess.run(["nm", "-D", path], capture_output=True, text=True, check=True).stdout
            found |= {line.split()[-1].split("@")[0] for line in printed.splitlines()}
    return found


def test_no_header_has_names_of_our_forms() -> None:
    """Of kernels and functions; of variables that end in an underscore, or have one letter."""
    known = names_in_headers()
    assert len(known) > 1000
    clashing = {word for word in known | exported() if re.fullmatch(r"\w+_(kernel|foreign)(_\d+)?", word)}
    macros = re.compile(r"#\s*define\s+(\w+)")
    defined = {
        name for path in DEVICE.glob("*.cuh") for name in macros.findall(path.read_text(encoding="utf-8"))
    }
    command = compiling.compiler()
    if command is not None:
        call = [str(command), "-std=c++17", "-dM", "-E", "-isystem", str(compiling.HEADERS), "-x", "c++", "-"]
        include = f'{emulated()}#include "hopper.cuh"\n'
        printed = subprocess.run(call, input=include, capture_output=True, text=True, check=True).stdout
        defined |= set(macros.findall(printed))
    clashing |= {
        name for name in defined if identifiers.of_user(name) == name or re.fullmatch(r"[A-Za-z]\w*_", name)
    }
    assert not clashing


def test_identifiers_have_their_form() -> None:
    """And stay themselves: a name in the form that it gets is not changed again."""
    for name in (*KEYWORDS.split(), *C_NAMES.split(), "α", "été", "ﬁ", "x²", "xs", "A", "x_1", "rows_2", "N"):
        made = identifiers.of_user(name)
        assert re.fullmatch(r"[A-HJ-Za-z](_\d+)?|[A-Za-z]\w*_", made) and made.isascii() and "__" not in made
        assert identifiers.of_user(made) == made
        assert re.fullmatch(r"[A-Za-z]\w*_kernel", identifiers.of_kernel(name))


def batches(names: list[str], size: int) -> Iterator[list[str]]:
    return (names[start : start + size] for start in range(0, len(names), size))


def default(text: str, name: str, **more: object) -> Compiled:
    definition = check_text(text).definitions[name]
    return codegen.compile(definition, find("default").make({}), backend="emulate", **more)  # type: ignore[arg-type]


def usable(name: str) -> bool:
    """Whether the language takes a word as a name."""
    try:
        check_text(f"def {name} = fun(({name}: f32) => {name} + 1.0)")
    except RiseError:
        return False
    return True


@needs_compiler
def test_inputs_and_variables_may_have_any_name() -> None:
    """Some of hundreds of names, as inputs, as bound variables and as definitions."""
    rng = np.random.default_rng(7)
    known = sorted(names_in_headers())
    drawn = {str(name) for name in rng.choice(known, 60, replace=False)}
    names = [n for n in sorted({*KEYWORDS.split(), *C_NAMES.split(), *drawn}) if usable(n)]
    assert len(names) > 150
    names = [str(name) for name in rng.choice(names, 45, replace=False)]
    for number, batch in enumerate(batches(names, 15)):
        inputs = ", ".join(f"{name}: 3.i32" for name in batch)
        kernel, others = batch[number % len(batch)], [*batch[1:], batch[0]]
        sums = " + ".join(
            f"({name} |> map(fun({other} => {other} * 2)) |> reduce(+, 0))"
            for name, other in zip(batch, others, strict=True)
        )
        run = default(f"def {kernel} = fun(({inputs}) => {sums})", kernel)
        arrays = [rng.integers(-99, 99, 3, dtype=np.int32) for _ in batch]
        if number == 1:  # a compiler run each takes a while
            assert run(*arrays) == 2 * sum(int(array.sum()) for array in arrays), batch


@needs_compiler
def test_sizes_may_have_any_name() -> None:
    names = [n for n in ("assert", "NULL", "lambda", "out", "stream", "EOF", "I", "main", "α") if usable(n)]
    for batch in batches(names, 3):
        sizes = ", ".join(f"{name}: Nat" for name in batch)
        inputs = ", ".join(f"xs{k}: {name}.i32" for k, name in enumerate(batch))
        sums = " + ".join(f"(xs{k} |> reduce(+, 0))" for k, _ in enumerate(batch))
        run = default(f"def f = depFun(({sizes}) => fun(({inputs}) => {sums}))", "f", runtime=batch)
        given = [np.arange(k + 2, dtype=np.int32) for k, _ in enumerate(batch)]
        assert run(*given) == sum(int(array.sum()) for array in given)
        assert str(run.__signature__)


@needs_compiler
def test_names_that_come_to_one_identifier_stay_apart() -> None:
    text = "def f = fun((xs: 3.i32, xs_: 3.i32, xs__: 3.i32, Xs: 3.i32) => zip(xs)(zip(xs_)(zip(xs__)(Xs)))"
    text += " |> map(fun((a, (b, (c, d))) => a + 10 * b + 100 * c + 1000 * d)))"
    ones = np.ones(3, np.int32)
    assert list(default(text, "f")(ones, 2 * ones, 3 * ones, 4 * ones)) == [4321] * 3


@needs_compiler
@pytest.mark.parametrize("name", ["remainder", "malloc", "launch", "__LINE__", "hypot", "printf"])
def test_kernels_may_have_any_name(name: str) -> None:
    text = f"def {name} = fun((xs: 4.f32, ys: 4.f32) => zip(xs)(ys) |> map(fun((x, y) => x % y)))"
    result = default(text, name)(np.array([1, 2, 3, 4], np.float32), np.array([5, 3, 3, 3], np.float32))
    assert list(result) == [1, 2, 0, 1]


@needs_compiler
def test_functions_in_c_may_have_any_name() -> None:
    """Their own text is what is called, not what the C library has."""
    for name in ("hypot", "atan2", "assert"):
        given = f'foreignFunction("{name}", 2, "return x1 - x2;")(fun((a: f64, b: f64) => a - b))'
        run = default(f"def f = fun((xs: 2.f64) => xs |> map(fun(x => {given}(x, 1.0))))", "f")
        assert list(run(np.array([5.0, 7.0]))) == [4.0, 6.0]
