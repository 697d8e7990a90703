"""Programs as Python functions: `f = codegen.compile(definition, strategy, sizes={…})`, then `f(A, B)`."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from inspect import Parameter, Signature, isfunction
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from codegen.execute import available_backend, checked_inputs, poisoned, result_of, run_emulated
from codegen.host.parameters import Part, leaves, results, shapes_of, together
from codegen.host.program import HostProgram, alone, first_that_takes
from codegen.ir.kernel import Kernel
from codegen.ir.runtime_sizes import unused
from codegen.ir.tensor_maps import OpenTensorMap
from codegen.pipeline import assemble
from codegen.runtime.arrays import Family, family_of
from rise.check.specialise import specialise
from rise.check.symbolic import OpenProgram, RuntimeSize, opened, units_of_whole_rows
from rise.data import shown
from rise.depth import deep
from rise.errors import LaunchError, StrategyError, TranslationError, UsageError
from rise.expr import Definition, Expr
from rise.generator import Builds, default_strategy
from rise.normal import data_flow
from rise.notebook import code_html, folded_html
from rise.pretty import show_type
from rise.targets import check_target
from rise.user_code import place_of_function

if TYPE_CHECKING:
    from codegen.runtime import Loaded, Resources

# a rule or a strategy: its result has the `term`, or is a failure that has the `error`
Strategy = Callable[[Expr], Any]
Program = Definition | Expr | Kernel | HostProgram


@runtime_checkable
class CandidateStrategy(Protocol):
    """A strategy with several candidates, which takes the first that builds, ranked at expected sizes.

    fallback: the strategy for what no candidate takes
    """

    def first_that(self, builds: Builds) -> Strategy: ...

    def expecting(self, sizes: Sequence[RuntimeSize], expected: Mapping[str, int]) -> CandidateStrategy: ...

    @property
    def fallback(self) -> Strategy: ...


@deep
def compile(
    program: Program,
    strategy: Strategy | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
    runtime: Iterable[str] | Mapping[str, int] = (),
    backend: str | None = None,
    target: str | None = None,
    spills: str = "refuse",
    name: str | None = None,
    expected: Mapping[str, int] | None = None,
) -> Compiled:
    """A program as a Python function of its inputs.

    program:  a definition, or a program that is already low-level
    strategy: lowers it; by default `auto`, which leaves low-level programs as they are
    sizes:    of a definition, by name, in elements
    runtime:  sizes that stay symbolic, so that one kernel serves all of them; a mapping gives their divisors
    backend:  `cuda` or `emulate`; by default the GPU, if there is one
    target:   the architecture to compile for, such as `sm_90a`; by default that of the GPU. With `emulate`,
              kernels are compiled for a target only if one is given
    spills:   `refuse`, or `allow` kernels that spill registers to memory
    expected: about how large sizes are that stay symbolic, for which candidates are ranked; 2048 each if not
              given

    Raises TranslationError, StrategyError, UsageError as the stages do; CompilationError R0832 for spills.
    """
    _check_arguments(program, strategy, sizes, spills)
    chosen = backend or available_backend()
    if chosen not in ("cuda", "emulate"):
        found = f"`{chosen}`" if chosen else "neither a GPU nor a C++ compiler here"
        raise UsageError("R0013", f"programs run on the backend `cuda` or `emulate`: {found}")
    if target is not None:
        check_target(target)
    if chosen == "cuda" and target is None:
        from codegen.runtime import device_target

        target = device_target()

    units = runtime if isinstance(runtime, Mapping) else dict.fromkeys(runtime, 1)
    if closed := [size for size in expected or () if size not in units]:
        hint = f"`runtime=[{closed[0]!r}]` leaves it open"
        raise UsageError("R0005", f"`expected` names `{closed[0]}`, which does not stay open", None, hint)

    lowering = default_strategy(target) if strategy is None else strategy

    def lowered(given: OpenProgram | Expr, called: str) -> HostProgram:
        """Lowers a program; a strategy with several candidates takes the first that fits.

        Where none does, it falls back to loops, which may spill.
        """
        nonlocal spills

        def assembled(low: Expr) -> HostProgram:
            return assemble(_with_program(given, low), called)

        term, open_ = (given.program, given.sizes) if isinstance(given, OpenProgram) else (given, ())
        if not isinstance(lowering, CandidateStrategy):
            return assembled(_lowered(term, lowering))
        told = lowering.expecting(open_, expected or {})
        low = _lowered(term, told.first_that(lambda low, _: built(assembled(low), target)))
        spills = "allow" if low != data_flow(term) else spills
        return assembled(low)

    def of(program: Program) -> HostProgram:
        match program:
            case HostProgram():
                return program
            case Kernel():
                return alone(program)
            case Definition():
                called = name or program.name
                if not units:
                    return lowered(OpenProgram(specialise(program, sizes or {}), (), ()), called)
                if not isinstance(lowering, CandidateStrategy):
                    return lowered(opened(program, sizes or {}, units), called)
                left, in_loops = partial(opened, program, sizes or {}), partial(_assembled, lowering.fallback)
                return for_all_sizes(left, units, called, lowered, in_loops)
            case _:
                return lowered(program, name or "kernel")

    made = of(program)
    return Compiled(made, chosen, target, resources_of(made, target, spills) if target else ())


Lowered = Callable[[OpenProgram, str], HostProgram]


def for_all_sizes(
    left: Callable[[Mapping[str, int]], OpenProgram],
    units: Mapping[str, int],
    name: str,
    lowered: Lowered,
    in_loops: Lowered,
) -> HostProgram:
    """A program for all sizes that are multiples of the units: of several, a call runs the first that fits.

    One is for rows of matrices that start where vectors and bulk copies do, if they may not. Where arrays
    without elements have no tensor maps, one is for these.

    left:     the program with sizes open that are multiples of these
    lowered:  its kernels by a strategy, under a name
    in_loops: the same by loops, which take any size
    """
    given = left(units)
    whole = units_of_whole_rows(given)
    made = [lowered(given, name)]
    if any(whole[size.name] != size.unit for size in given.sizes):
        made.insert(0, lowered(left(whole), f"{name}_{ALIGNED}"))
    if any(isinstance(m.map, OpenTensorMap) for p in made for k in p.kernels for m in k.function.maps):
        # where loops do not take the program either, the launch says what the last one asks for
        with suppress(TranslationError):
            made.append(in_loops(given, f"{name}_{EMPTY}"))
    return replace(first_that_takes(made), name=name)


ALIGNED, EMPTY = "aligned", "empty"


def _check_arguments(program: Any, strategy: Any, sizes: Any, spills: Any) -> None:
    """Raises UsageError R0022 if an argument has the wrong type, or `spills` an unknown value."""
    if not isinstance(program, Program):
        hint = "`rise.load(file).name`, `rise.parse(text).name` and `rise.define` give definitions"
        raise UsageError("R0022", f"a definition is compiled, not {shown(program)}", None, hint)
    if strategy is not None and not callable(strategy):
        hint = "import it and call it: `from strategies.matmul.tensor_core import tensor_core`"
        raise UsageError("R0022", f"{shown(strategy)} is not a strategy", None, hint)
    if isfunction(strategy) and _needs_nothing(strategy):
        name = strategy.__name__
        raise UsageError("R0022", f"`{name}` makes strategies, and is none", None, f"call it: `{name}()`")
    if sizes is not None and not isinstance(sizes, Mapping):
        message = f"sizes are a mapping from names to numbers, not {shown(sizes)}"
        raise UsageError("R0022", message, None, '`sizes={"m": 64}` gives each a name')
    if spills not in ("refuse", "allow"):
        raise UsageError("R0022", f"spills are `refuse` or `allow`, not {shown(spills)}")


def _needs_nothing(function: Callable[..., Any]) -> bool:
    """Whether a function can be called without arguments: one of a term cannot."""
    parameters = Signature.from_callable(function).parameters.values()
    return all(p.default is not p.empty or p.kind is p.VAR_KEYWORD for p in parameters)


def _assembled(strategy: Strategy, given: OpenProgram, name: str) -> HostProgram:
    return assemble(_with_program(given, _lowered(given.program, strategy)), name)


def _with_program(given: OpenProgram | Expr, low: Expr) -> OpenProgram | Expr:
    return replace(given, program=low) if isinstance(given, OpenProgram) else low


def _lowered(program: Expr, strategy: Strategy) -> Expr:
    result = strategy(data_flow(program))
    if not hasattr(result, "term"):
        message = f"the strategy returns {shown(result)}, which is neither a Success nor a Failure"
        raise StrategyError("R0631", message, place_of_function(strategy))
    if hasattr(result, "error"):
        raise result.error(getattr(strategy, "name", "strategy"))
    lowered: Expr = result.term
    return lowered


def built(candidate: HostProgram, target: str | None) -> int:
    """The bytes of shared memory that a block of a candidate takes; compiles it, where a target is given.

    Raises CompilationError as `resources_of` does.
    """
    if target:
        resources_of(candidate, target)
    return candidate.shared_bytes


def resources_of(program: HostProgram, target: str, spills: str = "refuse") -> tuple[Resources, ...]:
    """The resources of each kernel. CompilationError from the compiler; R0832 for spills."""
    from codegen.runtime import check_spills, resources

    found = tuple(resources(k.source, target)[k.name] for k in program.kernels)
    for kernel in found:
        check_spills(kernel, spills)
    return found


class Compiled:
    """A program as a Python function: `f(A, B)`, `f(A, B, out=C, stream=s)`.

    The result is an array of the same library as the inputs: NumPy for NumPy, and likewise torch, CuPy and
    pycuda, whose arrays are neither copied nor waited for. Pairs are tuples. On a GPU, a number as a result
    is an array without dimensions, so that nothing waits for it.

    program:   its kernels, and how the host launches them
    resources: the resources of each kernel; empty if none was compiled for a GPU
    """

    def __init__(
        self, program: HostProgram, backend: str, target: str | None, resources: Sequence[Resources] = ()
    ) -> None:
        self.program, self.backend, self.target = program, backend, target
        self.resources = tuple(resources)
        self.__name__ = program.name
        self.__doc__ = "\n".join(_documentation(self))
        self.__signature__ = signature(program)
        self._results: dict[tuple[Any, ...], list[Part]] = {}

    def __call__(self, *inputs: Any, out: Any = None, stream: Any = None, **named: Any) -> Any:
        """Takes inputs in order or by name, and by name the run-time sizes that no input determines."""
        sizes: Mapping[str, int] = {}
        if named:
            inputs, sizes = self._in_order(inputs, named)
        flat = self._flat(inputs)
        like, family = next(((a, f) for a in flat if (f := family_of(a)) is not None), (None, None))
        if like is None or family is None or family.name == "NumPy":
            return self._on_host(inputs, flat, out, stream, sizes)
        if self.backend != "cuda":
            message = f"a {type(like).__qualname__} is on a GPU; this program was compiled for the emulator"
            raise LaunchError("R0834", message, hint="use `backend='cuda'`, or pass NumPy arrays")
        if out is None:
            outputs = self._new(inputs, like, family, stream, sizes)
            out = together(self.program.output, iter(outputs))
        else:
            outputs = list(leaves("out", self.program.output, out))
        self.loaded(*outputs, *flat, stream=stream, sizes=sizes or None)
        return out

    @cached_property
    def loaded(self) -> Loaded:
        """The kernels on the GPU; called with the results first."""
        from codegen.runtime import load

        return load(self.program, self.target)

    @property
    def source(self) -> str:
        """The CUDA text."""
        from codegen.host.text import cuda_text

        return cuda_text(self.program)

    def _flat(self, inputs: Sequence[Any]) -> list[Any]:
        if len(inputs) != len(self.program.inputs):
            shapes_of(self.program, inputs)  # checks their number
        if len(inputs) == len(self.program.parameters):
            return list(inputs)
        pairs = zip(self.program.inputs, inputs, strict=True)
        return [leaf for (name, type_), value in pairs for leaf in leaves(name, type_, value)]

    def _in_order(
        self, inputs: Sequence[Any], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], Mapping[str, int]]:
        """R0808 for a name that is neither an input's nor a size's, and for an input that is given twice."""
        names = [name for name, _ in self.program.inputs]
        sizes = {s.name: named.pop(s.name) for s in self.program.sizes if s.name in named}
        later = [named.pop(name) for name in names[len(inputs) :] if name in named]
        if named:
            wrong = ", ".join(f"`{name}`" for name in named)
            raise LaunchError("R0808", f"`{self.__name__}` has no further input or run-time size {wrong}")
        return (*inputs, *later), sizes

    # --- results --------------------------------------------------------------------------------------

    def _new(
        self, inputs: Sequence[Any], like: Any, family: Family, stream: Any, sizes: Mapping[str, int]
    ) -> list[Any]:
        """Allocates arrays for the result, of the family of an input."""
        from codegen.runtime.streams import as_handle

        on = None if stream is None else as_handle(stream)
        return [family.empty(like, p.shape, p.dtype, on) for p in self._parts(inputs, sizes)]

    def _parts(self, inputs: Sequence[Any], sizes: Mapping[str, int]) -> list[Part]:
        """The arrays that store the result, at the sizes of the inputs."""
        shapes = shapes_of(self.program, inputs) if self.program.sizes else {}
        key = (*shapes.items(), *sizes.items())
        if key not in self._results:
            call = self.program.at({**self.program.sizes_from(shapes), **sizes})
            self._results[key] = results(call)
        return self._results[key]

    def _on_host(
        self, inputs: Sequence[Any], flat: Sequence[Any], out: Any, stream: Any, sizes: Mapping[str, int]
    ) -> Any:
        """Runs on NumPy arrays. A result written into `out` has the kernel's type."""
        shapes = shapes_of(self.program, inputs)
        call = self.program.at({**self.program.sizes_from(shapes), **sizes})
        given = list(checked_inputs(call, inputs))
        if out is None:
            outputs = [poisoned(part) for part in results(call)]
        else:
            outputs = list(leaves("out", self.program.output, out))
            _check_out(results(call), outputs)
        if self.backend == "cuda":
            self.loaded(*outputs, *(part.value for part in given), stream=stream, sizes=sizes or None)
        else:
            run_emulated(call, outputs, given)
        return result_of(call, outputs) if out is None else out

    def __repr__(self) -> str:
        return f"<{self.__name__}{self.__signature__} for {self.target or self.backend}>"

    def _repr_html_(self) -> str:
        """Its signature, and the text of each kernel behind its launch."""
        kernels = (
            folded_html(f"{kernel.name}: {kernel.launch}", code_html(kernel.source, "cuda"))
            for kernel in self.program.kernels
        )
        return code_html(f"{self.__name__}{self.__signature__}", "text") + "".join(kernels)


def _check_out(parts: Sequence[Part], outputs: Sequence[Any]) -> None:
    """Makes the same checks as for a result on the GPU; the emulator itself checks for overlaps."""
    from codegen.runtime.arguments import check_host_result

    for part, array in zip(parts, outputs, strict=True):
        check_host_result(part, array)


FURTHER = ("out", "stream")


# --- documentation ----------------------------------------------------------------------------------


def signature(program: HostProgram) -> Signature:
    """The inputs, with their types in the syntax of the language."""
    names = _parameters([*(name for name, _ in program.inputs), *(size.name for size in program.sizes)])
    given = [
        Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=_Shown(show_type(type_)))
        for name, (_, type_) in zip(names, program.inputs, strict=False)
    ]
    sizes = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=_Shown("from the inputs"), annotation=int)
        for name in names[len(program.inputs) :]
    ]
    further = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in FURTHER]
    return Signature([*given, *further, *sizes], return_annotation=_Shown(show_type(program.output)))


class _Shown(str):
    """A text that a signature shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _parameters(names: Sequence[str]) -> list[str]:
    """Names that Python allows as parameters, without repetitions: a size may be called `assert`."""
    found: list[str] = []
    for number, name in enumerate(names, 1):
        allowed = name.isidentifier() and not keyword.iskeyword(name) and name not in (*FURTHER, *found)
        found.append(name if allowed else unused(f"argument_{number}", {*names, *found}))
    return found


def _documentation(compiled: Compiled) -> Iterator[str]:
    program = compiled.program
    yield f"{program.name}: compiled for {compiled.target or 'the emulator'}."
    yield ""
    for name, type_ in (*program.inputs, ("returns", program.output)):
        yield f"{name} : {show_type(type_)}"
    for constraint in program.constraints:
        yield f"needs {constraint}"
    yield ""
    yield from str(program).splitlines()
    yield from map(str, compiled.resources)
