"""From a low-level functional program to CUDA: a list of named passes, each result printable."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import codegen.primitives  # noqa: F401  # registers the translations
from codegen import imperative as i
from codegen.cuda import Printer
from codegen.launch import Launch, derive
from codegen.passes.allocate import place_shared, regions, shares
from codegen.passes.barriers import insert_barriers
from codegen.passes.distribute import distribute
from codegen.passes.legality import check, check_accumulators
from codegen.passes.vectorise import vectorise
from codegen.reserved import RESERVED
from codegen.resolve import resolve
from codegen.translate import Translator
from rise.errors import TranslationError
from rise.expr import Expr, Lambda
from rise.nat import Atom, Nat, NatVariable, constant
from rise.types import Array, Data, Dependent, Function


@dataclass(frozen=True)
class Kernel:
    """A printed kernel: its text, how it is launched, and what it takes and gives.

    stages: the imperative program after each pass, by name
    """

    name: str
    source: str
    launch: Launch
    inputs: tuple[tuple[str, Data], ...]
    output: Data
    function: i.Function = field(repr=False)
    stages: tuple[tuple[str, i.Function], ...] = field(default=(), repr=False)


def translate(program: Expr, name: str) -> tuple[i.Function, tuple[tuple[str, Data], ...]]:
    """accT of the whole program into its output."""
    translator = Translator(set(RESERVED))
    environment: dict[str, i.Expression] = {}
    inputs: list[i.Variable] = []
    names: list[tuple[str, Data]] = []
    body = program
    while isinstance(body, Lambda):
        type_: Data = body.parameter.type  # type: ignore[assignment]
        if isinstance(type_, Function | Dependent):
            raise TranslationError("R0722", f"the input `{body.parameter.name}` is a function", body.origin)
        variable = i.Variable(translator.name(body.parameter.name, type_), type_)
        environment[body.parameter.name] = variable
        inputs.append(variable)
        names.append((body.parameter.name, type_))
        body = body.body
    if isinstance(body.type, Function | Dependent):
        raise TranslationError("R0723", f"the result is a function of type `{body.type}`", body.origin)
    result: Data = body.type
    output = i.Variable("output", result if isinstance(result, Array) else Array(constant(1), result))
    target: i.Acceptor = i.AcceptVariable("output", output.type)
    if not isinstance(result, Array):
        target = i.AcceptAt(constant(0), target, result)
    command = translator.accept(body, target, environment)
    return i.Function(name, (output,), tuple(inputs), command), tuple(names)


def unit_loops(function: i.Function) -> i.Function:
    """Loops of one iteration are their body: the index is 0. What is never or always done is decided."""

    def go(command: i.Command) -> i.Command:
        command = i.with_inner(command, tuple(go(c) for c in i.inner(command)))
        match command:
            case i.For(index, size, body) if size == constant(1):
                zero: dict[Atom, Nat] = {NatVariable(index): constant(0)}
                return go(i.rebuild(body, Nat, lambda n: n.substitute(zero)))
            case i.When(value, bound, body) if (difference := (bound - value).value) is not None:
                return body if difference > 0 else i.Skip()
            case i.New(_, name, _, body) if not any(
                access.buffer == name for c in i.commands(body) for access in i.accesses(c)
            ):
                return body
            case _:
                return command

    return replace(function, body=go(function.body))


def generate(program: Expr, name: str) -> Kernel:
    """The kernel for a low-level program whose sizes are numbers. Raises TranslationError with the place."""
    if name in RESERVED or not name.isidentifier():
        name = f"{name}_kernel" if name.isidentifier() else "kernel"
    function, names = translate(program, name)
    stages = [("translate", function)]

    def stage(label: str, new: i.Function) -> i.Function:
        stages.append((label, new))
        return new

    function = stage("resolve", resolve(function))
    function = stage("distribute", distribute(function))
    launch = derive(function.body)
    check(function, launch)
    check_accumulators(function.body)
    function, launch = place_shared(function, launch)
    stage("place shared", function)
    function = stage("barriers", insert_barriers(function, regions(function, launch)))
    function = stage("shares", shares(function, launch))
    function = stage("unit loops", unit_loops(function))
    function = stage("vectorise", vectorise(function))
    body = program
    while isinstance(body, Lambda):
        body = body.body
    source = Printer(function, launch).text()
    return Kernel(name, source, launch, names, body.type, function, tuple(stages))  # type: ignore[arg-type]
