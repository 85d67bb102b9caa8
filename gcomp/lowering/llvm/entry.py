"""The entry of a device segment as LLVM IR: one function that does the steps of a call, for all sizes.

    define i64 @gcomp_entry(ptr %call)

`call` has eight bytes for each of: the arena, the pool of threads (null for none), the segment's inputs, weights and
outputs (addresses), the symbols (values), and a function that calls the host, where there is anything to call: it takes
the call's number in the order of steps, and where the addresses of what it reads and writes are, and gives 0. With
anything else the entry ends, and gives that. Sizes, grids and the addresses of buffers are computed from these.
A launch that is worth it is shared among the pool's threads; so are large copies and fills.

A launch that is repeated reads the same weights again, as a step of a recurrent layer does. Where they are about as
large as a cache, going through them from the front each time finds none: what is read next is what has been thrown out.
So every other time programs run from the last to the first, and begin with what was read last. Programs do not depend
on each other: no bit depends on their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from gcomp.dims import Size, ceildiv, dmin, parse, product
from gcomp.lowering.llvm.sizes import Sizes
from gcomp.lowering.llvm.writer import Writer
from gcomp.records import record
from gcomp.runtime.cpu.plan import SHARED_WORK
from gcomp.runtime.steps import SLOT, Buffer, Case, Copy, Fill, HostCall, Launch, Loop, Step, While, walk
from gcomp.runtime.strict_json import Json

ENTRY = "gcomp_entry"
CHUNK = 1 << 16
"""Bytes that a thread copies or fills at a time."""
TURNED = 1 << 20
"""Bytes that a launch in a loop moves from which on its programs run forwards and backwards in turn."""
LEAST_TURNED = 1 << 13
"""Bytes that each program of such a launch moves, at least, so that calling them one by one costs nothing."""


@record
class Segment:
    """A device segment: how many addresses it is given, the symbols of its sizes, its memory, kernels and steps.

    `slots` are the sizes of memory that follows the first `fixed` bytes of the arena.
    """

    inputs: int
    weights: int
    outputs: int
    symbols: tuple[str, ...]
    fixed: int
    slots: tuple[Size, ...]
    buffers: tuple[Buffer, ...]
    kernels: tuple[str, ...]
    steps: tuple[Step, ...]


def print_entry(segment: Segment, name: str = ENTRY) -> str:
    """The module with a segment's entry, called `name`, and with what copies and fills memory."""
    return _Entry(segment).text(name)


class _Entry:
    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self.w = Writer()
        self._pool = self._slot(1, "ptr")
        first = {"input": 2}
        first["weight"] = first["input"] + segment.inputs
        first["output"] = first["weight"] + segment.weights
        self._first = first
        begin = first["output"] + segment.outputs
        self.sizes = Sizes(self.w, {s: self._slot(begin + n, "i64") for n, s in enumerate(segment.symbols)})
        launches = [step for step in walk(segment.steps) if isinstance(step, Launch)]
        calls = [step for step in walk(segment.steps) if isinstance(step, HostCall)]
        counts = [*(len(step.arguments) + len(step.grid) for step in launches), *(len(step.values) for step in calls)]
        self._slots = max([3, *counts])
        self._hook = begin + len(segment.symbols)
        self._called = 0
        self._depth = 0
        self._turned: list[str] = []
        """The kernels of launches whose programs run forwards and backwards in turn, one for each launch."""

    def text(self, name: str) -> str:
        """The whole module."""
        w = self.w
        self.block(self._segment.steps)
        kernels = [f"declare void @{name}(ptr, i64, i64)" for name in dict.fromkeys(self._segment.kernels)]
        body = [
            f"define i64 @{name}(ptr %call) #0 {{",
            "entry:",
            f"  %slots = alloca [{self._slots} x i64], align 64",
            *[f"  %turn{n} = alloca i1\n  store i1 false, ptr %turn{n}" for n in range(len(self._turned))],
            "  %mode = call i64 @gcomp_numbers_begin()",
            *w.lines(),
            "  call void @gcomp_numbers_end(i64 %mode)",
            "  ret i64 0",
            "}",
        ]
        turned = [_BACKWARDS.replace("KERNEL", name) for name in dict.fromkeys(self._turned)]
        return "\n".join([*kernels, *w.declared, "", *body, "", *turned, _MEMORY.replace("CHUNK", str(CHUNK))])

    def block(self, steps: Sequence[Step]) -> None:
        """Do steps in order."""
        for step in steps:
            _ROWS[type(step)](self, step)

    # ---- memory ----

    def _slot(self, number: int, type: str) -> str:
        """What the caller gives."""
        return self.w.pure(f"load {type}, ptr {self.w.pure(f'getelementptr i64, ptr %call, i64 {number}')}, align 8")

    def address(self, number: int) -> str:
        """The address of a buffer."""
        buffer = self._segment.buffers[number]
        if buffer.place == "slot":
            return self.w.pure(f"getelementptr i8, ptr {self._slot(0, 'ptr')}, i64 {self._begin(buffer.at)}")
        if buffer.place != "arena":
            return self._slot(self._first[buffer.place] + buffer.at, "ptr")
        arena = self._slot(0, "ptr")
        return arena if buffer.at == 0 else self.w.pure(f"getelementptr i8, ptr {arena}, i64 {buffer.at}")

    def _begin(self, slot: int) -> str:
        """Where a slot begins in the arena."""
        w, end = self.w, str(self._segment.fixed)
        if slot:
            end = w.pure(f"add i64 {self._begin(slot - 1)}, {self.sizes.value(self._segment.slots[slot - 1])}")
        return w.pure(f"and i64 {w.pure(f'add i64 {end}, {SLOT - 1}')}, {-SLOT}")

    def bytes(self, number: int) -> Size:
        """How many bytes a buffer has."""
        return parse(self._segment.buffers[number].bytes)

    # ---- steps ----

    def launch(self, step: Launch) -> None:
        """Run a kernel's programs."""
        arguments = [self._argument(value) for value in step.arguments]
        grid = tuple(map(parse, step.grid))
        arguments += [("i64", self.sizes.value(size)) for size in grid]
        flops, moved = parse(step.flops), parse(step.bytes)
        name = f"@{self._segment.kernels[step.kernel]}"
        function = self._turn(name) if self._depth and _is_turned(product(grid), moved) else name
        self.call(function, arguments, grid, flops, moved)

    def _turn(self, name: str) -> str:
        """What runs a kernel's programs: from the first to the last, and the next time the other way."""
        w, turn = self.w, f"%turn{len(self._turned)}"
        self._turned.append(name)
        is_back = w.value(f"load i1, ptr {turn}")
        w.emit(f"store i1 {w.value(f'xor i1 {is_back}, true')}, ptr {turn}")
        return w.value(f"select i1 {is_back}, ptr {name}.back, ptr {name}")

    def _argument(self, value: Json) -> tuple[str, str]:
        if isinstance(value, int):
            return "ptr", self.address(value)
        return "i64", self.sizes.value(parse(cast(str, value)))

    def call(
        self, function: str, arguments: Sequence[tuple[str, str]], grid: tuple[Size, ...], flops: Size, moved: Size
    ) -> None:
        """Call a kernel, a function's address, by all threads of the pool if it is worth it."""
        w = self.w
        for n, (type, value) in enumerate(arguments):
            place = w.pure(f"getelementptr i64, ptr %slots, i64 {n}") if n else "%slots"
            w.emit(f"store {type} {value}, ptr {place}, align 8")
        programs = self.sizes.product(grid)
        pool = "null" if programs in ("0", "1") else self._pool_for(flops, moved)
        if pool == "null":
            w.emit(f"call void {function}(ptr %slots, i64 0, i64 {programs})")
            return
        w.declare("gcomp_parallel", "void", ["ptr", "ptr", "ptr", "i64"])
        w.emit(f"call void @gcomp_parallel(ptr {pool}, ptr {function}, ptr %slots, i64 {programs})")

    def _pool_for(self, flops: Size, moved: Size) -> str:
        """The pool, or null for work that is too small to share."""
        if isinstance(flops, int) and isinstance(moved, int):
            return self._pool if flops + 2 * moved >= SHARED_WORK else "null"
        w = self.w
        terms = self.sizes.value(flops), w.pure(f"mul i64 2, {self.sizes.value(moved)}")
        worth = w.pure(f"icmp sge i64 {w.pure(f'add i64 {terms[0]}, {terms[1]}')}, {SHARED_WORK}")
        return w.pure(f"select i1 {worth}, ptr {self._pool}, ptr null")

    def fill(self, step: Fill) -> None:
        """Set the bytes of a buffer."""
        size = self.bytes(step.buffer)
        where, count = self.address(step.buffer), self.sizes.value(size)
        self._emit_copy("@gcomp_fill", [("ptr", where), ("i64", count), ("i64", str(step.byte))], size)

    def copy(self, step: Copy) -> None:
        """Copy a buffer: no more than both have, which differs only in branches that other sizes take."""
        size = dmin(self.bytes(step.source), self.bytes(step.target))
        target, source = self.address(step.target), self.address(step.source)
        self._emit_copy("@gcomp_copy", [("ptr", target), ("i64", self.sizes.value(size)), ("ptr", source)], size)

    def _emit_copy(self, name: str, arguments: Sequence[tuple[str, str]], size: Size) -> None:
        self.call(name, arguments, (ceildiv(size, CHUNK),), 0, size)

    def host(self, step: HostCall) -> None:
        """Have the caller compute something, and end if that fails."""
        w = self.w
        for n, value in enumerate(step.values):
            place = w.pure(f"getelementptr i64, ptr %slots, i64 {n}") if n else "%slots"
            w.emit(f"store ptr {self.address(value.buffer)}, ptr {place}, align 8")
        hook = self._slot(self._hook, "ptr")
        # The caller counts with numbers as it does.
        w.emit("call void @gcomp_numbers_end(i64 %mode)")
        status = w.value(f"call i64 {hook}(i64 {self._called}, ptr %slots)")
        failed, after = w.fresh("failed"), w.fresh("called")
        w.emit(f"br i1 {w.value(f'icmp eq i64 {status}, 0')}, label %{after}, label %{failed}")
        w.start(failed)
        w.emit(f"ret i64 {status}")
        w.start(after)
        w.value("call i64 @gcomp_numbers_begin()")
        self._called += 1

    # ---- control ----

    def loop(self, step: Loop) -> None:
        """Repeat a block."""

        def turn(_: str, carried: Sequence[str]) -> Sequence[str]:
            self._repeated(step.body)
            return carried

        self.w.loop("0", self.sizes.value(parse(step.count)), 1, [], turn)

    def _repeated(self, steps: Sequence[Step]) -> None:
        """A block that runs often."""
        self._depth += 1
        self.block(steps)
        self._depth -= 1

    def while_(self, step: While) -> None:
        """Repeat a block while a byte is not 0."""
        w = self.w
        head, body, after = (w.fresh(name) for name in ("test", "turn", "done"))
        before = w.ahead()
        w.emit(f"br label %{head}")
        w.start(head)
        with w.scope(before):
            self.block(step.before)
            byte = w.value(f"load i8, ptr {self.address(step.condition)}, align 1")
            test = w.value(f"icmp ne i8 {byte}, 0")
            w.emit(f"br i1 {test}, label %{body}, label %{after}")
            w.start(body)
            self._repeated(step.body)
        w.emit(f"br label %{head}")
        w.start(after)

    def case(self, step: Case) -> None:
        """Do one of several blocks."""
        w = self.w
        after, labels = w.fresh("after"), [w.fresh("branch") for _ in step.branches]
        where, before = self.address(step.selector), w.ahead()
        if self.bytes(step.selector) == 1:
            byte = w.value(f"load i8, ptr {where}, align 1")
            test = w.value(f"icmp ne i8 {byte}, 0")
            w.emit(f"br i1 {test}, label %{labels[0]}, label %{labels[1]}")
        else:
            number = w.value(f"load i32, ptr {where}, align 4")
            rows = " ".join(f"i32 {n}, label %{label}" for n, label in enumerate(labels))
            w.emit(f"switch i32 {number}, label %{labels[-1]} [ {rows} ]")
        for label, branch in zip(labels, step.branches, strict=True):
            w.start(label)
            with w.scope(before):
                self.block(branch)
            w.emit(f"br label %{after}")
        w.start(after)


_ROWS: Mapping[type[Any], Callable[[_Entry, Any], None]] = {
    Launch: _Entry.launch, Fill: _Entry.fill, Copy: _Entry.copy, Loop: _Entry.loop, While: _Entry.while_,
    Case: _Entry.case, HostCall: _Entry.host,
}  # fmt: skip
"""Kind of step -> how it is printed."""


def _is_turned(programs: Size, moved: Size) -> bool:
    """Whether the programs of a launch in a loop should run forwards and backwards in turn."""
    return (
        isinstance(programs, int)
        and isinstance(moved, int)
        and programs > 1
        and moved >= max(TURNED, LEAST_TURNED * programs)
    )


_BACKWARDS = """\
define internal void KERNEL.back(ptr %args, i64 %begin, i64 %end) #0 {
entry:
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %program, label %done
program:
  %after = phi i64 [ %end, %entry ], [ %this, %program ]
  %this = sub i64 %after, 1
  call void KERNEL(ptr %args, i64 %this, i64 %after)
  %more = icmp sgt i64 %this, %begin
  br i1 %more, label %program, label %done
done:
  ret void
}
"""
"""Runs a kernel's programs from the last to the first."""


_MEMORY = """\
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @gcomp_numbers_begin()
declare void @gcomp_numbers_end(i64)

define internal { ptr, i64, i64 } @gcomp_stretch(ptr %args, i64 %begin, i64 %end) #0 {
  %bytes.at = getelementptr i64, ptr %args, i64 1
  %target = load ptr, ptr %args, align 8
  %bytes = load i64, ptr %bytes.at, align 8
  %first = mul i64 %begin, CHUNK
  %last = mul i64 %end, CHUNK
  %beyond = icmp sgt i64 %last, %bytes
  %stop = select i1 %beyond, i64 %bytes, i64 %last
  %count = sub i64 %stop, %first
  %place = getelementptr i8, ptr %target, i64 %first
  %one = insertvalue { ptr, i64, i64 } poison, ptr %place, 0
  %two = insertvalue { ptr, i64, i64 } %one, i64 %first, 1
  %all = insertvalue { ptr, i64, i64 } %two, i64 %count, 2
  ret { ptr, i64, i64 } %all
}

define internal void @gcomp_copy(ptr %args, i64 %begin, i64 %end) #0 {
  %stretch = call { ptr, i64, i64 } @gcomp_stretch(ptr %args, i64 %begin, i64 %end)
  %place = extractvalue { ptr, i64, i64 } %stretch, 0
  %first = extractvalue { ptr, i64, i64 } %stretch, 1
  %count = extractvalue { ptr, i64, i64 } %stretch, 2
  %source.at = getelementptr i64, ptr %args, i64 2
  %source = load ptr, ptr %source.at, align 8
  %from = getelementptr i8, ptr %source, i64 %first
  call void @llvm.memcpy.p0.p0.i64(ptr %place, ptr %from, i64 %count, i1 false)
  ret void
}

define internal void @gcomp_fill(ptr %args, i64 %begin, i64 %end) #0 {
  %stretch = call { ptr, i64, i64 } @gcomp_stretch(ptr %args, i64 %begin, i64 %end)
  %place = extractvalue { ptr, i64, i64 } %stretch, 0
  %count = extractvalue { ptr, i64, i64 } %stretch, 2
  %byte.at = getelementptr i64, ptr %args, i64 2
  %byte = load i64, ptr %byte.at, align 8
  %value = trunc i64 %byte to i8
  call void @llvm.memset.p0.i64(ptr %place, i8 %value, i64 %count, i1 false)
  ret void
}

attributes #0 = { nounwind "no-stack-arg-probe" }
"""
"""What copies and fills stretches of memory, as kernels: arguments are the target, its bytes, and source or byte."""


__all__ = ["ENTRY", "Segment", "print_entry"]
