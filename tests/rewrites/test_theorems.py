"""What the papers say of rules, as theorems: movement, fusion, fission, interchange, tiling."""

from __future__ import annotations

import pytest

from rewrites.algorithmic import MAP_FUSION
from rewrites.library import rules
from rewrites.result import Failure, Success
from rise.expr import alpha_equal
from rise.normal import data_flow
from rise.testing import assert_equivalent
from strategies.core import normalize, repeat, top_down
from strategies.places import mapped
from tests.rewrites.notation import body, refused, rewrites_to, the
from tests.support.programs import program, succeeded

XS = "fun(xs: 6.i32 => xs |> "
M, N, K = "4.6.i32", "2.3.4.i32", "2.3.4.5.i32"

# --- movement: `**f >> T → T >> **f` and the rest, with their sizes ---------------------------------------

MOVEMENT: tuple[tuple[str, str, str, str, dict[str, int]], ...] = (
    ("**f >> T, the same f", "map(map(neg)) |> transpose", "transpose |> map(map(neg))", M, {}),
    ("T >> **f", "transpose |> map(map(neg))", "map(map(neg)) |> transpose", M, {}),
    ("S >> **f", "split(2) |> map(map(map(neg)))", "map(map(neg)) |> split(2)", M, {}),
    ("*f >> S", "map(map(neg)) |> split(2)", "split(2) |> map(map(map(neg)))", M, {}),
    ("J >> *f", "join |> map(neg)", "map(map(neg)) |> join", M, {}),
    ("**f >> J", "map(map(neg)) |> join", "join |> map(neg)", M, {}),
    ("*f >> slide", "map(map(neg)) |> slide(2, 1)", "slide(2, 1) |> map(map(map(neg)))", M, {}),
    ("T >> S", "transpose |> split(2)", "map(split(2)) |> transpose |> map(transpose)", M, {}),
    ("T >> *S", "transpose |> map(split(2))", "split(2) |> map(transpose) |> transpose", M, {}),
    ("*S >> T", "map(split(3)) |> transpose", "transpose |> split(3) |> map(transpose)", M, {}),
    ("J >> T", "join |> transpose", "map(transpose) |> transpose |> map(join)", N, {}),
    ("T >> *J", "transpose |> map(join)", "map(transpose) |> join |> transpose", N, {}),
    ("*T >> J", "map(transpose) |> join", "transpose |> map(join) |> transpose", N, {}),
    ("*J >> T", "map(join) |> transpose", "transpose |> map(transpose) |> join", N, {}),
    ("J >> J", "join |> join", "map(join) |> join", N, {}),
    ("*J >> J", "map(join) |> join", "join |> join", N, {}),
    ("*f >> drop", "map(map(neg)) |> drop(1)", "drop(1) |> map(map(neg))", M, {}),
    ("*f >> take", "map(map(neg)) |> take(3)", "take(3) |> map(map(neg))", M, {}),
    ("take >> drop", "take(3) |> drop(1)", "drop(1) |> take(2)", M, {}),
    ("drop >> take", "drop(1) |> take(2)", "take(3) |> drop(1)", M, {}),
    ("J >> drop", "join |> drop(15)", "drop(2) |> join |> drop(3)", M, {"q": 2}),
    ("J >> take", "join |> take(15)", "take(3) |> join |> take(15)", M, {"q": 3}),
    ("slide >> take", "join |> slide(4, 2) |> take(3)", "join |> take(8) |> slide(4, 2)", M, {}),
    ("slide >> drop", "join |> slide(4, 2) |> drop(3)", "join |> drop(6) |> slide(4, 2)", M, {}),
    ("slide >> S", "join |> slide(6, 3) |> split(7)", "join |> slide(24, 21) |> map(slide(6, 3))", M, {}),
    (
        "slide >> slide",
        "join |> slide(4, 2) |> slide(5, 3)",
        "join |> slide(12, 6) |> map(slide(4, 2))",
        M,
        {},
    ),
    (
        "slideOverlap",
        "join |> slide(3, 1)",
        "join |> slide(13, 11) |> map(slide(3, 1)) |> join",
        M,
        {"w": 11},
    ),
    ("slideOverlap", "join |> slide(4, 2)", "join |> slide(4, 2) |> map(slide(4, 2)) |> join", M, {"w": 1}),
)


@pytest.mark.parametrize(("name", "before", "after", "type_", "sizes"), MOVEMENT)
@pytest.mark.parametrize("around", ["{}", "map(fun(ys => ys |> {}))"], ids=["bare", "deeper"])
def test_movement(name: str, before: str, after: str, type_: str, sizes: dict[str, int], around: str) -> None:
    outer = type_ if around == "{}" else f"2.{type_}"
    texts = [f"fun(xs: {outer} => xs |> {around.format(side)})" for side in (before, after)]
    rewrites_to(the(name, **sizes), texts[0], texts[1])


def test_every_step_of_a_window_is_right() -> None:
    """`slide >> S` is known to be wrong elsewhere where windows are more than one apart."""
    for size, step in ((1, 1), (3, 1), (3, 2), (2, 3), (4, 4)):
        text = f"fun(xs: {5 * step + size}.i32 => xs |> slide({size}, {step}) |> split(3))"
        result = succeeded(the("slide >> S")(body(program(text))))
        assert_equivalent(body(program(text)), result.term)


# --- fusion and fission -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3])
def test_maps_are_fused(count: int) -> None:
    maps = " |> ".join(["map(fun(x => 2 * x + 1))"] * count)
    fused = "x"
    for _ in range(count):
        fused = f"2 * ({fused}) + 1"
    rewrites_to(normalize(MAP_FUSION), f"{XS}{maps})", f"{XS}map(fun(x => {fused})))")


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("mapLastFission", "map(fun(x => neg(x)) >> fun(x => abs(x))) |> map(neg)"),
        ("mapFirstFission", "map(neg) |> map(fun(x => neg(abs(x))))"),
        ("mapFullFission", "map(neg) |> map(abs) |> map(neg)"),
    ],
)
def test_fission_and_fusion_are_inverse(name: str, after: str) -> None:
    text = f"{XS}map(fun(x => neg(abs(neg(x))))))"
    rewrites_to(the(name), text, f"{XS}{after})")
    start = program(text)
    apart = succeeded(top_down(the(name))(start))
    together = succeeded(normalize(MAP_FUSION)(apart.term))
    assert alpha_equal(data_flow(together.term), start)


@pytest.mark.parametrize("name", ["mapLastFission", "mapFirstFission", "mapFullFission"])
@pytest.mark.parametrize("step", ["neg(x)", "x", "x * x", "x + abs(x)"])
def test_one_step_is_not_taken_apart(name: str, step: str) -> None:
    assert refused(the(name), f"{XS}map(fun(x => {step})))") == "the function is one step"


def test_a_step_that_uses_the_element_again_stays_together() -> None:
    rewrites_to(
        the("mapLastFission"),
        "fun(xss: 3.4.i32 => xss |> map(fun(xs => zip(xs)(xs |> map(neg)) |> map(fst) |> reduce(+, 0))))",
        "fun(xss: 3.4.i32 => xss |> map(fun(xs => zip(xs)(xs |> map(neg)) |> map(fst)))"
        " |> map(fun(ys => ys |> reduce(+, 0))))",
    )


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ("acc + acc * x", "operator and operand are not separate"),
        ("x * acc + x", "the step applies no operator to the accumulator"),
        ("acc + x", "the element is not computed with"),
        ("fma(acc)(x)(x * x)", "the step applies no operator to the accumulator"),
    ],
)
def test_a_step_that_is_not_separate_is_not_taken_apart(step: str, why: str) -> None:
    text = f"fun(xs: 5.f32 => xs |> reduceSeq(Local)(fun(acc, x => {step}), 1))"
    assert refused(the("reduceMapFission"), text) == why


def test_a_shared_value_is_not_confused_with_a_parameter_of_its_name() -> None:
    rewrites_to(
        the("subexpressionElimination"),
        "fun((xs: 4.i32, c: i32) => xs |> map(fun(shared => shared * (c + 2) - (c + 2))))",
        "fun((xs: 4.i32, c: i32) => let y = c + 2 in xs |> map(fun(x => x * y - y)))",
    )


# --- rules under maps -------------------------------------------------------------------------------------


def nested(text: str, depth: int) -> str:
    for level in range(depth):
        text = f"map(fun(x{level} => x{level} |> {text}))"
    return text


@pytest.mark.parametrize("depth", range(5))
def test_a_rule_under_maps(depth: int) -> None:
    rule = the("T >> T")
    for _ in range(depth):
        rule = mapped(rule)
    type_ = "2." * depth + "3.4.i32"
    term = body(program(f"fun(xs: {type_} => xs |> {nested('transpose |> transpose', depth)})"))
    result = succeeded(rule(term))
    assert_equivalent(term, result.term)
    assert isinstance(mapped(rule)(term), Failure)


# --- loops and reductions ---------------------------------------------------------------------------------


def test_loop_interchange() -> None:
    rewrites_to(
        the("**f"),
        "fun(xs: 4.6.i32 => xs |> map(map(neg)))",
        "fun(xs: 4.6.i32 => xs |> transpose |> map(map(neg)) |> transpose)",
    )
    rewrites_to(
        the("loopInterchange"),
        "fun((xs: 4.i32, ys: 6.f32) => xs |> map(fun(x => ys |> map(fun(y => f32(x) - y)))))",
        "fun((xs: 4.i32, ys: 6.f32) => ys |> map(fun(y => xs |> map(fun(x => f32(x) - y)))) |> transpose)",
    )


def test_the_inner_two_of_three_loops_are_interchanged() -> None:
    term = body(program("fun(xs: 2.3.4.i32 => xs |> map(map(map(neg))))"))
    result = mapped(the("**f"))(term)
    wanted = body(
        program("fun(xs: 2.3.4.i32 => xs |> map(fun(x => x |> transpose |> map(map(neg)) |> transpose)))")
    )
    assert isinstance(result, Success)
    assert alpha_equal(data_flow(result.term), wanted)


def test_reductions_are_lifted_out_of_maps() -> None:
    rewrites_to(
        the("liftReduce, of reduce"),
        "fun(xs: 3.4.i32 => xs |> map(reduce(+, 0)))",
        "fun(xs: 3.4.i32 => xs |> map(fun(x => x)) |> transpose"
        " |> reduce(fun(acc, ys => zip(acc)(ys) |> map(fun((a, y) => a + y))), generate(fun(i => 0))))",
    )


@pytest.mark.parametrize(
    "text",
    [
        "fun((a: 3.4.i32, b: 4.i32) => a |> map(fun(r => zip(r)(b) |> reduceSeq(Local)("
        "fun(acc, (x, y) => acc + x * y), 0))))",
        "fun((a: 3.4.i32, b: 4.f32, c: 4.i32) => a |> map(fun(r => zip(r)(zip(b)(c)) |> reduceSeq(Local)("
        "fun(acc, (x, (y, z)) => acc - x * z + i32(y)), 7))))",
        "fun(a: 3.4.5.i32 => a |> map(fun(r => r |> reduceSeq(Local)("
        "fun(acc, row => acc + (row |> reduce(+, 0))), 0))))",
        "fun((a: 3.4.i32, s: 3.i32) => zip(a)(s) |> map(fun((r, x) => r |> reduceSeq(Local)("
        "fun(acc, y => acc * 2 + x * y), x))))",
    ],
    ids=["two zipped", "three zipped", "rows", "the outer element"],
)
def test_any_reduction_is_lifted(text: str) -> None:
    start = program(text)
    result = top_down(the("liftReduce"))(start)
    assert isinstance(result, Success), result.reason
    assert_equivalent(start, result.term)


def test_lifting_is_undone() -> None:
    text = "fun(xs: 3.4.i32 => xs |> map(fun(r => r |> reduceSeq(Local)(fun(a, y => a * 2 + y), 1))))"
    start = program(text)
    lifted = succeeded(top_down(the("liftReduce"))(start))
    unused = succeeded(repeat(top_down(the("dropUnused")))(lifted.term))
    lowered = top_down(the("reduceSeq of map, of zipped"))(unused.term)
    assert isinstance(lowered, Success), lowered.reason
    assert_equivalent(start, lowered.term)


def test_tiling_in_one_and_two_dimensions() -> None:
    rewrites_to(the("splitJoin", n=3), f"{XS}map(neg))", f"{XS}split(3) |> map(map(neg)) |> join)")
    rewrites_to(
        the("tile", bm=2, bn=3),
        "fun(xs: 4.6.i32 => xs |> map(map(neg)))",
        "fun(xs: 4.6.i32 => xs |> map(map(neg)) |> split(2)"
        " |> map(fun(rows => rows |> map(split(3)) |> transpose))"
        " |> map(transpose) |> map(map(join)) |> join)",
    )


# --- what the public implementation has, and how it is called here ---------------------------------------

# what is another rule at another place has no name of its own: `toMemBefore` is toMem at an argument
REFERENCE = """
splitJoin=splitJoin; splitJoin2=S >> J, introduced; mapFusion=mapFusion; mapFstFusion=mapFstFusion;
mapSndFusion=mapSndFusion; padEmptyFusion=padEmptyFusion; mapLastFission=mapLastFission;
mapFirstFission=mapFirstFission; mapFullFission=mapFullFission; reduceMapFusion=reduceMap;
reduceMapFission=reduceMapFission; idToCopy=copy into Local; liftId=mapNothing;
createTransposePair=T >> T, introduced; removeTransposePair=T >> T; mapIdentity=mapIdentity;
mapIdentityAfter=mapNothing; slideOverlap=slideOverlap; dropInSlide=dropInSlide; takeInSlide=takeInSlide;
slideAfter=slide >> J, introduced; slideAfter2=slide(1, 1), introduced; dropNothing=dropNothing;
takeAll=takeAll; padEmptyNothing=padEmptyNothing; zipSame=zipSame; zipSwap=zipSwap;
zipRotateLeft=zipRotateLeft; zipRotateRight=zipRotateRight; removeTakeBeforePadEmpty=take >> padEmpty;
dropBeforeJoin=J >> drop; takeBeforeJoin=J >> take; mapOutsideZip=mapOutsideZip;
mapOutsidePair=mapOutsidePair; mapOutsideMakeArray=mapOutsideMakeArray;
mapOutsideGenerateSelect=mapOutsideGenerateSelect; fOutsideSelect=fOutsideSelect;
fOutsideMakeArray=fOutsideMakeArray; unzipZipIsPair=unzip(zip); unzipZipIdentity=zip(unzip);
fBeforeZipMap=zip(*f, ) >> *g; slideOutsideZip=slideOutsideZip; slideInsideZip=zip >> slide, of rows;
transposeBeforeMapZip=*zip >> T; mapProjZipUnification=dropUnused;
subexpressionElimination=subexpressionElimination; blockedReduce=blockReduce; separateDotHV=separateDotHV;
separateDotVH=separateDotVH; separateSumHV=separateSumHV; separateSumVH=separateSumVH;
betaReduction=betaReduction; etaReduction=etaReduction; etaAbstraction=etaAbstraction;
idxReduction=idxReduction; takeZip=zip >> take; zipTake=zip of take; dropZip=zip >> drop;
takePair=(take, take); takeSelect=select >> take; dropSelect=select >> drop; slidePadEmpty=slide >> padEmpty;
mapPadEmpty=*f >> padEmpty; transposePadEmpty=T >> padEmpty; padEmptyZip=zip >> padEmpty;
slideBeforeSplit=slide >> S; slideBeforeSlide=slide >> slide; liftReduce=liftReduce;
mapSndMapFst=mapSnd >> mapFst; mapSeq=map → mapSeq; mapSeqUnroll=map → mapSeqUnroll;
mapGlobal=map → mapGlobal; mapSeqCompute=map → mapSeq, computing; vectorize=vectorize;
materializeGenerate=materialise generate in Local; toMemAfter=toMem(Local);
unroll=reduceSeq → reduceSeqUnroll;
after=asVector >> asScalar, introduced; roundUpAfter=roundUp asVector;
alignedAfter=asVector → asVectorAligned; asScalarAsVectorId=asScalar >> asVector; beforeMap=*f >> asVector;
beforeMapReduce=*reduce >> asVector; beforeMapDot=*dot >> asVector; asScalarOutsidePair=(asScalar, asScalar);
padEmptyBeforeAsScalar=asScalar >> padEmpty; padEmptyBeforeAsVector=asVector >> padEmpty
"""


def test_the_rules_of_the_public_implementation_are_there() -> None:
    pairs = [entry.strip().split("=", 1) for entry in REFERENCE.split(";")]
    assert [ours for _, ours in pairs if ours not in rules()] == []


# a projection of a pair is simplified away by the normal form: no rule is needed
def test_projections_are_normal_forms() -> None:
    assert alpha_equal(program("fun((x: i32, y: f32) => fst((x, y)))"), program("fun((x: i32, y: f32) => x)"))
    assert alpha_equal(program("fun((x: i32, y: f32) => snd((x, y)))"), program("fun((x: i32, y: f32) => y)"))
