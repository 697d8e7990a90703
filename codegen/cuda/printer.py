"""Prints an imperative program as CUDA C++, one statement per line, without changing it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod

from codegen.cuda.scalars import base, literal, operation
from codegen.cuda.wgmma import Wgmma, print_wgmma
from codegen.cuda.widths import INT, Ranges, at_launch, comparison, inside, interval, widened
from codegen.ir import imperative as i
from codegen.ir.buffers import BARRIERS, dimensions, distributed, flatten, inner_element, swizzle
from codegen.ir.fragments import distribution, family_of, known_shape, registers_of
from codegen.ir.identifiers import of_function, shown
from codegen.ir.launch import THREAD, WARP, WARPGROUP, Launch, number, register_budget
from codegen.ir.sizes import spelled, tree
from codegen.lower.resolve import several_kernels
from codegen.passes.analysis.walk import facts_of_workers
from codegen.passes.workers import worker
from rise.errors import TranslationError
from rise.instructions import Family
from rise.nat import Nat, NatVariable, constant, nat, quotient, simplify, variable
from rise.source import Origin
from rise.types import I32, Array, Data, Fragment, FragmentKind, Index, Layout, Scalar, Space, Vector

KINDS = {
    FragmentKind.A: "matrix_a",
    FragmentKind.B: "matrix_b",
    FragmentKind.ACCUMULATOR: "accumulator",
}
# scopes smaller than a block: their threads, and their barriers; barrier 0 belongs to the block
WORKERS = {i.Scope.WARPGROUP: WARPGROUP, i.Scope.WARP: WARP}
BARRIER = {
    i.Scope.CLUSTER: "cluster_sync();",
    i.Scope.BLOCK: "__syncthreads();",
    i.Scope.WARPGROUP: f"named_barrier(threadIdx.x / {WARPGROUP} + 1, {WARPGROUP});",
    i.Scope.WARP: "__syncwarp();",
}
CONSUMERS = 15  # the named barrier of all consumer warpgroups
# the limit for a thread-private array in bytes: for all threads of a GPU, it amounts to some gigabytes
LOCAL_LIMIT = 16 * 1024


@dataclass
class Printer:
    """Prints one kernel, whose indices have type `indices`. `layouts` are those of operand tiles."""

    function: i.Function
    launch: Launch
    indices: Scalar = I32
    lines: list[str] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    origin: Origin = None
    types: dict[str, Data] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=dict)
    layouts: dict[str, bool] = field(default_factory=dict)
    swizzled: set[str] = field(default_factory=set)
    distributed: frozenset[str] = frozenset()
    ranks: set[Nat] = field(default_factory=set)
    patterns: dict[str, int] = field(default_factory=dict)
    depth: int = 0
    loading: bool = False
    unrolled: tuple[str, ...] = ()
    instructions: list[Wgmma] = field(default_factory=list)

    def text(self) -> str:
        self.types = {v.name: v.type for v in (*self.function.outputs, *self.function.inputs)}
        self.ranges = at_launch(self.function, self.launch)
        for command in i.commands(self.function.body):
            if isinstance(command, i.New):
                scalar = command.space is Space.SHARED and not isinstance(command.type, Array)
                self.types[command.name] = Array(constant(1), command.type) if scalar else command.type
            if isinstance(command, i.LoadFragment):
                self._layout(command)
        self.distributed = distributed(self.function.body)
        hopper = bool(self.function.maps or self.distributed) or any(
            isinstance(c, i.WaitBarrier | i.WgmmaFence | i.FenceAsync) for c in i.commands(self.function.body)
        )
        grids = i.AwaitPreviousGrid | i.StartNextGrid
        follows = any(isinstance(c, grids) for c in i.commands(self.function.body))
        self.line(f'#include "{"hopper" if hopper or follows else "rise"}.cuh"')
        includes = len(self.lines)
        self.line("")
        self._foreign()
        # the compiler takes one bound, and that on registers is the tighter one
        threads = f"__launch_bounds__({self.launch.threads}{f', {self.launch.resident}' if hopper else ''})"
        bound = f"__maxnreg__({self.launch.registers})" if self.launch.left else threads
        self.line(f'extern "C" __global__ void {self._clusters()}{bound}')
        self.line(f"{self.function.name}({', '.join(self._parameters())}) {{")
        self.block(self.function.body)
        self.line("}")
        if self.instructions:
            printed = print_wgmma(self.instructions).splitlines()
            self.lines[includes:includes] = ["", *printed]
            self.origins[includes:includes] = [None] * (len(printed) + 1)
        return "\n".join(self.lines) + "\n"

    @property
    def _rank(self) -> Nat:
        """The number of the block in its cluster."""
        return simplify(worker(i.Level.BLOCK, 0, self.launch), facts_of_workers(self.launch))

    def _clusters(self) -> str:
        return f"__cluster_dims__({self.launch.cluster}, 1, 1) " if self.launch.cluster > 1 else ""

    def _foreign(self) -> None:
        """Prints the C functions whose text the program gives, once each."""
        found: dict[tuple[str, tuple[str, ...]], i.ForeignCall] = {}

        def see(foreign: i.ForeignCall) -> i.ForeignCall:
            found[foreign.name, tuple(str(o.type) for o in foreign.operands)] = foreign
            for operand in foreign.operands:
                i.rebuild(operand, i.ForeignCall, see)
            return foreign

        i.rebuild(self.function.body, i.ForeignCall, see)
        for foreign in found.values():
            if foreign.text:
                types = [base(o.type) for o in foreign.operands]
                given = ", ".join(f"{type_} x{n}" for n, type_ in enumerate(types, 1))
                head = f"{base(foreign.type)} {of_function(foreign.name)}({given})"
                self.line(f"__device__ {head} {{ {foreign.text} }}")
                self.line("")

    def _layout(self, load: i.LoadFragment) -> None:
        """An operand's layout is part of its type; an accumulator's is an argument of each load."""
        target, tile = load.target, load.tile
        if load.fragment.kind is FragmentKind.ACCUMULATOR:
            return
        if not isinstance(target, i.Access) or not isinstance(tile, i.Tile):
            return
        if self.layouts.setdefault(target.buffer, tile.row_major) != tile.row_major:
            message = f"`{shown(target.buffer)}` is loaded from tiles of both layouts"
            raise TranslationError("R0721", message, load.origin)

    # --- lines ----------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text if text else "")
        self.origins.append(self.origin)

    def block(self, command: i.Command, *first: str) -> None:
        self.depth += 1
        for text in first:
            self.line(text)
        self.command(command)
        self.depth -= 1

    def _parameters(self) -> list[str]:
        outputs = [f"Global<{base(v.type)}> {v.name}" for v in self.function.outputs]
        ready = self.function.ready
        inputs = [
            f"{'Awaited' if ready and v.name not in ready else 'Global'}<const {base(v.type)}> {v.name}"
            if isinstance(v.type, Array | Vector)
            else f"{base(v.type)} {v.name}"
            for v in self.function.inputs
        ]
        maps = [f"const __grid_constant__ TensorMap {m.name}" for m in self.function.maps]
        return outputs + inputs + maps

    @property
    def index_type(self) -> str:
        return base(self.indices)

    def nat(self, value: Nat) -> str:
        """A size or an index, computed in a type wide enough for it."""
        return spelled(widened(value, self.ranges, self.indices))

    def narrow(self, value: Nat) -> str:
        """The same for 32-bit operands of instructions: the corner of a box, a leading dimension."""
        if self.indices != I32 and not interval(tree(value), self.ranges).within(INT):
            raise TranslationError(
                "R0742", f"{value} may be beyond 2^31, and instructions on tiles take 32 bits", self.origin
            )
        return self.nat(value)

    @contextmanager
    def inside(self, command: i.Command) -> Iterator[None]:
        """The context in which the body of a command is printed."""
        around, self.ranges = self.ranges, inside(command, self.ranges)
        yield
        self.ranges = around

    def _defined(self, value: Nat) -> str:
        """The number of a warpgroup is warp-uniform, which nvcc cannot see, so it is broadcast explicitly."""
        of_warpgroup = value == quotient(variable(THREAD), WARPGROUP)
        return f"uniform({self.nat(value)})" if of_warpgroup else self.nat(value)

    def _declared(self, new: i.New, value: i.Expression | None) -> str:
        """The C type of a scalar; if it serves as an index, the type of indices."""
        is_index = isinstance(new.type, Index) or (new.type == I32 and _is_index(value))
        return self.index_type if is_index else base(new.type)

    # --- commands -------------------------------------------------------------------------------------

    def command(self, command: i.Command) -> None:
        around = self.origin
        self.origin = getattr(command, "origin", None) or around
        self._command(command)
        self.origin = around

    def _command(self, command: i.Command) -> None:
        match command:
            case i.Skip():
                return
            case i.Sequence(parts):
                for part in parts:
                    self.command(part)
            case i.Assign(target, i.Access(_, _, Vector()) as value):
                self._copy("copy_vector", target, value)
            case i.CopyAsync(target, i.Access() as value):
                self._copy("copy_async", target, value)
            case i.CopyAsync(target, i.Operator("select", (inside, i.Access() as value, _))):
                self._copy("copy_async_or_zero", target, value, f", {self.expression(inside)}")
            case i.CopyAsync():
                raise TranslationError("R0799", "internal: the source of an asynchronous copy is computed")
            case i.Assign(target, value):
                self.line(f"{self.expression(_read(target))} = {self.expression(value)};")
            case i.Commit():
                self.line("commit_copies();")
            case i.Wait(pending):
                self.line(f"wait_copies<{pending}>();")
            case i.When(value, bound, body):
                compared = spelled(comparison(value, bound, self.ranges, self.indices))
                self.line(f"if ({compared}) {{")
                with self.inside(command):
                    self.block(body)
                self.line("}")
            case i.Define(name, value, body):
                self.line(f"const {self.index_type} {name} = {self._defined(value)};")
                if self.distributed and value == self._rank:
                    self.ranks.add(variable(name))
                with self.inside(command):
                    self.command(body)
            case i.For():
                self._for(command)
            case i.ParallelFor():
                self._parallel(command)
            case i.New():
                with self.inside(command):
                    self._new(command)
            case i.Barrier(scope):
                self.line(self._barrier(scope))
            case i.WarpSpecialise():
                self._roles(command)
            case i.Elected(body, scope, thread):
                number_ = THREAD if scope is i.Scope.BLOCK else f"{THREAD} % {WORKERS[scope]}"
                self.line(f"if ({number_} == {thread}) {{")
                self.block(body)
                self.line("}")
            case i.BulkStore(i.Tile() as target, i.Tile() as tile, "", (start,)):
                self.line(f"bulk_store_run({target.buffer}, {self._run(tile, start, target.buffer)});")
            case i.BulkStore(_, i.Tile() as tile, name, corner):
                places = ", ".join([name, self._pointer(tile), *map(self.narrow, corner)])
                self.line(f"bulk_store({places});")
            case i.BulkCommit():
                self.line("bulk_commit();")
            case i.BulkWait(pending):
                self.line(f"bulk_wait_read<{pending}>();")
            case i.FenceAsync():
                self.line("fence_async_shared();")
            case i.InitBarriers(barriers, count, arrivals):
                self.line(f"for (int s = 0; s < {self.nat(count)}; s += 1)")
                self.line(f"  barrier_init({self._pointer_to(barriers)} + s, {arrivals});")
                self.line("fence_barrier_init();")
            case i.PrefetchMap(name):
                self.line(f"prefetch_map({name});")
            case i.Prefetch(value):
                self.line(f"prefetch_line(&{self.expression(value)});")
            case i.AwaitPreviousGrid():
                self.line("await_previous_grid();")
            case i.StartNextGrid():
                self.line("start_next_grid();")
            case i.Arrive(barrier, blocks):
                self._arrive(self._pointer_to(barrier), blocks)
            case i.Expect(barrier, size):
                self.line(f"barrier_expect({self._pointer_to(barrier)}, {size});")
            case i.BulkCopy(i.Tile() as target, i.Access() as source, barrier, "", (start,)):
                run = self._run(target, start, source.buffer)
                self.line(f"bulk_load_run({source.buffer}, {run}, {self._pointer_to(barrier)});")
            case i.BulkCopy(i.Tile() as target, _, barrier, name, corner, blocks):
                mask = [str(2**blocks - 1)] if blocks > 1 else []
                places = ", ".join([name, self._pointer_to(barrier), *mask, *map(self.narrow, corner)])
                how = "bulk_load_multicast" if blocks > 1 else "bulk_load"
                self.line(f"{how}({self._pointer(target)}, {places});")
            case i.LeaveUndefined(i.Tile() as tile, barrier):
                places = f"{self._pointer(tile)}, {self._pointer_to(barrier)}"
                elements = prod((extent for _, extent in tile.extents), start=constant(1))
                self.line(f"leave_undefined({places}, {self.nat(elements)});")
            case i.WaitBarrier(barrier, parity):
                self.line(f"barrier_wait({self._pointer_to(barrier)}, {self.nat(parity)});")
            case i.WgmmaFence(fragments, pins):
                self.line(f"{'pin_registers' if pins else 'wgmma_fence'}({self._registers(fragments)});")
            case i.WgmmaCommit():
                self.line("wgmma_commit();")
            case i.WgmmaWait(pending, fragments):
                self.line(f"wgmma_wait<{pending}>({self._registers(fragments)});")
            case i.Wgmma():
                self.line(self._wgmma(command))
            case i.LoadMatrices(target, source, count, transposed):
                how = "load_matrices_transposed" if transposed else "load_matrices"
                places = f"&{self.expression(_read(target))}, &{self.expression(source)}"
                self.line(f"{how}<{count}>({places});")
            case i.StoreMatrices(target, value, count, transposed):
                how = "store_matrices_transposed" if transposed else "store_matrices"
                places = f"&{self.expression(_read(target))}, &{self.expression(value)}"
                self.line(f"{how}<{count}>({places});")
            case i.LoadFragment(fragment, target, tile):
                layout = "" if fragment.kind is not FragmentKind.ACCUMULATOR else f", {_memory_layout(tile)}"
                self.line(
                    f"wmma::load_matrix_sync({self.expression(_read(target))}, {self._tile(tile)}{layout});"
                )
            case i.StoreFragment(_, tile, value):
                stored = f"{self._pointer(tile)}, {self.expression(value)}, {self.narrow(tile.leading)}"  # type: ignore[arg-type, union-attr]
                self.line(f"wmma::store_matrix_sync({stored}, {_memory_layout(tile)});")
            case i.FillFragment(fragment, target, value):
                filled = f"{self.expression(_read(target))}, {self.expression(value)}"
                self.line(f"{_library(fragment)}::fill_fragment({filled});")
            case i.MmaFragment(target, a, b, c):
                operands = ", ".join(self.expression(_read(x)) for x in (target, a, b, c))
                self.line(f"{self._library_of(target)}::mma_sync({operands});")
            case i.ForFragment():
                with self.inside(command):
                    self._elements(command)

    def _barrier(self, scope: i.Scope) -> str:
        if scope is i.Scope.CONSUMERS:
            return f"named_barrier({CONSUMERS}, {WARP * self.launch.warps});"
        return BARRIER[scope]

    def _roles(self, roles: i.WarpSpecialise) -> None:
        """The producers' surplus registers go to the consumers (setmaxnreg)."""
        self.command(roles.setup)
        low, high = register_budget(self.launch)
        self.line(f"if (threadIdx.x >= {WARPGROUP * roles.consumers}) {{  // {roles.producers} load")
        self.loading = True
        self.block(roles.produce, f"registers_decrease<{low}>();")
        self.loading = False
        self.line(f"}} else {{  // {roles.consumers} compute")
        self.block(roles.consume, f"registers_increase<{high}>();")
        self.line("}")

    def _arrive(self, barrier: str, blocks: int) -> None:
        if blocks == 1:
            self.line(f"if (threadIdx.x % {WARPGROUP} == 0) barrier_arrive({barrier});")
        else:
            member = f"threadIdx.x % {WARPGROUP}"
            self.line(f"if ({member} < {blocks}) barrier_arrive_remote({barrier}, {member});")

    def _copy(self, how: str, target: i.Acceptor, value: i.Access, last: str = "") -> None:
        width = number(value.type.size, "the width of a vector") if isinstance(value.type, Vector) else 1
        places = f"&{self.expression(_read(target))}, &{self.expression(value)}"
        self.line(f"{how}<{width}>({places}{last});")

    def _for(self, loop: i.For) -> None:
        for counter in loop.counters:
            self.line(f"{self.index_type} {counter.name} = {self.nat(counter.start)};")
        if loop.unroll:
            self.line("#pragma unroll")
        elif self.loading or (self.launch.resident > 1 and loop.role is i.Role.REDUCTION):
            # unrolled, copies need more indices than producers have registers, and sums more than there are
            self.line("#pragma unroll 1")
        name, count = loop.index, self.nat(loop.count)
        self.line(f"for ({self.index_type} {name} = 0; {name} < {count}; {name} += 1) {{  // {loop.label}")
        outside = self.unrolled
        self.unrolled = (*outside, name) if loop.unroll else outside
        with self.inside(loop):
            self.block(loop.body)
        self.unrolled = outside
        self.depth += 1
        for counter in loop.counters:
            counted, last = counter.name, self.nat(counter.modulus - 1)
            condition = f"if ({counter.after} == 0) " if counter.after else ""
            self.line(f"{condition}{counted} = {counted} == {last} ? 0 : {counted} + 1;")
        self.depth -= 1
        self.line("}")

    def _parallel(self, loop: i.ParallelFor) -> None:
        """A cyclic distribution over workers; without a loop if there is a worker per iteration."""
        first = self.nat(worker(loop.level, loop.dimension, self.launch))
        workers = self.nat(nat(self.launch.workers(loop.level, loop.dimension)))
        count, name = self.nat(loop.count), loop.index
        self.line(f"for ({self.index_type} {name} = {first}; {name} < {count}; {name} += {workers}) {{")
        with self.inside(loop):
            self.block(loop.body)
        self.line("}")

    def _new(self, new: i.New) -> None:
        element = inner_element(new.type)
        sizes = [number(size, "the size of a buffer", new.origin) for size in dimensions(new.type)]
        if isinstance(element, Fragment):
            fragment = self._fragment(new.name, element, new.layout)
            self.line(f"{f'Local<{fragment}, {prod(sizes)}>' if sizes else fragment} {new.name};")
        elif new.space.in_shared_memory:
            offset = self.nat(new.offset) if new.offset is not None else "0"
            element_type, shared, memory = base(new.type), "Shared", "shared_memory"
            self.patterns[new.name] = swizzle(new.layout)
            if new.layout == BARRIERS:
                element_type = "Barrier"
            elif new.layout.name == "swizzled" and not self._of_warpgroups(new.name):
                shared, memory = "Swizzled", "swizzled_memory"
                self.swizzled.add(new.name)
                element_type += f", {new.layout.amount}"
            self.line(f"{shared}<{element_type}> {new.name} = {memory}<{element_type}>({offset});")
        elif sizes:
            size = prod(sizes) * element.bytes if isinstance(element, Scalar) else 4 * prod(sizes)
            if size > LOCAL_LIMIT:
                raise several_kernels(f"`{new.name}` takes {size} bytes in each thread", new.origin)
            aligned = "alignas(16) " if isinstance(innermost(new.type), Vector) else ""
            self.line(f"{aligned}Local<{base(new.type)}, {prod(sizes)}> {new.name};")
        else:
            self._scalar(new)
            return
        self.command(new.body)

    def _scalar(self, new: i.New) -> None:
        """A variable, initialised if its first use is an assignment."""
        match new.body:
            case i.Sequence((i.Assign(i.Access(name), value), *rest)) if name == new.name:
                self.line(f"{self._declared(new, value)} {new.name} = {self.expression(value)};")
                self.command(i.sequence(*rest))
            case body:
                self.line(f"{self._declared(new, None)} {new.name};")
                self.command(body)

    def _fragment(self, name: str, type_: Fragment, memory: Layout) -> str:
        m, n, k = known_shape(type_)
        if type_.kind is FragmentKind.COLUMN:
            return f"mma::column<{registers_of(type_)}, {base(type_.element)}>"
        kind = KINDS[type_.kind]  # type: ignore[index]  # kinds are known by now
        if family_of(type_) is Family.WGMMA:
            width = k if type_.kind is FragmentKind.A else n
            return f"group::fragment<{width}, {base(type_.element)}>"
        if distribution(type_) is not None:
            library = _library(type_)
            layout = {"rowMajor": f", {library}::row_major", "columnMajor": f", {library}::col_major"}[
                memory.name
            ]
            typed = layout if library == "volta" and type_.kind is not FragmentKind.ACCUMULATOR else ""
            return f"{library}::fragment<{library}::{kind}, {m}, {n}, {k}, {base(type_.element)}{typed}>"
        layout = ""
        if type_.kind is not FragmentKind.ACCUMULATOR:
            layout = ", wmma::row_major" if self.layouts.get(name, True) else ", wmma::col_major"
        return f"wmma::fragment<wmma::{kind}, {m}, {n}, {k}, {base(type_.element)}{layout}>"

    def _of_warpgroups(self, name: str) -> bool:
        """Whether only the copy engine and wgmma, which apply the swizzle themselves, use the buffer."""
        using = [c for c in i.commands(self.function.body) if any(a.buffer == name for a in i.accesses(c))]
        return all(isinstance(c, i.BulkCopy | i.BulkStore | i.LeaveUndefined | i.Wgmma) for c in using)

    def _pointer_to(self, barrier: i.Acceptor) -> str:
        """The address of an mbarrier."""
        access = _read(barrier)
        if not isinstance(access, i.Access):
            raise TranslationError("R0799", "internal: an mbarrier was not resolved")
        index = self.nat(flatten(access.indices, dimensions(self.types[access.buffer])))
        return access.buffer if index == "0" else f"{access.buffer} + {index}"

    def _run(self, tile: i.Tile, start: Nat, array: str) -> str:
        """A run in shared memory, where in the array it starts, its length, and the length of the array."""
        lengths = self._length(tile.type), self._length(self.types[array])
        return ", ".join([self._pointer(tile), self.nat(start), *lengths])

    def _length(self, type_: Data) -> str:
        """How many elements an array has in all its dimensions."""
        return self.nat(prod(dimensions(type_), start=constant(1)))

    def _registers(self, fragments: tuple[i.Acceptor, ...]) -> str:
        return ", ".join(f"{self.expression(_read(f))}.x" for f in fragments)

    def _wgmma(self, product: i.Wgmma) -> str:
        """Operands are rows of one swizzle width in shared memory; the first may be in registers."""
        target, a, b = product.target, product.a, product.b
        fragment = inner_element(self.types[_read(target).buffer])
        if not isinstance(fragment, Fragment):
            raise TranslationError("R0799", "internal: a product without a fragment")
        operand, n = base(self.types[b.buffer]), known_shape(fragment)[1]
        in_registers = not isinstance(a, i.Tile)
        along_k = not isinstance(a, i.Tile) or a.row_major
        majors = "K" if along_k else "MN", "MN" if b.row_major else "K"
        self.instructions.append(Wgmma(n, operand, base(fragment.element), *majors, in_registers))
        first = self._descriptor(a, majors[0]) if isinstance(a, i.Tile) else f"{self.expression(a)}.x"
        operands = f"{self.expression(_read(target))}.x, {first}, {self._descriptor(b, majors[1])}"
        said = majors[1:] if in_registers else majors
        flags = "".join(f", Major::{major}" for major in said) if "MN" in said else ""
        scale = f", {self.nat(product.clear)} > 0" if product.clear is not None else ""
        return f"wgmma<{n}, {operand}{flags}>({operands}{scale});"

    def _descriptor(self, tile: i.Tile, major: str) -> str:
        """Across k, the leading dimension is the distance of panels; the stride is that of eight rows."""
        size, pattern = _bytes(self.types[tile.buffer]), self.patterns[tile.buffer]
        leading = 16 if major == "K" or tile.panel is None else size * number(tile.panel, "a distance")
        # terms that only unrolled loops change are added to the descriptor, not to the address it encodes
        start = tile.offset.substitute({NatVariable(name): constant(0) for name in self.unrolled})
        first = self._pointer(replace(tile, offset=start))
        made = f"shared_descriptor({first}, {leading}, {8 * pattern}, Swizzle::B{pattern})"
        rest = size * (tile.offset - start)
        return made if rest == constant(0) else f"further({made}, {self.nat(rest)})"

    def _library_of(self, target: i.Acceptor) -> str:
        fragment = inner_element(self.types[_read(target).buffer])
        return _library(fragment) if isinstance(fragment, Fragment) else "wmma"

    def _elements(self, loop: i.ForFragment) -> None:
        """The number of elements is that of a fragment whose last index is the loop's, or is known."""
        count = str(registers_of(loop.fragment))
        for command in i.commands(loop.body):
            target = i.target_of(command)
            if isinstance(target, i.Access) and target.indices[-1:] == (variable(loop.index),):
                fragment = self._access(i.Access(target.buffer, target.indices[:-1], target.type))
                count = f"{fragment}.num_elements"
        self.line("#pragma unroll")
        self.line(f"for (int {loop.index} = 0; {loop.index} < {count}; {loop.index} += 1) {{")
        self.block(loop.body)
        self.line("}")

    # --- expressions ----------------------------------------------------------------------------------

    def expression(self, expr: i.Expression) -> str:
        match expr:
            case i.Access():
                return self._access(expr)
            case i.Number(value, type_):
                return literal(value, type_)
            case i.Natural(value, _):
                return self.nat(value)
            case i.Operator():
                return self._operator(expr)
            case i.ForeignCall(name, text, operands):
                name = of_function(name) if text else name
                return f"{name}({', '.join(self.expression(o) for o in operands)})"
            case _:
                raise TranslationError("R0799", f"internal: {type(expr).__name__} is left in a program")

    def _access(self, access: i.Access) -> str:
        type_ = self.types[access.buffer]
        sizes = dimensions(type_)
        # a scalar in memory is an array of one element
        given = access.indices if access.indices or sizes != (constant(1),) else (constant(0),)
        inside, rest = given[: len(sizes)], given[len(sizes) :]
        array = access.buffer
        if array in self.distributed:
            array, inside, sizes = self._of_block(array, inside[0]), inside[1:], sizes[1:]
        selected = f"[{self.nat(flatten(inside, sizes))}]" if sizes else ""
        return f"{array}{selected}" + "".join(f".x[{self.nat(n)}]" for n in rest)

    def _of_block(self, array: str, rank: Nat) -> str:
        """The element of a distributed array that a block of the cluster has in its shared memory."""
        return array if rank in self.ranks else f"shared_of_block({array}, {self.nat(rank)})"

    def _tile(self, tile: i.Expression) -> str:
        if not isinstance(tile, i.Tile):
            raise TranslationError("R0799", "internal: a tile was not resolved")
        return f"{self._pointer(tile)}, {self.narrow(tile.leading)}"

    def _pointer(self, tile: i.Tile) -> str:
        offset = self.nat(tile.offset)
        first = f"{tile.buffer}.first" if tile.buffer in self.swizzled else tile.buffer
        return first if offset == "0" else f"{first} + ({offset})"

    def _operator(self, expr: i.Operator) -> str:
        return operation(expr, [self.expression(o) for o in expr.operands])


def _read(target: object) -> i.Access:
    """A resolved acceptor is an access, and printed like one."""
    if not isinstance(target, i.Access):
        raise TranslationError("R0799", f"internal: {type(target).__name__} is left in a program")
    return target


def _is_index(value: i.Expression | None) -> bool:
    """Whether a value is computed from indices only."""
    match value:
        case i.Natural():
            return True
        case i.Operator("min" | "max", operands):
            return any(map(_is_index, operands))
        case _:
            return False


def _memory_layout(tile: object) -> str:
    return "wmma::mem_row_major" if isinstance(tile, i.Tile) and tile.row_major else "wmma::mem_col_major"


def _bytes(type_: Data) -> int:
    element = inner_element(type_)
    return element.bytes if isinstance(element, Scalar) else 4


def _library(fragment: Fragment) -> str:
    """The namespace of the functions on a fragment."""
    names = {Family.MMA: "mma", Family.VOLTA: "volta", Family.WGMMA: "group"}
    found = family_of(fragment) if fragment.kind is not FragmentKind.COLUMN else Family.MMA
    return names.get(found, "wmma") if found is not None else "wmma"


def innermost(type_: Data) -> Data:
    """The type inside all array dimensions: a vector, or an element."""
    while isinstance(type_, Array):
        type_ = type_.element
    return type_
