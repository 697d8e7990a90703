"""The host's part of a program: temporaries in global memory, and kernel launches.

For run-time sizes, `at` checks and lays out a program at given sizes: their constraints, whether the
kernels' index type is wide enough, the grids, and the offsets of temporaries in one allocation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from codegen.cuda.widths import C_NAMES, HOLDS, spans
from codegen.ir import imperative as i
from codegen.ir.launch import Launch, check_grid, number
from codegen.ir.runtime_sizes import LARGEST_COUNT, counts, index_type
from codegen.ir.tensor_maps import OpenTensorMap
from codegen.passes.allocate import Region, first_fit
from codegen.passes.split_kernels import Temporary
from rise.check.specialise import Shape, check_constraint, check_natural, holds, sizes_from_shapes
from rise.check.symbolic import RuntimeSize
from rise.constraint import Constraint
from rise.errors import LaunchError, UsageError
from rise.nat import Atom, Nat, NatVariable, constant, evaluate
from rise.types import Array, Data, Scalar, Vector, substitute_type

if TYPE_CHECKING:
    from codegen.ir.kernel import Kernel

Concrete = Callable[[i.Variable], i.Variable]
ALIGNMENT = 256


@dataclass(frozen=True)
class HostProgram:
    """Kernels in launch order; they refer to their arguments by name.

    inputs, output:      types as the caller sees them, over the sizes' names
    outputs, parameters: the arrays and numbers that store these
    alternatives:        programs that compute the same, of which a call runs the first that takes its sizes;
                         then `kernels` are those of all, and everything else is the last one's
    """

    name: str
    inputs: tuple[tuple[str, Data], ...]
    output: Data
    outputs: tuple[i.Variable, ...]
    parameters: tuple[i.Variable, ...]
    kernels: tuple[Kernel, ...]
    temporaries: tuple[Temporary, ...] = ()
    sizes: tuple[RuntimeSize, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    alternatives: tuple[HostProgram, ...] = ()

    @property
    def shared_bytes(self) -> int:
        """Bytes per block, the maximum over the kernels."""
        return max(kernel.launch.shared_bytes for kernel in self.kernels)

    def sizes_from(self, shapes: Mapping[str, Shape]) -> dict[str, int]:
        """The sizes that the shapes of inputs determine."""
        names = [size.name for size in self.sizes]
        return sizes_from_shapes(names, self.inputs, shapes, {})

    def at(self, given: Mapping[str, int]) -> HostCall:
        """One call at these sizes.

        Raises UsageError R0405-R0407 for sizes that are missing, unknown or not numbers, TypeMismatch if a
        constraint is violated, LaunchError R0840, R0841 for sizes that the kernels do not support.
        """
        self._check(given)
        if self.alternatives:
            return next((a for a in self.alternatives if a.takes(given)), self.alternatives[-1]).at(given)
        values = self._values(given)
        numbers = {s.number: values[s.number] for s in self.sizes}
        solution: dict[Atom, Nat] = {NatVariable(n): constant(v) for n, v in values.items()}

        def concrete(variable: i.Variable) -> i.Variable:
            return replace(variable, type=substitute_type(variable.type, solution))

        launches = tuple(_launch(kernel, values, concrete) for kernel in self.kernels)
        temporaries = [replace(t, variable=concrete(t.variable)) for t in self.temporaries]
        return HostCall(
            tuple((name, substitute_type(type_, solution)) for name, type_ in self.inputs),
            substitute_type(self.output, solution),
            tuple(map(concrete, self.outputs)),
            tuple(map(concrete, self.parameters)),
            launches,
            tuple(_placed(temporaries)),
            numbers,
        )

    def takes(self, given: Mapping[str, int]) -> bool:
        """Whether its constraints hold at these sizes, and bulk copies have arrays to copy from."""
        values = self._values(given)
        maps = (m.map for kernel in self.kernels for m in kernel.function.maps)
        if any(isinstance(each, OpenTensorMap) and each.is_empty_at(values) for each in maps):
            return False
        return all(holds(constraint, given) for constraint in self.constraints)

    def _values(self, given: Mapping[str, int]) -> dict[str, int]:
        """The sizes, and the numbers that kernels are given."""
        return {**given, **{s.number: given[s.name] // s.unit for s in self.sizes}}

    def _check(self, given: Mapping[str, int]) -> None:
        names = [size.name for size in self.sizes]
        for name, value in given.items():
            if name not in names:
                raise UsageError("R0406", f"`{self.name}` has no run-time size `{name}`")
            check_natural(name, value)
        missing = ", ".join(f"`{n}`" for n in names if n not in given)
        if missing:
            raise UsageError("R0405", f"`{self.name}` needs a number for {missing}")
        for constraint in self.constraints:
            check_constraint(self.name, constraint, given)

    def __str__(self) -> str:
        """The host's part, one line per temporary and per launch."""
        return "\n".join(_lines(self))


@dataclass(frozen=True)
class Launching:
    """A kernel at given sizes, and its launch, with numbers for the grid."""

    kernel: Kernel
    launch: Launch

    @property
    def arguments(self) -> tuple[i.Variable, ...]:
        return (*self.kernel.function.outputs, *self.kernel.function.inputs)

    @property
    def grid(self) -> tuple[int, int, int]:
        return self.launch.grid_at({})

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do: a grid without blocks cannot be launched."""
        return 0 in self.grid


@dataclass(frozen=True)
class Placed:
    """A temporary and its offset in the workspace, in bytes."""

    temporary: Temporary
    bytes: Region

    @property
    def name(self) -> str:
        return self.temporary.variable.name


@dataclass(frozen=True)
class HostCall:
    """A host program at given sizes: every type, grid and offset is known.

    numbers: the sizes as they are passed to the kernels
    """

    inputs: tuple[tuple[str, Data], ...]
    output: Data
    outputs: tuple[i.Variable, ...]
    parameters: tuple[i.Variable, ...]
    launches: tuple[Launching, ...]
    temporaries: tuple[Placed, ...]
    numbers: Mapping[str, int]

    @property
    def workspace(self) -> int:
        """Bytes of global memory for all temporaries."""
        return max((placed.bytes.end for placed in self.temporaries), default=0)

    @property
    def beside(self) -> frozenset[str]:
        """The kernels that have room on multiprocessors where blocks of the next one run."""
        return frozenset(front.kernel.name for front, one in pairwise(self.launches) if one.launch.left)


def alone(kernel: Kernel) -> HostProgram:
    """The host program that launches a single kernel."""
    function = kernel.function
    numbers = {size.number for size in kernel.sizes}
    parameters = tuple(v for v in function.inputs if v.name not in numbers)
    return HostProgram(
        kernel.name,
        kernel.inputs,
        kernel.output,
        function.outputs,
        parameters,
        (kernel,),
        (),
        kernel.sizes,
        kernel.constraints,
    )


def first_that_takes(programs: Sequence[HostProgram]) -> HostProgram:
    """One program for all sizes that any of these takes; their kernels have names of their own."""
    *before, last = programs
    kernels = tuple(kernel for program in programs for kernel in program.kernels)
    return replace(last, kernels=kernels, alternatives=tuple(programs)) if before else last


# --- at sizes -------------------------------------------------------------------------------------------


def _launch(kernel: Kernel, values: Mapping[str, int], concrete: Concrete) -> Launching:
    launch = kernel.launch.at(values)
    made = Launching(kernel, launch)
    check_grid(kernel.name, launch, _at(kernel, values))
    _check_counts(kernel, launch, values)
    function = kernel.function
    outputs, inputs = (tuple(map(concrete, vs)) for vs in (function.outputs, function.inputs))
    maps = () if made.is_empty else tuple(replace(m, map=m.map.at(values)) for m in function.maps)
    function = replace(function, outputs=outputs, inputs=inputs, maps=maps)
    return replace(made, kernel=replace(kernel, function=function))


def _check_counts(kernel: Kernel, launch: Launch, values: Mapping[str, int]) -> None:
    """Checks at launch whether the index type is wide enough, as far as compilation could not."""
    if not kernel.sizes:
        return
    indices = index_type(kernel.function)
    own = {size.number: values[size.number] for size in kernel.sizes}
    for what, size in counts(kernel.function, indices):
        # a count that depends on an enclosing loop is less than that of an array
        if (
            size.variables
            and size.variables <= own.keys()
            and (found := int(evaluate(size, values))) > LARGEST_COUNT
        ):
            raise _uncounted(kernel, indices, what.format(found), values)
    printed = kernel.stages[-1][1] if kernel.stages else kernel.function
    for span in spans(printed, launch, own):
        if not span.within(HOLDS[indices]):
            furthest = max(span.low, span.high, key=abs)
            what = f"an index is computed from numbers up to {furthest}"
            raise _uncounted(kernel, indices, what, values)


def _uncounted(kernel: Kernel, indices: Scalar, what: str, values: Mapping[str, int]) -> LaunchError:
    return LaunchError(
        "R0840",
        f"in `{kernel.name}` {what}{_at(kernel, values)}, beyond the range of {C_NAMES[indices]} indices",
        hint="compile the kernel for this size, which gives it wider indices",
    )


def _at(kernel: Kernel, values: Mapping[str, int]) -> str:
    return " at " + ", ".join(f"{s.name} = {values[s.name]}" for s in kernel.sizes) if kernel.sizes else ""


def _placed(temporaries: Sequence[Temporary]) -> Iterator[Placed]:
    """Assigns offsets; temporaries with disjoint live ranges may share memory."""
    done: list[Placed] = []
    for temporary in temporaries:
        live = Region(temporary.first, temporary.last + 1)
        others = [p for p in done if live.overlaps(Region(p.temporary.first, p.temporary.last + 1))]
        size = bytes_of(temporary.variable.type)
        taken = sorted((p.bytes.start, p.bytes.end) for p in others)
        start = first_fit(taken, size, ALIGNMENT)
        done.append(Placed(temporary, Region(start, start + size)))
    yield from done


def bytes_of(type_: Data) -> int:
    """The size of data in memory, in bytes; its sizes must be numbers."""
    total = 1
    while isinstance(type_, Array | Vector):
        total *= number(type_.size, "the size of a temporary")
        type_ = type_.element
    return total * (type_.bytes if isinstance(type_, Scalar) else 4)


# --- printing -------------------------------------------------------------------------------------------


def _lines(program: HostProgram) -> Iterator[str]:
    for position, alternative in enumerate(program.alternatives):
        yield "else:" if position else "the first of these that takes the sizes:"
        yield from (f"  {line}" for line in _lines(alternative))
    if program.alternatives:
        return
    for size in program.sizes:
        if size.unit > 1:
            yield f"{size.number} = {size.name} / {size.unit}"
    for constraint in program.constraints:
        yield f"needs {constraint}"
    for temporary in program.temporaries:
        name, type_ = temporary.variable.name, temporary.variable.type
        users = f"from kernel {temporary.first + 1} to kernel {temporary.last + 1}"
        yield f"{name} : {type_}, a temporary {users}"
    for kernel in program.kernels:
        names = ", ".join(v.name for v in (*kernel.function.outputs, *kernel.function.inputs))
        yield f"{kernel.name}({names}): {kernel.launch}"
