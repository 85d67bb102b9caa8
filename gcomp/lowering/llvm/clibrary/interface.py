"""What a C program calls, as LLVM IR: sizes for symbolic models, what must hold of them, and the call itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gcomp.dims import Constraint, Dim, Range, Size
from gcomp.lowering.llvm.entry import ENTRY
from gcomp.lowering.llvm.sizes import MOST, Sizes
from gcomp.lowering.llvm.writer import Writer

UNALIGNED = -1
"""What a call gives for an arena that does not begin at a multiple of `ALIGNMENT`."""
ALIGNMENT = 64

FUNCTIONS = ("check", "arena_bytes", "input_bytes", "output_bytes", "run")
"""What is defined here, each behind the name of the library."""


@dataclass(frozen=True)
class Slot:
    """What the entry is given: a number among the inputs or outputs of a call, or an offset among the weights."""

    place: str
    at: int


@dataclass(frozen=True)
class Interface:
    """A library's name, its sizes and what holds of them, bytes of memory, and what the entry is given of a call's.

    `symbols` are the sizes that the entry takes, by number. `copies` are outputs that are given twice, or are inputs:
    the output, and what it is a copy of.
    """

    name: str
    ranges: tuple[tuple[str, Range], ...]
    constraints: tuple[Constraint, ...]
    arena: Size
    inputs: tuple[Size, ...]
    outputs: tuple[Size, ...]
    slots: tuple[Slot, ...]
    symbols: tuple[int, ...]
    copies: tuple[tuple[int, Slot], ...]
    shared: tuple[tuple[int, int], ...] = ()
    """Inputs, and the outputs that may lie in their memory."""


def print_interface(interface: Interface) -> str:
    """The module with the functions."""
    printed = [
        _Function(interface).of_sizes("check", "", lambda f: f.problem()),
        _Function(interface).of_sizes("arena_bytes", "", lambda f: f.sizes.value(interface.arena)),
        _Function(interface).of_sizes("input_bytes", "i64 %index, ", lambda f: f.choose(interface.inputs)),
        _Function(interface).of_sizes("output_bytes", "i64 %index, ", lambda f: f.choose(interface.outputs)),
        _Function(interface).run(),
    ]
    declared = dict.fromkeys(line for lines, _ in printed for line in lines)
    return "\n".join([*declared, f"declare i64 @{ENTRY}(ptr)", *(text for _, text in printed)])


Printed = tuple[Sequence[str], str]
"""Declarations, and a function."""


class _Function:
    """One function of the interface, whose argument `%sizes` has the values of the model's sizes."""

    def __init__(self, interface: Interface) -> None:
        self.interface, self.w = interface, Writer()
        names = [name for name, _ in interface.ranges]
        self.symbols = {name: self._load("i64", "%sizes", number) for number, name in enumerate(names)}
        self.sizes = Sizes(self.w, self.symbols)

    def _place(self, where: str, number: int) -> str:
        return self.w.pure(f"getelementptr i64, ptr {where}, i64 {number}") if number else where

    def _load(self, type: str, where: str, number: int) -> str:
        return self.w.pure(f"load {type}, ptr {self._place(where, number)}, align 8")

    def of_sizes(self, name: str, parameters: str, value: Callable[[_Function], str]) -> Printed:
        """A function that gives a number."""
        result = value(self)
        return list(self.w.declared), "\n".join([
            f"define i64 @{self.interface.name}_{name}({parameters}ptr %sizes) {{",
            "entry:",
            *self.w.lines(),
            f"  ret i64 {result}",
            "}",
        ])  # fmt: skip

    def choose(self, sizes: Sequence[Size]) -> str:
        """The value of the formula with the number `%index`, -1 where there is none."""
        found = "-1"
        for number, size in enumerate(sizes):
            test = self.w.pure(f"icmp eq i64 %index, {number}")
            found = self.w.pure(f"select i1 {test}, i64 {self.sizes.value(size)}, i64 {found}")
        return found

    def problem(self) -> str:
        """The number, from 1, of the first size out of its range, then of the first constraint that fails; or 0."""
        broken = [
            *(self._outside(self.symbols[name], known) for name, known in self.interface.ranges),
            *(self._violation(constraint) for constraint in self.interface.constraints),
        ]
        found = "0"
        for number, test in reversed([*enumerate(broken, 1)]):
            found = self.w.pure(f"select i1 {test}, i64 {number}, i64 {found}")
        return found

    def _outside(self, value: str, known: Range) -> str:
        w = self.w
        found = w.pure(f"icmp slt i64 {value}, {known.lo}")
        if known.hi is not None and known.hi <= MOST:
            found = self._either(found, w.pure(f"icmp sgt i64 {value}, {known.hi}"))
        if known.multiple_of > 1:
            rest = w.pure(f"srem i64 {value}, {known.multiple_of}")
            found = self._either(found, w.pure(f"icmp ne i64 {rest}, 0"))
        return found

    def _violation(self, constraint: Constraint) -> str:
        w, (left, right) = self.w, map(self.sizes.value, (constraint.lhs, constraint.rhs))
        match constraint.kind:
            case "eq":
                return w.pure(f"icmp ne i64 {left}, {right}")
            case "le":
                return w.pure(f"icmp sgt i64 {left}, {right}")
            case "divides":
                none = w.pure(f"icmp eq i64 {left}, 0")
                rest = w.pure(f"srem i64 {right}, {w.pure(f'select i1 {none}, i64 1, i64 {left}')}")
                return w.pure(f"icmp ne i64 {w.pure(f'select i1 {none}, i64 {right}, i64 {rest}')}, 0")
            case "broadcast":
                differ = w.pure(f"icmp ne i64 {left}, {right}")
                wide = [w.pure(f"icmp ne i64 {size}, 1") for size in (left, right)]
                found = self._both(differ, self._both(*wide))
                if isinstance(constraint.lhs, Dim) and isinstance(constraint.rhs, Dim):
                    # One is empty and the other 1: their product is 0, and their sum 1.
                    product, total = (w.pure(f"{op} i64 {left}, {right}") for op in ("mul", "add"))
                    empty = self._both(w.pure(f"icmp eq i64 {product}, 0"), w.pure(f"icmp eq i64 {total}, 1"))
                    found = self._either(found, empty)
                return found

    def _either(self, a: str, b: str) -> str:
        return self.w.pure(f"or i1 {a}, {b}")

    def _both(self, a: str, b: str) -> str:
        return self.w.pure(f"and i1 {a}, {b}")

    def run(self) -> Printed:
        """The call: what is wrong with the sizes or the arena, or 0 after all results are written."""
        w, interface = self.w, self.interface
        bits = w.pure("ptrtoint ptr %arena to i64")
        odd = w.pure(f"icmp ne i64 {w.pure(f'and i64 {bits}, {ALIGNMENT - 1}')}, 0")
        problem = w.pure(f"select i1 {odd}, i64 {UNALIGNED}, i64 {self.problem()}")
        test = w.pure(f"icmp eq i64 {problem}, 0")
        w.emit(f"br i1 {test}, label %right, label %wrong")
        w.start("wrong")
        w.emit(f"ret i64 {problem}")
        w.start("right")
        slots = ["ptr %arena", "ptr %pool", *(f"ptr {self._address(slot)}" for slot in interface.slots)]
        slots += [f"i64 {self.symbols[interface.ranges[number][0]]}" for number in interface.symbols]
        for number, value in enumerate(slots):
            w.emit(f"store {value}, ptr {self._place('%call', number)}, align 8")
        result = w.value(f"call i64 @{ENTRY}(ptr %call)")
        for output, slot in interface.copies:
            both = f"ptr {self._address(Slot('output', output))}, ptr {self._address(slot)}"
            w.declare("llvm.memcpy.p0.p0.i64", "void", ["ptr", "ptr", "i64", "i1"])
            size = self.sizes.value(interface.outputs[output])
            w.emit(f"call void @llvm.memcpy.p0.p0.i64({both}, i64 {size}, i1 false)")
        pointers = ("arena", "pool", "weights", "inputs", "outputs", "sizes")
        parameters = ", ".join(f"ptr %{pointer}" for pointer in pointers)
        return list(w.declared), "\n".join([
            f"define i64 @{interface.name}_run({parameters}) {{",
            "entry:",
            f"  %call = alloca [{len(slots)} x i64], align 64",
            *w.lines(),
            f"  ret i64 {result}",
            "}",
        ])  # fmt: skip

    def _address(self, slot: Slot) -> str:
        if slot.place == "weight":
            return self.w.pure(f"getelementptr i8, ptr %weights, i64 {slot.at}") if slot.at else "%weights"
        return self._load("ptr", f"%{slot.place}s", slot.at)


__all__ = ["ALIGNMENT", "FUNCTIONS", "UNALIGNED", "Interface", "Slot", "print_interface"]
