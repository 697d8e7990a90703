"""The page docs/strategies.md: signatures and docstrings of strategies, and what each makes of a program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import takewhile

from rewrites import algorithmic, lowering, maps, movement, strategy, views
from rewrites.result import Failure
from rewrites.rounding import ROUND_UP
from rise.check.program import check_expression
from rise.expr import Identifier
from rise.frozen import changed
from rise.nat import nat
from rise.normal import data_flow
from rise.pretty import show
from rise.types import I32, Array
from strategies import core, normal_forms, operands, places, registry, rounded
from strategies.batches import fragments, joined, runs, stages, threads
from strategies.batches import parts as parts_of_batches
from strategies.batches.parts import Parts
from strategies.guided import moves, search
from strategies.loops import nests, tiling, vectorise
from strategies.matmul import (
    beside,
    columns,
    epilogue,
    grid,
    instructions,
    offsets,
    parts,
    rest,
    schedules,
    split_k,
    staging,
    sums,
    thread_tiles,
)
from strategies.matmul import tiling as tiles
from strategies.matmul.schedule import MMA_SYNC
from strategies.matmul.separate import separate_kernels

LOOPS = (strategy, core, places, operands, normal_forms, nests, tiling, vectorise, moves, search, rounded)
MATMUL = (
    rest, schedules, sums, tiles, grid, instructions, epilogue, split_k, parts, beside, columns, offsets, staging,
    thread_tiles,
)  # fmt: skip
BATCHES = (runs, threads, parts_of_batches, fragments, joined, stages)
MODULES = (*LOOPS, *MATMUL, *BATCHES)

HEADER = """\
# Strategies

Written by `python docs/generate.py`, from the signatures and docstrings in `strategies/`; each example is rewritten
when the page is made.

A strategy is a function from a program to a `Success`, with the new program and the steps that lead to it, or to a
`Failure`, with the rule that did not apply, the place and the reason. Rules are strategies. `a >> b` is `seq(a, b)`,
`a | b` is `choice(a, b)`, and `s @ top_down` is `top_down(s)`. In the equations, as in the papers on ELEVATE, `;` is
sequence, `<+` is choice, and `s`, `a`, `b` are any strategies. A strategy prints as the Python expression that makes it.
"""
MAPS = "fun(xs: 8.i32 => xs |> map(fun(x => x + 1)) |> map(fun(x => x * 2)))"
PIPE = "fun(xs: 8.i32 => xs |> map(fun(x => x + 1)) |> map(fun(x => x * 2)) |> map(fun(x => x - 3)))"
NEST = "fun(xss: 4.8.i32 => xss |> map(fun(xs => xs |> map(fun(x => x + 1)))))"
ZIPPED = "fun((xs: 8.i32, ys: 8.i32) => zip(xs |> map(fun(x => x)))(ys |> map(fun(y => y))))"
SUMS = "fun(xss: 4.8.i32 => xss |> map(fun(xs => xs |> map(fun(x => x * x)) |> reduce(+, 0))))"
VECTOR = "fun(xs: 1024.f32 => xs |> map(fun(x => x * 2)))"
MATRIX = "fun(xss: 64.1024.f32 => xss |> map(map(fun(x => x * 2))))"
GEMM = (
    "fun((A: 128.64.f16, B: 64.128.f16) => A |> map(fun(row => B |> transpose |> map(fun(col =>"
    " zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0))))))"
)
PRODUCT = (
    "fun((A: 64.64.f16, B: 64.64.f16) => A |> map(fun(row => B |> map(fun(col =>"
    " zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0))))))"
)
PRODUCT_OF_FLOATS = PRODUCT.replace("f16", "f32").replace("f32(a) * f32(b)", "a * b")
RELU = PRODUCT.replace("=> A |>", "=> A |> map(map(fun(x => max(x, 0)))) |>")
WITH_SUMS = (
    "fun((A: 64.64.f16, B: 64.64.f16) => let P = A |> map(fun(row => B |> map(fun(col =>"
    " zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0)))))"
    " in (P |> map(map(fun(x => f16(x)))), P |> map(fun(row => row |> reduce(+, 0)))))"
)
NEXT = (
    "fun((A: 64.64.f16, B: 64.64.f16, C: 32.64.f16) => A |> map(fun(row => B |> map(fun(col => f16("
    "zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0)))))) |> map(fun(row =>"
    " (row |> map(fun(x => f32(x))) |> reduce(+, 0)) |> fun(s => C |> map(fun(col =>"
    " (zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0)) * s))))))"
)
BIAS = PRODUCT.replace("B: 64.64.f16)", "B: 64.64.f16, bias: 64.f32)").replace(
    "B |> map(fun(col => zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0)))",
    "zip(B)(bias) |> map(fun((col, c) =>"
    " (zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0)) + c))",
)
RESIDUAL = (
    "fun((A: 64.64.f16, B: 64.64.f16, R: 64.64.f16) => zip(A)(R) |> map(fun((row, rs) => zip(B)(rs) |> map(fun((col, r) =>"
    " (zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0)) + f32(r))))))"
)
SUM_OF_PRODUCTS = (
    "fun((A: 64.48.f16, B: 64.48.f16, C: 64.32.f16, D: 64.32.f16) => zip(A)(C) |> map(fun((r, s) =>"
    " zip(B)(D) |> map(fun((u, v) =>"
    " (zip(r)(u) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0))"
    " + (zip(s)(v) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0)))))))"
)
BATCH = (
    "fun((As: 2.64.64.f16, B: 64.64.f16) => As |> map(fun(A => A |> map(fun(row => B |> map(fun(col =>"
    " zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0))))))))"
)
DUAL = (
    "fun((A: 64.64.f16, B: 64.64.f16, C: 64.64.f16) => A |> map(fun(row => zip(B)(C) |> map(fun((b, c) =>"
    " (zip(row)(b) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0))"
    " * (zip(row)(c) |> map(fun((x, y) => f32(x) * f32(y))) |> reduce(+, 0)))))))"
)
CHAIN = (
    "fun((A: 64.32.f16, B: 32.64.f16, C: 64.32.f16) => A |> map(fun(row => B |> transpose |> map(fun(col =>"
    " f16(zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0)))))) |> map(fun(row => C"
    " |> transpose |> map(fun(col => zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0))))))"
)
# a product with what its rows are divided by beside it, and inside of it
SQUARES = "(row |> map(fun(x => f32(x) * f32(x))) |> reduce(+, 0))"
TIMES_B = (
    "map(fun(row => B |> transpose |> map(fun(col => zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b)))"
    " |> reduce(+, 0)))))"
)
NORMS = (
    f"fun((A: 64.32.f16, B: 32.64.f16) => zip(A)(A |> {TIMES_B}) |> map(fun((row, sums) =>"
    f" sums |> map(fun(x => x * rsqrt({SQUARES} + 1))))))"
)
NORMALISED = (
    f"fun((A: 64.32.f16, B: 32.64.f16) => A |> map(fun(row => {SQUARES} |> fun(s => row |> map(fun(x =>"
    f" f16(f32(x) * rsqrt(s + 1))))))) |> {TIMES_B})"
)
BYTES = (
    "fun((A: 64.32.u8, B: 64.32.i8, z: i32) => A |> map(fun(row => B |> map(fun(col => zip(row)(col)"
    " |> map(fun((x, y) => (i32(x) - z) * i32(y))) |> reduce(+, 0))))))"
)
CENTRED = (
    "fun(xss: 50.24.i32 => xss |> map(fun(xs => let s = xs |> reduce(+, 0) in xs |> map(fun(x => x - s)))))"
)
SMALL = (
    "fun((As: 50.4.6.f16, Bs: 50.6.2.f16) => zip(As)(Bs) |> map(fun((A, B) => A |> map(fun(row => transpose(B)"
    " |> map(fun(col => zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0))))))))"
)
SHARED_OPERAND = (
    "fun((As: 50.4.6.f16, B: 6.2.f16) => As |> map(fun(A => A |> map(fun(row => transpose(B)"
    " |> map(fun(col => zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0))))))))"
)
SCALED = (
    "fun((A: 4.6.f16, B: 6.2.f16) => A |> map(fun(row => transpose(B) |> map(fun(col =>"
    " zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0)))))"
    " |> map(fun(r => r |> map(fun(x => 2 * x)))))"
)
ROW = (
    "fun((row: 6.f16, B: 6.2.f16) => transpose(B) |> map(fun(col =>"
    " zip(row)(col) |> map(fun((a, b) => f32(a) * f32(b))) |> reduce(+, 0))))"
)
TWO_BY_ONE = "mapped(matrix_in_parts((4, 2, 6), Parts(2, 1)))"
FOLD = "reduceSeq(Local)(fun(a, x => a + x), 0)"
TILES = "products >> tile_output(32, 32, in_list=True)"
WARPS = "tile_reduction(32) >> warp_tiles(16, 16) >> tensorise((16, 8, 16)) >> accumulate_fragments"
GROUPS = "tile_reduction(64) >> warp_tiles(64, 64) >> tensorise((64, 64, 16)) >> accumulate_fragments"
COPIES = "TileCopy(threads=128, vector=8, padding=8)"
ON_FRAGMENTS = f"products >> tile_output(32, 64) >> in_tile(direct_epilogue({WARPS}, (16, 16), (16, 8, 16), to_warps)) >> blocks"
BULK = "TileCopy(threads=128, vector=8, padding=0, bulk=True)"
# name of a strategy: an expression with it, and the program that it is applied to
EXAMPLES = {
    "seq": ("body(MAP_FUSION >> MAP_SEQ)", MAPS),
    "choice": ("body(TRANSPOSE_TWICE | MAP_FUSION)", MAPS),
    "strategy": ("strategy(MAP_FUSION) @ body", MAPS),
    "prints_as_call": ("prints_as_call(twice)(MAP_FUSION) @ body", PIPE),
    "id_": ("id_", MAPS),
    "fail": ("fail", MAPS),
    "try_": ("body(try_(TRANSPOSE_TWICE) >> MAP_FUSION)", MAPS),
    "repeat": ("body(repeat(MAP_FUSION))", PIPE),
    "repeat_n_times": ("body(repeat_n_times(1, MAP_FUSION))", PIPE),
    "apply_n_times": ("body(apply_n_times(1, argument, MAP_SEQ))", MAPS),
    "check": ('check(applies("map"), "a map") @ body', SUMS),
    "not_": ("not_(top_down(TRANSPOSE_TWICE)) >> top_down(MAP_FUSION)", MAPS),
    "if_then_else": ("body(if_then_else(TRANSPOSE_TWICE, fail, MAP_FUSION))", MAPS),
    "if_": ("if_(contains(TRANSPOSE_TWICE), fail)", MAPS),
    "is_equal_to": ("body(argument(is_equal_to(xs))) @ not_", MAPS),
    "contains": ("contains(MAP_FUSION) >> top_down(MAP_SEQ)", MAPS),
    "peek": ("body(peek(show) >> MAP_SEQ)", MAPS),
    "depending": ("body(depending(lambda term: MAP_FUSION))", MAPS),
    "recursive": ('recursive("last", lambda s: one(s) | MAP_SEQ)', MAPS),
    "one": ("body(one(MAP_SEQ))", MAPS),
    "all_": ("body(function(all_(MAP_IDENTITY | id_)) >> all_(try_(MAP_SEQ)))", MAPS),
    "some": ("body(some(MAP_SEQ))", MAPS),
    "top_down": ("top_down(MAP_SEQ)", MAPS),
    "bottom_up": ("bottom_up(MAP_SEQ)", MAPS),
    "all_top_down": ("all_top_down(try_(MAP_SEQ))", NEST),
    "all_bottom_up": ("all_bottom_up(try_(MAP_SEQ))", NEST),
    "normalize": ("normalize(MAP_FUSION)", PIPE),
    "everywhere": ("everywhere(MAP_SEQ)", NEST),
    "downup": ("downup(try_(MAP_FUSION), try_(MAP_SEQ))", MAPS),
    "alltd": ("alltd(MAP_IDENTITY)", ZIPPED),
    "sometd": ("sometd(MAP_SEQ)", NEST),
    "somebu": ("somebu(MAP_SEQ)", NEST),
    "position": ("position(1, MAP_SEQ)", MAPS),
    "skip": ("skip(1, MAP_SEQ)", MAPS),
    "body": ("body(MAP_FUSION)", MAPS),
    "function": ("body(function(argument(body(MAP_SEQ))))", NEST),
    "argument": ("body(argument(MAP_SEQ))", MAPS),
    "argument_of": ('body(argument_of("map", MAP_SEQ))', MAPS),
    "outermost": ('outermost(applies("map"), MAP_SEQ)', NEST),
    "innermost": ('innermost(applies("map"), MAP_SEQ)', NEST),
    "applies": ('check(applies("map"), "a map") @ body', MAPS),
    "mapped": ("body(mapped(MAP_SEQ))", NEST),
    "dep_function": (
        "in_inputs(function(dep_function(id_)))",
        "fun((f: (n: Nat) -> n.i32 -> i32, xs: 8.i32) => f(8)(xs))",
    ),
    "arguments": ("body(arguments(2, MAP_SEQ))", PIPE),
    "in_inputs": ("in_inputs(MAP_FUSION)", MAPS),
    "map_nest": ("outermost(map_nest(2), MAP_SEQ)", NEST),
    "in_function": ("in_function(MAP_FUSION)", MAPS),
    "operand": ("in_inputs(operand(MAP_SEQ))", MAPS),
    "nth_operand": ("in_inputs(nth_operand(1, MAP_SEQ))", MAPS),
    "each_operand": ("in_inputs(each_operand(try_(MAP_IDENTITY)))", ZIPPED),
    "below_shape": ("in_inputs(below_shape(MAP_SEQ))", "fun(xs: 8.i32 => xs |> map(fun(x => x + 1)) |> split(4))"),
    "benf": ("benf", "fun(xs: 8.i32 => xs |> map(fun(x => (fun(y => y + 1))(x))))"),
    "gentle_beta": ("body(gentle_beta)", "fun(x: i32 => (fun(y => y + 1))(x * 2))"),
    "dfnf": ("dfnf", "fun((f: i32 -> i32, xs: 8.i32) => xs |> map(f))"),
    "rnf": ("rnf", "fun(xs: 8.i32 => xs |> map(fun(x => abs(x * 2))))"),
    "cnf": ("cnf", PIPE),
    "expand": ("top_down(expand)", "fun((f: i32 -> i32, xs: 8.i32) => xs |> map(f))"),
    "accumulate": ("try_(top_down(accumulate))", NEST),
    "view_inlined": (
        "top_down(view_inlined)",
        "fun(xs: 8.i32 => let rows = xs |> split(4) in rows |> map(fun(r => r |> map(fun(x => x + 1)))))",
    ),
    "view_inward": ("view_inward", "fun(xs: 8.i32 => xs |> map(fun(x => x + 1)) |> split(4))"),
    "form_outward": (
        "form_outward",
        "fun(xss: 4.8.f32 => xss |> map(fun(xs => xs |> split(4) |> transpose)))",
    ),
    "fuse_once": ("in_inputs(fuse_once)", PIPE),
    "fuse_components": ("in_inputs(fuse_components)", PIPE),
    "nearest": ("in_inputs(nearest(MAP_SEQ))", "fun(xs: 8.i32 => xs |> map(fun(x => x + 1)) |> split(4))"),
    "within": ("in_inputs(within(MAP_SEQ))", NEST),
    "at_loop": ("in_inputs(at_loop(2, MAP_SEQ))", NEST),
    "at_innermost": ("in_inputs(at_innermost(MAP_SEQ))", NEST),
    "at_innermost_fold": ("in_inputs(fused >> at_innermost_fold(REDUCE_SEQ_UNROLL))", SUMS),
    "at_every_loop": ("in_inputs(at_every_loop(MAP_SEQ))", NEST),
    "interchange": ("in_inputs(interchange(1))", NEST),
    "reorder": ("in_inputs(reorder(2, 1))", NEST),
    "parallel": ("in_inputs(parallel(MAP_GLOBAL.with_sizes(d=0)))", NEST),
    "fused": ("fused", SUMS),
    "unroll": ("in_inputs(at_innermost(unroll))", NEST),
    "to_loops": ("in_inputs(fused >> to_loops)", SUMS),
    "to_threads": ("in_inputs(fused >> to_threads)", SUMS),
    "split_loop": ("in_inputs(split_loop(1, 2))", NEST),
    "block": ("in_inputs(fused >> block(2, 4))", SUMS),
    "tile_nd": ("in_inputs(tile_nd(2, 2))", NEST),
    "tile": ("in_inputs(tile(2, 4))", NEST),
    "in_elements": ("in_inputs(in_elements(1, TRANSPOSE_PAIR))", "fun(xsss: 2.4.8.i32 => xsss)"),
    "reform": ("in_inputs(reform(0, TRANSPOSE_PAIR))", NEST),
    "cancelled": ("cancelled", "fun(xss: 4.8.i32 => xss |> transpose |> transpose)"),
    "inward": ("inward", "fun(xs: 8.i32 => xs |> map(fun(x => x + 1)) |> split(4))"),
    "aligned": ("aligned", "fun(xs: 8.f32 => xs |> asVector(4))"),
    "vectors_inward": ("vectors_inward", "fun(xs: 8.f32 => xs |> map(fun(x => x * 2)) |> asVector(4))"),
    "vectorize": ("in_inputs(vectorize(4))", NEST),
    "guided": ('guided(Guide.of("map 2 > map 4 > map 2 > map 2", "tile reorder"))', NEST),
    "at": ("at((0, 0, 1, 0), MAP_SEQ)", NEST),
    "at_view": (
        "in_inputs(at_view(1, TRANSPOSE_PAIR))",
        "fun(xss: 4.8.i32 => xss |> transpose |> map(map(abs)))",
    ),
    "packed": (
        "in_inputs(packed(1, 2, MAP_SEQ))",
        "fun((xss: 4.8.i32, ys: 2.i32) => ys |> map(fun(y => xss |> transpose |> map(map(fun(x =>"
        " x * y))))))",
    ),
    "folds": ("in_inputs(folds())", SUMS),
    "tidied": ("in_inputs(tidied())", "fun(xs: 8.i32 => xs |> split(4) |> join |> map(fun(x => x + 1)))"),
    "lowered": ("in_inputs(fused >> lowered())", SUMS),
    "sums_in_blocks": ("in_inputs(sums_in_blocks(4))", "fun(xss: 4.8.i32 => xss |> map(reduce(+, 0)))"),
    "lift_fold": ("in_inputs(fused >> lift_fold())", SUMS),
    "products": ("in_inputs(products)", BIAS),
    "in_one_sum": ("in_inputs(products >> in_one_sum(64))", SUM_OF_PRODUCTS),
    "operands_in_bulk": ("in_inputs(products >> operands_in_bulk)", RELU),
    "operands_named": ("in_inputs(products >> operands_named(tile_output(32, 32)))", RELU),
    "of_matrices": ("in_inputs(of_matrices(products >> tile_output(32, 32)))", BATCH),
    "to_kernels": (
        f"to_kernels(products >> tile_output(32, 32) >> in_tile({WARPS} >> to_warps) >> blocks)",
        PRODUCT,
    ),
    "in_whole_tiles": (
        "in_inputs(in_whole_tiles(Schedule((32, 32, 32), (16, 16), (16, 8, 16)), id_,"
        " lambda result: tile_output(32, 32)))",
        PRODUCT.replace("A: 64", "A: 60"),
    ),
    "by_warps": ("to_kernels(by_warps(changed(MMA_SYNC, block=(32, 32, 32), warp=(16, 16))))", PRODUCT),
    "hopper": (
        "to_kernels(hopper(changed(HOPPER, block=(64, 64, 64), warp=(64, 64), fragment=(64, 64, 16))))",
        PRODUCT,
    ),
    "in_tile": ("in_inputs(products >> tile_output(32, 32) >> in_tile(parts(16, 16)))", PRODUCT),
    "at_folds": ("in_inputs(products >> tile_reduction(32) >> at_folds(id_))", PRODUCT),
    "at_step": ("in_inputs(products >> tile_reduction(32) >> at_step(parts(16, 16)))", PRODUCT),
    "tile_output": ("in_inputs(products >> tile_output(32, 32))", PRODUCT),
    "parts": ("in_inputs(products >> parts(16, 16))", PRODUCT),
    "fragment_tiles": ("in_inputs(products >> fragment_tiles(16, 8))", PRODUCT),
    "tile_reduction": ("in_inputs(products >> tile_reduction(32))", PRODUCT),
    "tupled": ("in_inputs(products >> tile_reduction(32) >> tupled)", DUAL),
    "raster": (f"in_inputs({TILES} >> raster(2))", PRODUCT),
    "blocks": ("in_inputs(products >> tile_output(32, 32) >> blocks)", PRODUCT),
    "cluster_for_each": (
        "in_inputs(products >> tile_output(32, 32, in_list=True) >> cluster_for_each)",
        PRODUCT,
    ),
    "clusters": (f"in_inputs({TILES} >> blocks >> clusters(2))", PRODUCT),
    "of_several_arrays": (
        f"in_inputs(mapped({TILES} >> blocks >> persistent(1)) >> of_several_arrays)",
        BATCH,
    ),
    "arrays_in_groups": (
        f"in_inputs(mapped({TILES} >> blocks >> persistent(1)) >> of_several_arrays >> arrays_in_groups(2))",
        BATCH,
    ),
    "first_and_rest": (f"in_inputs(first_and_rest(1, mapped({TILES}), mapped({TILES})))", BATCH),
    "persistent": (f"in_inputs({TILES} >> blocks >> clusters(2) >> persistent(1))", PRODUCT),
    "in_turn": (f"in_inputs({TILES} >> blocks >> in_turn(2))", PRODUCT),
    "to_level": (f"in_inputs(products >> {WARPS} >> to_level('to_warps', MAP_WARP))", PRODUCT),
    "to_warps": (f"in_inputs(products >> {WARPS} >> to_warps)", PRODUCT),
    "to_warps_in_steps": (f"in_inputs(products >> {WARPS} >> to_warps_in_steps)", PRODUCT),
    "to_warpgroups": (f"in_inputs(products >> {GROUPS} >> to_warpgroups)", PRODUCT),
    "by_itself": (f"in_inputs(products >> {GROUPS} >> by_itself)", PRODUCT),
    "warp_tiles": ("in_inputs(products >> tile_reduction(32) >> warp_tiles(16, 16))", PRODUCT),
    "tensorise": (
        "in_inputs(products >> tile_reduction(32) >> warp_tiles(16, 16) >> tensorise((16, 8, 16)))",
        PRODUCT,
    ),
    "accumulate_fragments": (f"in_inputs(products >> {WARPS})", PRODUCT),
    "load_once": (f"in_inputs(products >> {WARPS} >> load_once)", PRODUCT),
    "load_first": (f"in_inputs(products >> operands_in_bulk >> {GROUPS} >> load_first)", RELU),
    "load_each": (f"in_inputs(products >> {GROUPS} >> load_each)", PRODUCT),
    "prefetch_fragments": (f"in_inputs(products >> {WARPS} >> prefetch_fragments)", PRODUCT),
    "sliced": (
        "in_inputs(products >> sliced(32, 2, (32, 32), (16, 16, 16), load_once, to_warps))",
        PRODUCT,
    ),
    "direct_epilogue": (
        f"in_inputs(products >> direct_epilogue({WARPS}, (16, 16), (16, 8, 16), to_warps))",
        BIAS,
    ),
    "epilogue_tiles": ("in_inputs(products >> epilogue_tiles((16, 16), (16, 8, 16)))", BIAS),
    "shared_epilogue": (
        f"in_inputs(products >> shared_epilogue({WARPS} >> to_warps >> kept_shared, {COPIES}, Stored(64, True)))",
        BIAS,
    ),
    "by_reciprocals": (
        "in_inputs(by_reciprocals)",
        "fun(xss: 4.6.f32 => xss |> map(fun(r => let s = sqrt(r |> reduce(+, 0)) in r |> map(fun(x => x / s)))))",
    ),
    "in_few_instructions": (
        "in_inputs(in_few_instructions)",
        "fun(xss: 4.6.f32 => xss |> map(map(fun(x => f16(x / (1 + exp(-x)))))))",
    ),
    "powers_of_two": (
        "in_inputs(powers_of_two)",
        "fun((xs: 32.f32, m: f32) => xs |> map(fun(x => exp(x - m))))",
    ),
    "tanh_of_scores": (
        "in_inputs(tanh_of_scores)",
        "fun(xss: 4.6.f32 => xss |> map(fun(r => r |> map(fun(x => 8 * tanh(x))) |> fun(s => s"
        " |> reduce(max, -infinity) |> fun(m => s |> map(fun(x => f16(exp(x - m)))))))))",
    ),
    "operands_swapped": ("in_inputs(operands_swapped(products))", PRODUCT),
    "rows_by_threads": (f"in_inputs(products >> rows_by_threads({COPIES}, Stored(64, True)))", BIAS),
    "over_blocks": (
        "in_inputs(products >> over_blocks(2, 32, id_, of_matrices(products >> blocks), in_tiles))",
        PRODUCT,
    ),
    "rows_reduced": (f"in_inputs(rows_reduced(8, 64, {ON_FRAGMENTS}))", WITH_SUMS),
    "scales_outside": ("in_inputs(scales_outside)", NORMALISED),
    "offsets_outside": ("in_inputs(offsets_outside)", BYTES),
    "rows_inside": ("in_inputs(products >> rows_inside)", NORMS),
    "rows_apart": ("in_inputs(products >> rows_inside >> rows_apart)", NORMS),
    "reduced_rows": ("in_inputs(products >> rows_inside >> rows_apart >> reduced_rows(32, 16, 16))", NORMS),
    "stored_together": ("in_inputs(separate_kernels >> try_(GLOBAL_FIRST) >> stored_together)", NEXT),
    "at_reductions": (
        f"in_inputs(ROWS_BY_PARTS.with_sizes(w=8, n=64) >> nth_operand(0, operand(at_reductions({ON_FRAGMENTS}))))",
        WITH_SUMS,
    ),
    "over_cluster": (f"in_inputs(products >> over_cluster(2, {WARPS} >> to_warps, id_))", PRODUCT),
    "stage": (f"in_inputs(products >> {WARPS} >> stage({COPIES}, slots=2))", PRODUCT),
    "copied": (
        f"in_inputs(s.IN_SHARED['copyAsync'][0].with_sizes(p=8) >> copied({COPIES}))",
        "fun(xss: 32.64.f16 => xss)",
    ),
    "beside_in_bulk": ("in_inputs(products >> beside_in_bulk)", RESIDUAL),
    "loaded_ahead": (
        f"in_inputs(products >> beside_in_bulk >> loaded_ahead({BULK}, slots=1, consumers=1))",
        RESIDUAL,
    ),
    "promoted": (
        f"in_inputs(products >> {GROUPS} >> stage({BULK}, slots=2) >> promoted(256))",
        PRODUCT,
    ),
    "specialise": (
        f"in_inputs(products >> {GROUPS} >> stage({BULK}, slots=2) >> specialise(2, consumers=1))",
        PRODUCT,
    ),
    "several": ("in_inputs(several(16, id_))", SMALL),
    "longer": ("in_inputs(ROUND_UP.with_sizes(p=6) >> argument(longer))", SMALL),
    "as_run": ("in_inputs(as_run(MAP_NOTHING))", "fun(xss: 4.8.i32 => xss)"),
    "staged": ("in_inputs(argument(staged(32)))", SMALL),
    "each_moved": ("in_inputs(each_moved(2))", "fun(xss: 4.40.i32 => xss)"),
    "each_part": ("in_inputs(each_part(MAP_NOTHING, MAP_NOTHING))", "fun((xs: 8.i32, ys: 8.i32) => zip(xs)(ys))"),
    "moved": ("in_inputs(moved(32))", "fun(xs: 256.f16 => xs)"),
    "through_shared": ("in_inputs(through_shared(32, id_))", MATRIX),
    "staged_in_bulk": ("in_inputs(argument(staged_in_bulk()))", SMALL),
    "staged_apart": ("in_inputs(argument(staged_apart(32, ())))", SMALL),
    "in_stages": ("in_inputs(in_stages(id_))", CENTRED),
    "by_rows": ("in_inputs(by_rows(id_, False, 2, 4))", CENTRED),
    "reduced_in_parts": ("in_inputs(reduced_in_parts(4))", "fun(xs: 32.i32 => xs |> reduce(+, 0))"),
    "elements_dealt": ("in_inputs(elements_dealt(4, id_))", MATRIX),
    "stored_in_bulk": ("in_inputs(stored_in_bulk(id_))", MATRIX),
    "with_shared": ("in_inputs(with_shared(32, id_))", SHARED_OPERAND),
    "as_one_matrix": ("in_inputs(as_one_matrix(id_))", SHARED_OPERAND),
    "rows_as_batch": ("in_inputs(rows_as_batch)", PRODUCT),
    "one_map": ("in_inputs(one_map)", SCALED),
    "rows_of_matrices": ("in_inputs(rows_of_matrices(id_))", SMALL),
    "by_threads": ("in_inputs(by_threads(32, id_))", VECTOR),
    "one_row": ("in_inputs(one_row())", ROW),
    "as_parts": ("in_inputs(products >> as_parts((8, 16)))", PRODUCT_OF_FLOATS),
    "matrix_in_parts": ("in_inputs(matrix_in_parts((64, 64, 64), Parts(12, 4)))", PRODUCT_OF_FLOATS),
    "parts_of_matrices": (f"in_inputs({TWO_BY_ONE} >> parts_of_matrices(id_))", SMALL),
    "in_steps_and_rest": ("in_inputs(in_steps_and_rest(4))", f"fun(xs: 10.i32 => xs |> {FOLD})"),
    "one_part": (f"in_inputs({TWO_BY_ONE} >> parts_of_matrices(mapped(one_part(6))))", SMALL),
    "matrices_by_threads": ("in_inputs(matrices_by_threads(32, (4, 2, 6), Parts(2, 1, step=6)))", SMALL),
    "in_steps": ("in_inputs(in_steps(16))", PRODUCT_OF_FLOATS),
    "lifted": ("in_inputs(lifted(1))", SUMS.replace("reduce(+, 0)", FOLD)),
    "each_by_a_warp": ("in_inputs(each_by_a_warp(2, id_))", SMALL),
    "each_by_all": ("in_inputs(each_by_all(id_))", SMALL),
    "on_fragments_of": ("in_inputs(on_fragments_of((4, 2, 6), (16, 8), by_itself))", SCALED),
    "matrix_by_a_warp": ("in_inputs(matrix_by_a_warp((4, 2, 6)))", SCALED),
    "matrix_by_warps": ("in_inputs(matrix_by_warps((20, 8, 16), (16, 8)))", PRODUCT.replace("64.64", "20.16")),
    "default": ("default()", SUMS),
    "tensor_core": ("tensor_core(block=(64, 64, 32), warp=(32, 32), stages=0, epilogue='direct')", GEMM),
    "elementwise": ("elementwise()", VECTOR),
    "cuda_core": ("cuda_core(block=(32, 32, 8), warp=(32, 16), thread=(4, 4))", PRODUCT_OF_FLOATS),
    "columns": ("columns()", "fun(xss: 1024.64.f32 => xss |> transpose |> map(reduce(+, 0)))"),
    "reduction": ("reduction(threads=32)", "fun(xss: 64.1024.f32 => xss |> map(reduce(+, 0)))"),
    "one_pass": ("one_pass(rows=64, columns=32)", CHAIN),
    "in_parts": ("in_inputs(in_parts(2, multiple=16, s=id_))", CHAIN),
    "parts_stored": ("in_inputs(parts_stored(2, multiple=16))", CHAIN),
    "over_grid": ("in_inputs(over_grid)", SCALED),
    "batch": ("batch()", SMALL),
    "rows": (
        "rows(threads=32, vector=1)",
        "fun(xss: 64.1024.f32 => xss |> map(fun(xs => xs |> map(fun(x => x * 2)))))",
    ),
    "transposition": ("transposition()", "fun(xss: 128.64.f32 => transpose(xss))"),
    "stencil": ("stencil()", MATRIX),
    "tvm_gemm": (
        "tvm_gemm(version='blocking', x=32, y=32, k=4)",
        GEMM.replace("f16", "f32").replace("f32(a) * f32(b)", "a * b"),
    ),
    "auto": ("auto()", VECTOR),
    "tuned": ("tuned()", VECTOR),
}

# those whose programs have not the form that rules are matched in
RAW = {"gentle_beta", "dfnf", "expand", "dep_function"}
SECTIONS = {
    "Combinators": "seq choice strategy id_ fail try_ repeat repeat_n_times apply_n_times recursive prints_as_call",
    "Predicates": "check not_ if_then_else if_ is_equal_to contains peek depending applies map_nest",
    "One level": "one all_ some",
    "Traversals": (
        "top_down bottom_up all_top_down all_bottom_up normalize everywhere downup alltd sometd somebu position"
        " skip outermost innermost"
    ),
    "Places in programs": (
        "body function argument argument_of mapped arguments dep_function in_inputs in_function operand"
        " nth_operand each_operand below_shape"
    ),
    "Normal forms": (
        "benf gentle_beta expand dfnf rnf cnf view_inlined view_inward fuse_once fuse_components accumulate form_outward"
    ),
    "Loops": (
        "nearest within at_loop at_innermost at_innermost_fold at_every_loop fused inward cancelled in_elements"
        " reform interchange reorder split_loop block tile tile_nd vectors_inward vectorize aligned unroll"
        " parallel to_loops to_threads"
    ),
}
SECTIONS |= {
    "Guided search": "guided folds tidied lowered at at_view packed sums_in_blocks lift_fold",
    "Phases of products: what is around tiles": (
        "products in_one_sum operands_in_bulk operands_named of_matrices in_whole_tiles to_kernels"
    ),
    "Phases of products: tiles": "tile_output in_tile raster parts fragment_tiles epilogue_tiles",
    "Phases of products: sums": (
        "tile_reduction in_steps lifted at_folds at_step tupled warp_tiles tensorise accumulate_fragments load_once load_first"
        " load_each prefetch_fragments sliced over_blocks over_cluster in_parts parts_stored over_grid"
        " rows_reduced at_reductions stored_together scales_outside offsets_outside rows_inside rows_apart reduced_rows"
    ),
    "Phases of products: workers": (
        "operands_swapped blocks cluster_for_each clusters persistent of_several_arrays arrays_in_groups first_and_rest in_turn to_level"
        " to_warps to_warps_in_steps to_warpgroups by_itself"
    ),
    "Phases of products: memory": (
        "stage copied loaded_ahead promoted specialise direct_epilogue beside_in_bulk shared_epilogue rows_by_threads"
    ),
    "Numbers that are rounded anyway": "by_reciprocals in_few_instructions powers_of_two tanh_of_scores",
    "Schedules of products": "by_warps hopper",
    "Phases of batches": (
        "several longer staged staged_in_bulk each_part as_run moved each_moved through_shared stored_in_bulk rows_of_matrices"
        " one_map by_threads one_row as_parts matrix_in_parts parts_of_matrices in_steps_and_rest one_part matrices_by_threads"
        " each_by_a_warp each_by_all matrix_by_a_warp matrix_by_warps on_fragments_of with_shared as_one_matrix rows_as_batch"
        " staged_apart in_stages by_rows reduced_in_parts elements_dealt"
    ),
}
# what phases are made of
HELPERS = frozenset(
    "flatten in_zips in_components fuse_tiles in_tiles in_blocks if_in_list outermost_map computing in_warp"
    " by_instructions on_fragments finish_epilogue in_slices in_place forms_in_place beside_products at_parts_of_list"
    " as_folds fused_over_parts maps_in_warp in_shared".split()
)


def page() -> str:
    """The whole page. KeyError for a public strategy that has no section or no example."""
    everything = dict(public())
    parts = [HEADER]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}\n")
        parts += [entry(name, *everything.pop(name)) for name in names.split()]
    if everything:
        raise KeyError(f"no section of docs/strategies.md has {sorted(everything)}")
    parts.append(
        "## Schedules\n\n`--strategy` finds these by name, `--set` gives their parameters, and `rise strategies` lists"
        " them.\nA strategy of your own is named `module:function`.\n"
    )
    for found in registry.catalogue():
        parts.append(
            entry(found.name, signature(found.name, found.factory), inspect.getdoc(found.factory) or "")
        )
    return "\n".join(parts)


def public() -> Iterator[tuple[str, tuple[str, str]]]:
    """Public strategies, and functions that make them, each with its signature and its meaning."""
    for module in MODULES:
        source = inspect.getsource(module)
        for name, value in vars(module).items():
            if name.startswith("_") or name.isupper() or name in {"missing", "FunctionStrategy", *HELPERS}:
                continue
            if isinstance(value, strategy.FunctionStrategy) and f"\n{name}: Strategy = " in source:
                yield name, (name, comment(source, name))
            elif (
                inspect.isfunction(value) and value.__module__ == module.__name__ and makes_strategies(value)
            ):
                yield name, (signature(name, value), inspect.getdoc(value) or "")


def makes_strategies(function: Callable[..., object]) -> bool:
    return function.__annotations__.get("return") in ("Strategy", "Predicate", "Callable[P, S]")


def comment(source: str, name: str) -> str:
    """The comment before a constant."""
    before = source.split(f"\n{name}: Strategy = ", maxsplit=1)[0].split("\n")
    lines = list(takewhile(lambda line: line.startswith("# "), reversed(before)))
    return "\n".join(line[2:] for line in reversed(lines))


def signature(name: str, function: Callable[..., object]) -> str:
    """`name(parameters)`, without the type of strategies, which every parameter without a type has."""
    text = str(inspect.signature(function)).rpartition(" -> ")[0].replace("'", "").replace(": Rewrite", "")
    return f"{name}{text}"


def entry(name: str, call: str, meaning: str) -> str:
    """One strategy: its signature, its docstring, and an example."""
    expression, text = EXAMPLES[name]
    program = check_expression(text) if name in RAW else data_flow(check_expression(text))
    made = eval(expression, SCOPE)
    result = made(program)
    after = f"fails: {result.reason}" if isinstance(result, Failure) else show(result.term)
    first, *more = meaning.strip().split("\n")
    if not first:
        raise KeyError(f"`{name}` has no meaning")
    rest = "\n".join(more).strip("\n")
    details = f"\n```\n{rest}\n```\n" if rest else ""
    before = show(program).replace("\n", "\n   ")
    lines = f"{expression}\n\n   {before}\n→  " + after.replace("\n", "\n   ")
    return f"### `{call}`\n\n{first}\n{details}\n```text\n{lines}\n```\n"


def twice(s: strategy.Rewrite) -> strategy.Strategy:
    return strategy.seq(s, s)


SCOPE = {
    **vars(algorithmic), **vars(lowering), **vars(maps), **vars(movement), **vars(views), **vars(core),
    **{name: value for module in (*MATMUL, *LOOPS, *BATCHES) for name, value in vars(module).items()},
    **{found.name: found.factory for found in registry.catalogue()},
    "ROUND_UP": ROUND_UP, "separate_kernels": separate_kernels, "MMA_SYNC": MMA_SYNC,
    "changed": changed, "show": lambda term: None, "twice": twice, "xs": Identifier("xs", Array(nat(8), I32)),
}  # fmt: skip
