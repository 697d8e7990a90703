"""Vectors: views that group adjacent elements; the pass `vectorise` decides what is moved as one."""

from __future__ import annotations

from codegen.ir import imperative as i
from codegen.ir.data import element_type
from codegen.lower.primitives.arrays import view, write_view
from codegen.lower.translate import Call, Continuation, Translator, accepting, continuing
from codegen.lower.views import Path, Sizes, divided, flattened, reading, writing

VIEWS = ("asVector", "asVectorAligned", "asScalar", "vectorFromScalar")

continuing(*VIEWS)(view)
accepting("asVector", "asVectorAligned", "asScalar")(write_view)


@continuing("mapVec")
def each_lane(translator: Translator, call: Call, then: Continuation) -> i.Command:
    function, vector = call.arguments

    def body(value: i.Expression) -> i.Command:
        name = translator.parameter(function, "x")
        parameter = i.Variable(name, element_type(value.type))
        expr, inner = translator.apply(function, (parameter,), call.environment)
        mapped = translator.pure(expr, inner, call.origin)
        return then(i.MapExpression(name, mapped, value, call.type))

    return translator.continue_with(vector, body, call.environment)


@reading("asVector", "asVectorAligned")
def read_as_vector(sizes: Sizes, path: Path) -> tuple[int, Path]:
    """i :: l is n*i + l"""
    return 0, flattened(sizes["n"], path)


@reading("asScalar")
def read_as_scalar(sizes: Sizes, path: Path) -> tuple[int, Path]:
    """i is i/n :: i%n"""
    return 0, divided(sizes["n"], path, sizes.facts)


@reading("vectorFromScalar")
def read_repeated(_: Sizes, path: Path) -> tuple[int, Path]:
    return 0, path[1:]


@writing("asScalar")
def write_as_scalar(sizes: Sizes, path: Path, _: int) -> Path:
    return flattened(sizes["n"], path)


@writing("asVector", "asVectorAligned")
def write_as_vector(sizes: Sizes, path: Path, _: int) -> Path:
    return divided(sizes["n"], path, sizes.facts)
