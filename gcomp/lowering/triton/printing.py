"""Tile kernels as Triton source: deterministic, readable, with the places in the user's model that each line is for.

One op is one line. What the language leaves to its defaults (precision of products, NaN in maxima, rounding of division
and roots) is written out, so that a kernel means what the graph means. Sizes that are known stand as literals, which is
what lets Triton see how addresses are aligned and contiguous.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from math import copysign, isinf, isnan
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from gcomp.dtypes import bit_width
from gcomp.errors import InternalError, UnsupportedError
from gcomp.ir.locations import describe, where
from gcomp.ir.types import is_tensor
from gcomp.lowering.tiles import combining, tile
from gcomp.lowering.tiles.descriptors import DescribeOp, LoadBoxOp
from gcomp.lowering.tiles.functions import kind_of
from gcomp.lowering.tiles.schedules.kernel import Step
from gcomp.lowering.tiles.tile import IN_ORDER, BufferType, KernelOp, MemoryOp, element, is_power_of_two, static_shape
from gcomp.lowering.triton.source import Argument, Configuration, KernelSource
from gcomp.lowering.triton.texts import text_of

LANGUAGE = {
    "i1": "int1", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "ui8": "uint8", "ui16": "uint16",
    "ui32": "uint32", "ui64": "uint64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "f8E4M3FN": "float8e4nv", "f8E5M2": "float8e5",
}  # fmt: skip
"""Element type -> its name in Triton's language."""

SIGNATURE = {
    "i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "ui8": "u8", "ui16": "u16", "ui32": "u32",
    "ui64": "u64", "f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64", "f8E4M3FN": "fp8e4nv",
    "f8E5M2": "fp8e5",
}  # fmt: skip
"""Element type -> its name in the signature of a kernel."""

HEAD = """\
import triton
import triton.language as tl
from triton.language.extra import libdevice
"""

INLINE = frozenset(
    {"add", "subtract", "multiply", "divide_positive", "modulo_positive", "eq", "ne", "lt", "le", "gt", "ge"}
)
"""Functions of positions whose constant operands are written in their place."""

_TAKEN = {"tl", "triton", "libdevice", "range", "float", "min", "max", "abs", "sum"}


def print_kernel(step: Step) -> KernelSource:
    """The source of a step's kernel. UnsupportedError for element types that the language does not have."""
    _check_types(step.kernel)
    return _Printer(step).source()


def _check_types(kernel: KernelOp) -> None:
    if IN_ORDER in kernel.attributes or any(isinstance(op, MemoryOp) for op in kernel.walk()):
        raise UnsupportedError(
            f"the kernel {kernel.kernel_name} reads what it wrote", where=where(kernel),
            why="the threads of a program on a GPU do not wait for what others write", fix="compile for cpu",
        )  # fmt: skip
    values = [(value, op) for op in kernel.walk() for value in (*op.operands, *op.results)]
    for value, op in values:
        if isinstance(value.type, BufferType | TensorType) and element(value) not in LANGUAGE:
            raise UnsupportedError(
                f"the kernel {kernel.kernel_name} cannot hold {element(value)}",
                where=where(op),
                why=f"there is no {element(value)} in a kernel for GPUs",
                fix="convert it to another type before, or compile for cpu",
            )


class _Printer:
    def __init__(self, step: Step) -> None:
        self.step, self.kernel = step, step.kernel
        self.names: dict[SSAValue, str] = {}
        self.used: set[str] = {*_TAKEN, self.kernel.kernel_name}
        self.lines: list[str] = []
        self.helpers: list[str] = []
        self.where = ""

    def source(self) -> KernelSource:
        """The text, and what is needed to compile it. InternalError for a tile that Triton has no form for."""
        for op in self.kernel.block.walk():
            if not all(is_power_of_two(static_shape(result)) for result in op.results if is_tensor(result.type)):
                raise InternalError("Triton's tiles have powers of two as dimensions.", where=where(op), why=str(op))
        arguments = [
            self._argument(v, role)
            for v, role in zip(self.kernel.block.args, self.step.kernel.argument_roles, strict=True)
        ]
        self._block(self.kernel.block, 1)
        head = f"\n\n@triton.jit\ndef {self.kernel.kernel_name}({', '.join(a.name for a in arguments)}):\n"
        text = HEAD + "".join(self.helpers) + head + "".join(self.lines)
        configuration = Configuration(self.kernel.warps, self.kernel.stages)
        boxes = any(isinstance(op, DescribeOp) for op in self.kernel.block.walk())
        needs = ("tma",) if boxes else ()
        return KernelSource(self.kernel.kernel_name, text, tuple(arguments), self.step.grid, configuration, needs)

    def _argument(self, value: SSAValue, role: str) -> Argument:
        # Names of the model's values would make equal kernels of equal layers differ.
        stem = cast(str, value.name_hint) if role == "size" else role
        name = self._name(value, stem, hinted=False)
        kind = SIGNATURE[element(value)]
        return Argument(name, kind, role, 1) if role == "size" else Argument(name, f"*{kind}", role)

    # ---- names ----

    def _name(self, value: SSAValue, stem: str = "v", *, hinted: bool = True) -> str:
        hint = value.name_hint if hinted else stem if stem.isidentifier() else None
        wanted = re.sub(r"\W", "_", hint) if hint else ""
        if not wanted or not wanted.isascii() or wanted[0].isdigit() or keyword.iskeyword(wanted):
            wanted = stem
        found, number = wanted, 0
        while found in self.used or found in ("v", "in", "out"):
            found, number = f"{wanted}{number}", number + 1
        self.used.add(found)
        self.names[value] = found
        return found

    def _line(self, depth: int, text: str, op: Operation | None = None) -> None:
        place = describe(op.location) if op is not None else ""
        if place and place != self.where:
            self.where = place
            self.lines.append("    " * depth + f"# {' '.join(place.split())}\n")
        self.lines.append("    " * depth + text + "\n")

    # ---- blocks ----

    def _block(self, block: Block, depth: int) -> None:
        for op in block.ops:
            if isinstance(op, tile.YieldOp):
                continue
            if isinstance(op, tile.ForOp):
                self._for(op, depth)
            elif isinstance(op, tile.StoreOp | tile.AtomicOp):
                self._line(depth, self._written(op), op)
            elif isinstance(op, combining.Folding):
                self._fold(op, depth)
            elif not (isinstance(op, tile.ConstantOp) and _only_inline(op.results[0])):
                text = _TEXTS[type(op)](self, op)
                self._line(depth, f"{self._name(op.results[0])} = {text}", op)

    def _for(self, op: tile.ForOp, depth: int) -> None:
        index, *carried = op.block.args
        names = [self._name(result) for result in op.results]
        for name, argument, start in zip(names, carried, op.carried, strict=True):
            self.names[argument] = name
            self._line(depth, f"{name} = {self.ref(start)}", op)
        bounds = f"{self.ref(op.lower)}, {self.ref(op.upper)}, {op.stride}"
        stages = f", num_stages={self.kernel.stages}" if self.kernel.stages > 1 else ""
        if op.flatten is not None:
            # What is pipelined is the loop inside.
            stages = ", flatten=True"
        self._line(depth, f"for {self._name(index, 'i')} in tl.range({bounds}{stages}):", op)
        self._block(op.block, depth + 1)
        last = cast(Operation, op.block.last_op)
        if names:
            values = ", ".join(self.ref(v) for v in last.operands)
            self._line(depth + 1, f"{', '.join(names)} = {values}")
        elif not any(not isinstance(o, tile.ConstantOp | tile.YieldOp) for o in op.block.ops):
            self._line(depth + 1, "pass")

    def _fold(self, op: combining.Folding, depth: int) -> None:
        names = [self._name(result) for result in op.results]
        values = [self.ref(v) for v in op.operands]
        helper = self._helper(op)
        operands = values[0] if len(values) == 1 else f"({', '.join(values)})"
        if isinstance(op, combining.ScanOp):
            text = f"tl.associative_scan({operands}, {op.axis}, {helper}, reverse={op.reversed})"
        elif helper == "sum":
            text = f"tl.sum({operands}, {op.axis}, keep_dims=True)"
        else:
            text = f"tl.reduce({operands}, {op.axis}, {helper}, keep_dims=True)"
        self._line(depth, f"{', '.join(names)} = {text}", op)

    def _helper(self, op: combining.Folding) -> str:
        """The function that a region is."""
        body = [o for o in op.block.ops if not isinstance(o, tile.YieldOp)]
        if isinstance(op, combining.ReduceOp) and len(body) == 1 and isinstance(body[0], tile.ElementwiseOp):
            kind = element(op.operands[0])
            if body[0].function_name == "add" and (kind_of(kind) in ("f32", "f64") or kind in ("i32", "i64")):
                return "sum"
        name = f"combine{len(self.helpers)}"
        self.used.add(name)
        inner = _Printer(self.step)
        inner.used |= self.used
        parameters = [inner._name(v, "a" if i < len(op.operands) else "b") for i, v in enumerate(op.block.args)]
        inner._block(op.block, 1)
        last = cast(Operation, op.block.last_op)
        inner._line(1, f"return {', '.join(inner.ref(v) for v in last.operands)}")
        text = f"\n\n@triton.jit\ndef {name}({', '.join(parameters)}):\n{''.join(inner.lines)}"
        same = next((h for h in self.helpers if h.partition("(")[2] == text.partition("(")[2]), None)
        if same is not None:
            return cast(Any, re.search(r"def (\w+)", same))[1]
        self.helpers.append(text)
        return name

    def _written(self, op: tile.StoreOp | tile.AtomicOp) -> str:
        place = f"{self.ref(op.buffer)} + {self.ref(op.offset)}"
        mask = "" if op.mask is None else f", mask={self.ref(op.mask)}"
        if isinstance(op, tile.StoreOp):
            return f"tl.store({place}, {self.ref(op.value)}{mask})"
        return f"tl.atomic_{op.function.data}({place}, {self.ref(op.value)}{mask}, sem='relaxed')"

    # ---- values ----

    def ref(self, value: SSAValue) -> str:
        """A value's name; a literal for a constant position."""
        if value in self.names:
            return self.names[value]
        owner = value.owner
        assert isinstance(owner, tile.ConstantOp), value
        return str(int(owner.value.splat()))


def _is_position(value: SSAValue) -> bool:
    return isinstance(value.owner, tile.ConstantOp) and not static_shape(value) and element(value) in ("i32", "i64")


def _only_inline(value: SSAValue) -> bool:
    """Whether a constant is a position that all its users take as a literal."""
    return _is_position(value) and all(_takes_literal(use.operation, use.index) for use in value.uses)


def _takes_literal(op: Operation, index: int) -> bool:
    if isinstance(op, tile.ForOp):
        return index < 2
    if isinstance(op, DescribeOp | LoadBoxOp):
        return index > 0
    if isinstance(op, tile.ElementwiseOp) and op.function_name in INLINE:
        # Two literals would be folded in Python, with Python's types.
        return any(not _is_position(v) for v in op.operands)
    return False


# ---- one op, one text ---------------------------------------------------------------------------------------------


def _constant(p: _Printer, op: tile.ConstantOp) -> str:
    shape = list(static_shape(op.result))
    kind = element(op.result)
    number = op.value.splat()
    if kind_of(kind) in ("f32", "f64", "narrow"):
        value = float(number)
        if bit_width(kind) == 8:
            # Not all numbers of 8 bits can be written as literals of their type.
            bits = int(np.asarray(number).view(np.int8)[()])
            return f"tl.full({shape}, {bits}, tl.int8).to(tl.{LANGUAGE[kind]}, bitcast=True)"
        if value == 0 and copysign(1, value) < 0:
            # The language makes a zero of any zero, without its sign.
            width = bit_width(kind)
            return f"tl.full({shape}, {-(1 << (width - 1))}, tl.int{width}).to(tl.{LANGUAGE[kind]}, bitcast=True)"
        text = f"float('{value}')" if isinf(value) or isnan(value) else repr(value)
    else:
        text = str(bool(number)) if kind == "i1" else str(int(number))
    return f"tl.full({shape}, {text}, tl.{LANGUAGE[kind]})"


def _iota(p: _Printer, op: tile.IotaOp) -> str:
    shape = static_shape(op.result)
    index = ", ".join(":" if i == op.axis else "None" for i in range(len(shape)))
    return f"tl.arange(0, {shape[op.axis]})" + ("" if len(shape) == 1 else f"[{index}]")


def _elementwise(p: _Printer, op: tile.ElementwiseOp) -> str:
    return text_of(op.function_name, [element(v) for v in op.operands], [p.ref(v) for v in op.operands])


def _load(p: _Printer, op: tile.LoadOp) -> str:
    place = f"{p.ref(op.buffer)} + {p.ref(op.offset)}"
    zero = "0.0" if kind_of(element(op.result)) in ("f32", "f64", "narrow") else "0"
    mask = "" if op.mask is None else f", mask={p.ref(op.mask)}, other={zero}"
    evict = "" if op.evict is None else f", eviction_policy='evict_{op.evict.data}'"
    return f"tl.load({place}{mask}{evict})"


def _describe(p: _Printer, op: DescribeOp) -> str:
    layout = [p.ref(v) for v in op.layout]
    sizes, strides = ", ".join(layout[: op.rank]), ", ".join(layout[op.rank :])
    box = list(static_shape(op.result.type.box))
    return f"tl.make_tensor_descriptor({p.ref(op.buffer)}, [{sizes}], [{strides}], {box})"


def _dot(p: _Printer, op: tile.DotOp) -> str:
    if min(*static_shape(op.lhs), *static_shape(op.rhs)) < 16:
        raise UnsupportedError(
            f"a product of tiles {static_shape(op.lhs)} and {static_shape(op.rhs)} cannot be compiled",
            why="matrix units take no dimension below 16",
            fix="choose larger blocks",
        )
    if op.precision.data == "exact":
        raise UnsupportedError(
            "exact products cannot be compiled",
            where=where(op),
            why="the language does not say in which order a product's terms are summed",
            fix="ask for the precision ieee",
        )
    kind = f", out_dtype=tl.{LANGUAGE[element(op.result)]}"
    precision = f", input_precision='{op.precision.data}'" if element(op.lhs) == "f32" else ""
    return f"tl.dot({p.ref(op.lhs)}, {p.ref(op.rhs)}, {p.ref(op.acc)}{precision}{kind})"


def _print_shaped(function: str) -> Callable[[_Printer, Any], str]:
    def text(p: _Printer, op: Any) -> str:
        return f"tl.{function}({p.ref(op.operand)}, {list(static_shape(op.result))})"

    return text


def _print_conversion(extra: str) -> Callable[[_Printer, Any], str]:
    def text(p: _Printer, op: Any) -> str:
        return f"{p.ref(op.operand)}.to(tl.{LANGUAGE[element(op.result)]}{extra})"

    return text


_TEXTS: dict[type[Operation], Callable[[_Printer, Any], str]] = {
    tile.ProgramIdOp: lambda p, op: f"tl.program_id({op.axis.value.data})",
    tile.IotaOp: _iota,
    tile.ConstantOp: _constant,
    tile.ElementwiseOp: _elementwise,
    tile.CastOp: _print_conversion(""),
    tile.BitcastOp: _print_conversion(", bitcast=True"),
    tile.ReshapeOp: _print_shaped("reshape"),
    tile.BroadcastOp: _print_shaped("broadcast_to"),
    tile.TransposeOp: lambda p, op: f"tl.trans({p.ref(op.operand)})",
    tile.DotOp: _dot,
    tile.LoadOp: _load,
    DescribeOp: _describe,
    LoadBoxOp: lambda p, op: f"{p.ref(op.descriptor)}.load([{', '.join(map(p.ref, op.offsets))}])",
}
"""Op class -> its text, but for what has regions or no result."""
