"""From a low-level functional program to CUDA: translation, passes, printing; each result is printable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import codegen.lower.primitives  # noqa: F401  # registers the translations
from codegen.cuda.printer import Printer
from codegen.cuda.widths import HOLDS, I64, spans
from codegen.host.program import HostProgram
from codegen.ir import imperative as i
from codegen.ir.identifiers import RESERVED, of_kernel, of_user
from codegen.ir.kernel import Kernel
from codegen.ir.launch import Launch
from codegen.ir.runtime_sizes import constraints_of, facts_of, in_units, index_type, named_for_c, open_program
from codegen.lower.resolve import resolve, several_kernels
from codegen.lower.translate import RESULT, Translator
from codegen.passes import verify
from codegen.passes.order import INDICES, STRUCTURE, Pass
from codegen.passes.overlap import outliving, overlapping
from codegen.passes.split_kernels import kernels
from rise.check.symbolic import OpenProgram, RuntimeSize
from rise.errors import RiseError, TranslationError
from rise.expr import Expr, Lambda
from rise.generator import register
from rise.nat import NatVariable, constant
from rise.types import I32, Array, Data, Dependent, Function, Scalar, Solution, substitute_type

UNNAMED = "unnamed__kernel"  # identifiers of programs have no two adjacent underscores
REMEMBERED = 4  # the number of programs whose kernels are cached


def translate(
    program: Expr, name: str, sizes: Sequence[RuntimeSize] = ()
) -> tuple[i.Function, tuple[tuple[str, Data], ...]]:
    """accT of the whole program into its output."""
    translator = Translator(set(RESERVED) | {size.number for size in sizes})
    environment: dict[str, i.Expression] = {}
    inputs: list[i.Variable] = []
    names: list[tuple[str, Data]] = []
    body = program
    while isinstance(body, Lambda):
        type_: Data = body.parameter.type  # type: ignore[assignment]
        if isinstance(type_, Function | Dependent):
            raise TranslationError("R0722", f"the input `{body.parameter.name}` is a function", body.origin)
        variable = i.Variable(translator.name(of_user(body.parameter.name), type_), type_)
        environment[body.parameter.name] = variable
        inputs.append(variable)
        names.append((body.parameter.name, type_))
        body = body.body
    if isinstance(body.type, Function | Dependent):
        raise TranslationError("R0723", f"the result is a function of type `{body.type}`", body.origin)
    result: Data = body.type
    output = i.Variable(RESULT, result if isinstance(result, Array) else Array(constant(1), result))
    target: i.Acceptor = i.AcceptVariable(RESULT, output.type)
    if not isinstance(result, Array):
        target = i.AcceptAt(constant(0), target, result)
    command = translator.accept(body, target, environment)
    numbers = [i.Variable(size.number, I32) for size in sizes]
    return i.Function(name, (output,), (*inputs, *numbers), command), tuple(names)


def generate(program: Expr | OpenProgram, name: str) -> Kernel:
    """The kernel for a low-level program; free sizes become parameters that are passed at launch.

    Raises TranslationError with the place; R0726 for a program of several kernels (see `assemble`).
    """
    made = assemble(program, name)
    if len(made.kernels) > 1:
        hint = "`assemble` makes several"
        if made.temporaries:
            origin = made.temporaries[0].origin
            raise several_kernels("a temporary result is stored in Global memory", origin, hint)
        origin = program.origin if isinstance(program, Expr) else program.program.origin
        raise TranslationError("R0726", "the program has results that need separate kernels", origin, hint)
    return made.kernels[0]


def assemble(program: Expr | OpenProgram, name: str) -> HostProgram:
    """The kernels for a low-level program, and how the host launches them.

    Raises TranslationError with the place.
    """
    try:
        made = _remembered(open_program(program) if isinstance(program, Expr) else program)
    except RiseError as error:
        error.message = error.message.replace(UNNAMED, of_kernel(name))
        raise
    return named(made, name)


def refusal(program: Expr) -> RiseError | None:
    """Why a closed program cannot be compiled, if so; programs with free sizes are not checked.

    Raises internal errors, whose codes end in 99.
    """
    given = open_program(program)
    if given.sizes:
        return None
    try:
        _remembered(given)
    except RiseError as error:
        if error.code.endswith("99"):
            raise
        error.message = error.message.replace(f"`{UNNAMED}`", "the kernel")
        return error
    return None


register(refusal)


def named(program: HostProgram, name: str) -> HostProgram:
    """The program under another name, which appears in the texts of its kernels."""
    kernels = tuple(_renamed(kernel, of_kernel(name)) for kernel in program.kernels)
    return replace(program, name=name, kernels=kernels)


def _renamed(kernel: Kernel, name: str) -> Kernel:
    def renamed(function: i.Function) -> i.Function:
        return replace(function, name=function.name.replace(UNNAMED, name))

    return replace(
        kernel,
        name=kernel.name.replace(UNNAMED, name),
        source=kernel.source.replace(UNNAMED, name),
        function=renamed(kernel.function),
        stages=tuple((label, renamed(function)) for label, function in kernel.stages),
    )


_LATEST: list[tuple[OpenProgram, HostProgram]] = []


def _remembered(program: OpenProgram) -> HostProgram:
    """The assembled program, cached: whoever checks a program often asks for its kernels next."""
    for given, made in _LATEST:
        same = given.program is program.program
        if same and (given.sizes, given.constraints) == (program.sizes, program.constraints):
            return made
    made = _assembled(program)
    _LATEST[:] = [(program, made), *_LATEST[: REMEMBERED - 1]]
    return made


def _assembled(program: OpenProgram) -> HostProgram:
    given = named_for_c(program)
    constraints = tuple(constraints_of(given))
    given = in_units(given, constraints)
    function, names = translate(given.program, UNNAMED, given.sizes)
    resolved = resolve(function, facts_of(given.sizes, constraints))
    parts = kernels(resolved)
    back = {NatVariable(size.number): size.quotient for size in given.sizes}
    inputs = tuple((n, over_sizes(t, back)) for n, t in names)
    output = over_sizes(result_of(given.program), back)
    made: list[Kernel] = []
    functions = overlapping(parts.functions)
    for part in functions:
        whole = len(parts.functions) == 1
        kernel = Kernel(
            name=part.name,
            source="",
            launch=Launch(),
            inputs=inputs if whole else tuple((v.name, over_sizes(v.type, back)) for v in part.inputs),
            output=output if whole else over_sizes(part.outputs[0].type, back),
            function=part,
            stages=(("translate", function), ("resolve", resolved)) if not made else (),
            sizes=tuple(s for s in given.sizes if s.number in {v.name for v in part.inputs}),
            constraints=constraints,
        )
        made.append(_compiled(kernel))
    numbers = {size.number for size in given.sizes}
    return HostProgram(
        UNNAMED,
        inputs,
        output,
        resolved.outputs,
        tuple(v for v in resolved.inputs if v.name not in numbers),
        tuple(made),
        outliving(parts.temporaries, functions),
        given.sizes,
        constraints,
    )


def over_sizes(type_: Data, sizes: Solution) -> Data:
    """A type in terms of the caller's sizes."""
    return substitute_type(type_, sizes)


def result_of(program: Expr) -> Data:
    while isinstance(program, Lambda):
        program = program.body
    return program.type  # type: ignore[return-value]  # `translate` has checked that


def _compiled(kernel: Kernel, indices: Scalar = I32) -> Kernel:
    """Runs the passes over a kernel and prints it, with `int` indices if they are wide enough."""
    stages = list(kernel.stages)
    if index_type(kernel.function) == I64:
        indices = I64
    function = _counting_in(indices, kernel)
    stages.append(("kernel", function))
    validator = verify.Validator()
    if verify.is_on():
        validator.check(function, "resolve", levels=False)
    function, launch = _through(STRUCTURE, function, Launch(), stages, validator)
    # the remaining passes are for readability; the recorded kernel is the one before them
    printed, _ = _through(INDICES, function, launch, stages, validator)
    if not kernel.sizes and not all(span.within(HOLDS[indices]) for span in spans(printed, launch)):
        if indices == I64:
            raise TranslationError("R0740", f"an index of `{kernel.name}` is beyond 64 bits")
        return _compiled(kernel, I64)
    printer = Printer(printed, launch, indices)
    source = printer.text()
    return replace(
        kernel,
        source=source,
        launch=launch,
        function=function,
        stages=tuple(stages),
        lines=tuple(printer.origins),
    )


def _through(
    passes: Sequence[Pass],
    function: i.Function,
    launch: Launch,
    stages: list[tuple[str, i.Function]],
    validator: verify.Validator,
) -> tuple[i.Function, Launch]:
    """Runs passes over a function and its launch, and records each result in `stages`."""
    legal = passes is INDICES
    verified: tuple[i.Command, bool] | None = None
    for each in passes:
        function, launch = each.run(function, launch)
        if not each.checks:
            stages.append((each.name, function))
        if verify.is_on():
            # before the pass `legality`, levels that do not nest are the user's mistake
            legal = legal or each.name == "legality"
            # about half of the passes find nothing to change
            if verified is None or verified[0] is not function.body or verified[1] != legal:
                validator.check(function, each.name, levels=legal)
                verified = function.body, legal
    return function, launch


def _counting_in(indices: Scalar, kernel: Kernel) -> i.Function:
    """The function with parameters for sizes that have the kernel's index type."""
    numbers = {size.number for size in kernel.sizes}
    inputs = tuple(replace(v, type=indices) if v.name in numbers else v for v in kernel.function.inputs)
    return replace(kernel.function, inputs=inputs)
