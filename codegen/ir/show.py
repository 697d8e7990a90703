"""Prints imperative programs for readers, in the style of the paper's Figure 1, not for compilers."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.ir import imperative as i
from codegen.ir.kernel import Kernel
from rise.pretty import show_argument, show_nat, show_type

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=", "eq": "==", "ne": "!=", "and": "&&", "or": "||",
}  # fmt: skip


def show_stages(kernel: Kernel) -> str:
    """The program after each pass that changed it."""
    texts: list[str] = []
    before = ""
    for name, function in kernel.stages:
        text = show_program(function)
        if text != before:
            texts.append(f"// --- {name} ---\n{text}")
        before = text
    return "\n\n".join(texts) + f"\n\n// launch: {kernel.launch}\n"


def show_program(function: i.Function) -> str:
    """Name and parameters, then the commands."""
    outputs = [f"out {v.name}: {show_type(v.type)}" for v in function.outputs]
    inputs = [f"{v.name}: {show_type(v.type)}" for v in function.inputs]
    head = f"{function.name}({', '.join(outputs + inputs)}) {{"
    return "\n".join([head, *_indented(function.body), "}"])


def show_command(command: i.Command) -> str:
    return "\n".join(_lines(command))


def _indented(command: i.Command) -> Iterator[str]:
    return (f"  {line}" for line in _lines(command))


def _block(head: str, body: i.Command) -> Iterator[str]:
    yield f"{head} {{"
    yield from _indented(body)
    yield "}"


def _lines(command: i.Command) -> Iterator[str]:
    match command:
        case i.Skip():
            return
        case i.Sequence(parts):
            for part in parts:
                yield from _lines(part)
        case i.For(index, count, body, unroll):
            for counter in command.counters:
                start, modulus = show_nat(counter.start), show_nat(counter.modulus)
                counted = f"wraps of {counter.after}" if counter.after else index
                yield f"counter({counter.name} = ({start} + {counted}) mod {modulus})"
            yield from _block(f"for({index} < {show_nat(count)}{', unroll' if unroll else ''})", body)
        case i.ParallelFor(level, dimension, index, count, body):
            one = ", ping-pong" if command.execution else ""
            head = f"parFor({level.value} {dimension}, {index} < {show_nat(count)}{one})"
            yield from _block(head, body)
        case i.New(space, name, type_, body):
            yield from _block(f"new({space}, {name}: {show_type(type_)})", body)
        case i.When(value, bound, body):
            yield from _block(f"when({show_nat(value)} < {show_nat(bound)})", body)
        case i.WarpSpecialise(setup, produce, consume):
            yield from _block("setup", setup)
            yield from _block(f"produce({command.producers})", produce)
            yield from _block(f"consume({command.consumers})", consume)
        case i.Ring(setup, body):
            yield from _block("setup", setup)
            yield from _lines(body)
        case i.Elected(body, scope):
            one = "elected" if scope is i.Scope.BLOCK else f"elected({scope.value})"
            yield from _block(one, body)
        case i.Define(name, value, body):
            yield f"let {name} = {show_nat(value)}"
            yield from _lines(body)
        case i.ForFragment(_, index, body):
            yield from _block(f"forFragment({index})", body)
        case _:
            yield cut(_statement(command))


def cut(text: str, width: int = 160) -> str:
    """The line, truncated: before paths are resolved, an expression can be pages long."""
    return text if len(text) <= width else text[: width - 1] + "…"


def _statement(command: i.Command) -> str:
    match command:
        case i.Assign(target, value):
            return f"{show_acceptor(target)} = {show_expression(value)}"
        case i.CopyAsync(target, value):
            return f"copyAsync({show_acceptor(target)}, {show_expression(value)})"
        case i.Commit():
            return "commit"
        case i.Wait(pending):
            return f"wait({pending})"
        case i.Barrier(scope):
            return f"barrier({scope.value})"
        case i.LoadFragment(_, target, tile):
            return f"loadFragment({show_acceptor(target)}, {show_expression(tile)})"
        case i.InitBarriers(barriers, count):
            return f"initBarriers({show_acceptor(barriers)}, {show_nat(count)})"
        case i.Expect(barrier, size):
            return f"expect({show_acceptor(barrier)}, {size})"
        case i.BulkCopy(target, value, barrier):
            return f"bulkCopy({show_acceptor(target)}, {show_expression(value)}, {show_acceptor(barrier)})"
        case i.LeaveUndefined(tile, barrier):
            return f"leaveUndefined({show_acceptor(tile)}, {show_acceptor(barrier)})"
        case i.Arrive(barrier, blocks):
            return f"arrive({show_acceptor(barrier)}{f', {blocks} blocks' if blocks > 1 else ''})"
        case i.PrefetchMap(name):
            return f"prefetchMap({name})"
        case i.Prefetch(value):
            return f"prefetch({show_expression(value)})"
        case i.AwaitPreviousGrid():
            return "awaitPreviousGrid"
        case i.StartNextGrid():
            return "startNextGrid"
        case i.BulkStore(target, value):
            return f"bulkStore({show_acceptor(target)}, {show_expression(value)})"
        case i.BulkCommit():
            return "bulkCommit"
        case i.BulkWait(pending):
            return f"bulkWait({pending})"
        case i.FenceAsync():
            return "fenceAsync"
        case i.WaitBarrier(barrier, parity):
            return f"waitBarrier({show_acceptor(barrier)}, {show_nat(parity)})"
        case i.WgmmaFence(fragments, pins):
            return f"{'pinRegisters' if pins else 'wgmmaFence'}({', '.join(map(show_acceptor, fragments))})"
        case i.WgmmaCommit():
            return "wgmmaCommit"
        case i.WgmmaWait(pending, fragments):
            return f"wgmmaWait({', '.join([str(pending), *map(show_acceptor, fragments)])})"
        case i.LoadMatrices(target, source, count, transposed):
            how = f"loadMatrices{'Transposed' if transposed else ''}<{count}>"
            return f"{how}({show_acceptor(target)}, {show_expression(source)})"
        case i.StoreMatrices(target, value, count, transposed):
            how = f"storeMatrices{'Transposed' if transposed else ''}<{count}>"
            return f"{how}({show_acceptor(target)}, {show_expression(value)})"
        case i.StoreFragment(_, tile, value):
            return f"storeFragment({show_acceptor(tile)}, {show_expression(value)})"
        case i.FillFragment(_, target, value):
            return f"fillFragment({show_acceptor(target)}, {show_expression(value)})"
        case i.MmaFragment(target, a, b, c):
            operands = ", ".join(show_expression(e) for e in (a, b, c))
            return f"mmaFragment({show_acceptor(target)}, {operands})"
        case i.Wgmma(target, a, b):
            return f"wgmma({show_acceptor(target)}, {show_expression(a)}, {show_expression(b)})"
        case _:
            return f"{type(command).__name__}(…)"


def show_expression(expr: i.Expression) -> str:
    match expr:
        case i.Variable(name):
            return name
        case i.Number(value):
            return str(value)
        case i.Natural(value):
            return show_nat(value)
        case i.Operator(name, operands):
            return _operation(name, [show_expression(o) for o in operands])
        case i.At(index, array):
            return f"idx({show_nat(index)}, {show_expression(array)})"
        case i.View(name, arguments, operands):
            given = [show_argument(a) for a in arguments if name in ("split", "slide", "take", "drop")]
            return f"{name}({', '.join([*given, *(show_expression(o) for o in operands)])})"
        case i.MapExpression(parameter, body, array):
            return f"map({parameter} => {show_expression(body)}, {show_expression(array)})"
        case i.GenerateExpression(parameter, body):
            return f"generate({parameter} => {show_expression(body)})"
        case i.LetExpression(parameter, value, body):
            return f"let {parameter} = {show_expression(value)} in {show_expression(body)}"
        case i.ForeignCall(name, _, operands):
            return f"{name}({', '.join(map(show_expression, operands))})"
        case i.Access() | i.Tile():
            return _place(expr)


def show_acceptor(acceptor: i.Acceptor) -> str:
    match acceptor:
        case i.AcceptVariable(name):
            return name
        case i.AcceptAt(index, array):
            return f"idxAcc({show_nat(index)}, {show_acceptor(array)})"
        case i.AcceptView(name, _, inner):
            return f"{name}Acc({show_acceptor(inner)})"
        case i.AcceptMap(parameter, _, inner):
            return f"mapAcc({parameter} => …, {show_acceptor(inner)})"
        case i.AcceptMember(parameter, _, member, inner):
            return f"map{('Fst', 'Snd')[member]}Acc({parameter} => …, {show_acceptor(inner)})"
        case i.Access() | i.Tile():
            return _place(acceptor)


def _place(access: i.Access | i.Tile) -> str:
    if isinstance(access, i.Access):
        return access.buffer + "".join(f"[{show_nat(n)}]" for n in access.indices)
    layout = "row" if access.row_major else "column"
    return f"{access.buffer} + {show_nat(access.offset)} ({layout}-major, {show_nat(access.leading)} apart)"


def _operation(name: str, operands: list[str]) -> str:
    if name in INFIX and len(operands) == 2:
        return f"({operands[0]} {INFIX[name]} {operands[1]})"
    return f"{name}({', '.join(operands)})"
