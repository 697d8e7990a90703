"""Definitions as operators of torch: `gemm = codegen.torch.operator(program.gemm)`, then `gemm(A, B, …)`.

An operator takes torch's tensors in place. `torch.compile` keeps it in a graph, since the type of the
definition says which shapes results have. Derivatives are definitions, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch

from codegen.compiled import Compiled, Strategy, compile
from codegen.host.parameters import Part, element_of, leaves, members, stored, together
from codegen.ir.identifiers import of_user
from rise.check.specialise import Shape, inputs_of, size_names, sizes_from_shapes, specialise, undepended
from rise.errors import LaunchError, UsageError
from rise.expr import Definition, Expr
from rise.interpret import call
from rise.normal import with_inputs
from rise.suggest import suggestion
from rise.types import Array, Data, Type, arguments

NAMESPACE = "rise"
GRADIENT = "grad"  # the input of a derivative that is the gradient of the result
BACKENDS = ("interpret", "emulate")
# types of numbers in torch's schemas
NUMBERS = {"b": "bool", "i": "SymInt", "u": "SymInt", "f": "float", "V": "float"}

Operator = Any  # of torch: a function of tensors
Derivative = Definition | Operator | None


def operator(
    definition: Definition,
    strategy: Strategy | None = None,
    *,
    name: str | None = None,
    sizes: Mapping[str, int] | None = None,
    target: str | None = None,
    backward: Mapping[str, Derivative] | None = None,
    on_cpu: str = "interpret",
) -> Operator:
    """A definition as a custom operator of torch, for tensors on a GPU or on the CPU.

    Tensors determine the sizes; for each assignment of sizes, kernels are compiled at the first call. An
    array of pairs is two tensors; several results are a flat tuple.

    strategy: lowers the definition; by default `auto`
    name:     of the operator, `namespace::name`; by default `rise::` and the definition's
    sizes:    those that no input determines
    target:   as of `codegen.compile`
    backward: by the name of an input, the definition of its gradient, or an operator of torch. It takes
              inputs of `definition`, by their names, and `grad`, the gradient of the result (`grad_0`,
              `grad_1` of several). None says that there is no gradient
    on_cpu:   `interpret` or `emulate`: what runs on tensors in memory of the host

    Raises UsageError R0008 for a name in `backward`, or an input of a derivative, that the definition does
    not have; R0013 for `on_cpu`. Calls raise LaunchError as those of `codegen.compile` do.
    """
    if on_cpu not in BACKENDS:
        raise UsageError("R0013", f"on the CPU programs run on {' or '.join(BACKENDS)}, not on `{on_cpu}`")
    program = Program(definition, strategy, dict(sizes or {}), target, on_cpu)
    qualified = name or f"{NAMESPACE}::{of_user(definition.name).strip('_')}"
    made = torch.library.custom_op(qualified, program.run, mutates_args=(), schema=program.schema)
    made.register_fake(program.fake)
    if backward is not None:
        _differentiable(made, program, _derivatives(program, backward, qualified))
    return made


@dataclass(frozen=True)
class Input:
    """A tensor, or a number, that an operator takes.

    of:      the input of the definition that it stores, or is a part of
    element: its type
    """

    name: str
    of: str
    array: bool
    element: Type

    @property
    def schema(self) -> str:
        (part,) = stored(self.name, _data(self.element))
        return f"{'Tensor' if self.array else NUMBERS[part.dtype.kind]} {self.name}"


@dataclass(frozen=True)
class Instance:
    """A definition at sizes. `results` are the tensors that store the result."""

    program: Expr
    inputs: tuple[Part, ...]
    results: tuple[Part, ...]


@dataclass
class Program:
    """A definition, and what has been compiled of it."""

    definition: Definition
    strategy: Strategy | None
    sizes: Mapping[str, int]
    target: str | None
    on_cpu: str
    _instances: dict[frozenset[tuple[str, int]], Instance] = field(default_factory=dict)
    _compiled: dict[tuple[frozenset[tuple[str, int]], str], Compiled] = field(default_factory=dict)

    @cached_property
    def types(self) -> list[tuple[str, Type]]:
        """The inputs, over the names of the sizes."""
        return inputs_of(with_inputs(undepended(self.definition.body)))

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        return tuple(found for name, type_ in self.types for found in _inputs(name, name, type_))

    @cached_property
    def schema(self) -> str:
        """In torch's notation."""
        result = arguments(undepended(self.definition.body).type)[1]
        count = len(list(_inputs("out", "out", result)))
        results = "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"
        return f"({', '.join(one.schema for one in self.inputs)}) -> {results}"

    def sizes_of(self, given: Sequence[Any]) -> dict[str, int]:
        """R0409 for tensors that do not fit together, R0405 if the sizes stay unknown."""
        shapes: dict[str, Shape] = {}
        for one, value in zip(self.inputs, given, strict=True):
            if one.array:
                shapes.setdefault(one.of, tuple(int(n) for n in value.shape))
        return sizes_from_shapes(size_names(self.definition), self.types, shapes, self.sizes)

    def at(self, sizes: Mapping[str, int]) -> Instance:
        key = frozenset(sizes.items())
        if key not in self._instances:
            program = specialise(self.definition, sizes)
            inputs = tuple(p for name, type_ in inputs_of(program) for p in stored(name, _data(type_)))
            results = tuple(stored("out", _data(arguments(program.type)[1])))
            self._instances[key] = Instance(program, inputs, results)
        return self._instances[key]

    # --- as torch calls it ------------------------------------------------------------------------------

    def fake(self, *given: Any) -> Any:
        """Results without elements, for tensors without elements. R0803, R0804 if they do not fit."""
        instance = self.at(self.sizes_of(given))
        like = _checked(instance, self.inputs, given)
        return _as_result([like.new_empty(p.shape, dtype=dtype_of(p)) for p in instance.results])

    def run(self, *given: Any) -> Any:
        """Results in new tensors. Gradients are torch's business here, not the kernels'."""
        sizes = self.sizes_of(given)
        instance = self.at(sizes)
        like = _checked(instance, self.inputs, given)
        values = [value.detach() if isinstance(value, torch.Tensor) else value for value in given]
        if like.is_cuda:
            results = self._on_gpu(sizes, instance, values, like)
        else:
            results = self._on_host(sizes, instance, values)
        return _as_result(results)

    def _on_gpu(
        self, sizes: Mapping[str, int], instance: Instance, values: Sequence[Any], like: Any
    ) -> list[Any]:
        outputs = [like.new_empty(part.shape, dtype=dtype_of(part)) for part in instance.results]
        self.compiled(sizes, "cuda").loaded(*outputs, *values)
        return outputs

    def _on_host(self, sizes: Mapping[str, int], instance: Instance, values: Sequence[Any]) -> list[Any]:
        flat = iter([as_numpy(value, part) for value, part in zip(values, instance.inputs, strict=True)])
        inputs = [together(_data(type_), flat) for _, type_ in inputs_of(instance.program)]
        if self.on_cpu == "emulate":
            result = self.compiled(sizes, "emulate")(*inputs)
        else:
            result = call(instance.program, *inputs)
        output = _data(arguments(instance.program.type)[1])
        parts = zip(leaves("out", output, result), instance.results, strict=True)
        return [as_tensor(leaf, part) for leaf, part in parts]

    def compiled(self, sizes: Mapping[str, int], backend: str) -> Compiled:
        key = frozenset(sizes.items()), backend
        if key not in self._compiled:
            target = self.target if backend == "cuda" else None
            self._compiled[key] = compile(
                self.definition, self.strategy, sizes=sizes, backend=backend, target=target
            )
        return self._compiled[key]


def _data(type_: Type) -> Data:
    """What an operator takes or returns is data; R0807 for functions."""
    if isinstance(type_, Data):
        return type_
    raise LaunchError("R0807", f"data of type {type_} cannot be passed to a kernel")


def _inputs(name: str, of: str, type_: Type) -> Iterator[Input]:
    first, second = members(type_)
    if first is not None and second is not None:
        yield from _inputs(f"{name}_0", of, first)
        yield from _inputs(f"{name}_1", of, second)
    else:
        yield Input(of_user(name).strip("_"), of, isinstance(type_, Array), element_of(type_))


def _as_result(tensors: Sequence[Any]) -> Any:
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def _checked(instance: Instance, inputs: Sequence[Input], given: Sequence[Any]) -> Any:
    """The first tensor, beside which results are allocated, if all of them fit."""
    tensors = []
    for one, part, value in zip(inputs, instance.inputs, given, strict=True):
        if not one.array:
            continue
        if value.dtype != dtype_of(part):
            found = str(value.dtype).removeprefix("torch.")
            hint = f"{one.name}.to({dtype_of(part)}) converts it"
            raise LaunchError(
                "R0803", f"`{one.name}` has elements of type {found}, not {part.dtype}", hint=hint
            )
        if tuple(value.shape) != part.shape:
            message = f"`{one.name}` has the shape {tuple(value.shape)}; the operator is for {part.shape}"
            raise LaunchError("R0804", message)
        tensors.append(value)
    if not tensors:
        raise LaunchError("R0806", "an operator of torch takes a tensor; this one takes numbers only")
    return tensors[0]


# --- tensors and NumPy's arrays ---------------------------------------------------------------------------


def dtype_of(part: Part) -> torch.dtype:
    """torch's type of elements; indices have 32 bits."""
    found: torch.dtype = getattr(torch, part.dtype.name)
    return found


def as_numpy(value: Any, part: Part) -> Any:
    """A tensor in memory of the host as an array that shares it; a number as one of the parameter's type."""
    if not isinstance(value, torch.Tensor):
        return part.dtype.type(value)
    if not value.is_contiguous():
        name, strides = part.name, value.stride()
        message = f"`{name}` is not stored row by row (C-contiguous): its strides are {strides} elements"
        raise LaunchError("R0805", message, hint="pass a contiguous copy")
    array = value.view(_same_size(part)).numpy().view(part.dtype) if part.dtype.kind == "V" else value.numpy()
    return array.astype(np.int64) if part.indices else array


def as_tensor(leaf: Any, part: Part) -> Any:
    """A result as a tensor of its own."""
    array = np.array(leaf, dtype=part.dtype, order="C")
    if part.dtype.kind == "V":
        whole = torch.from_numpy(array.view(f"i{part.dtype.itemsize}"))
        return whole.view(dtype_of(part))
    return torch.from_numpy(array)


def _same_size(part: Part) -> torch.dtype:
    """Integers in place of a type of floats that NumPy does not know."""
    return torch.int8 if part.dtype.itemsize == 1 else torch.int16


# --- derivatives ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gradient:
    """The gradient of an input.

    compute: an operator
    takes:   the inputs of the operator, by name: those of the forward one, and `grad`
    """

    compute: Operator
    takes: tuple[str, ...]


def _derivatives(
    program: Program, backward: Mapping[str, Derivative], qualified: str
) -> dict[str, Gradient | None]:
    """R0008 for names that are no inputs."""
    known = [one.name for one in program.inputs]
    results = program.schema.split("->")[1].count("Tensor")
    gradients = [GRADIENT] if results == 1 else [f"{GRADIENT}_{number}" for number in range(results)]
    found: dict[str, Gradient | None] = {}
    for name, derivative in backward.items():
        _check_name(name, known, f"`{program.definition.name}` has no input `{name}` to differentiate by")
        if derivative is None:
            found[name] = None
            continue
        compute: Any = derivative
        if isinstance(derivative, Definition):
            own = size_names(derivative)
            sizes = {size: number for size, number in program.sizes.items() if size in own}
            compute = operator(
                derivative, name=f"{qualified}_backward_{name}", sizes=sizes, target=program.target,
                on_cpu=program.on_cpu,
            )  # fmt: skip
        takes = tuple(argument.name for argument in compute._opoverload._schema.arguments)
        for taken in takes:
            message = f"the derivative by `{name}` takes `{taken}`, which is neither an input nor a gradient"
            _check_name(taken, [*known, *gradients], message)
        found[name] = Gradient(compute, takes)
    return found


def _check_name(name: str, known: Sequence[str], message: str) -> None:
    if name not in known:
        hint = suggestion(name, known) or f"there are {', '.join(f'`{one}`' for one in known)}"
        raise UsageError("R0008", message, hint=hint)


def _differentiable(made: Any, program: Program, gradients: Mapping[str, Gradient | None]) -> None:
    """Registers the backward pass: each gradient that is asked for, by its operator."""
    names = [one.name for one in program.inputs]
    arrays = {one.name for one in program.inputs if one.array}
    used = {name for found in gradients.values() if found for name in found.takes}

    def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        named = dict(zip(names, inputs, strict=True))
        missing = [n for n in arrays - gradients.keys() if named[n].requires_grad]
        if missing:
            message = f"`{missing[0]}` requires a gradient, and the operator has none for it"
            raise LaunchError("R0837", message, hint=f"backward={{'{missing[0]}': …}}, or None for none")
        ctx.tensors = [name for name in names if name in used & arrays]
        ctx.save_for_backward(*(named[name] for name in ctx.tensors))
        ctx.numbers = {name: value for name, value in named.items() if name in used - arrays}

    def backward(ctx: Any, *incoming: Any) -> tuple[Any, ...]:
        known = dict(zip(ctx.tensors, ctx.saved_tensors, strict=True)) | ctx.numbers
        for number, gradient in enumerate(incoming):
            name = GRADIENT if len(incoming) == 1 else f"{GRADIENT}_{number}"
            known[name] = gradient.contiguous()
        return tuple(
            found.compute(*(known[taken] for taken in found.takes)) if found and wanted else None
            for found, wanted in zip(map(gradients.get, names), ctx.needs_input_grad, strict=True)
        )

    made.register_autograd(backward, setup_context=keep)
