"""A program: a module whose `@main` is the computation, and its weights.

The module carries everything but the weights' data, so that its text says it all: input and output names as argument
and result attributes (`gcomp.name`), the values of inputs that may be left out (`gcomp.default`), the ranges of symbols
(`gcomp.ranges`) and the constraints among them (`gcomp.constraints`) as module attributes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    UnitAttr,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gcomp import dims
from gcomp.dims import Constraint, Ranges, Size
from gcomp.dtypes import default_fits
from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.html import html_text
from gcomp.ir import text
from gcomp.ir.sdy.attributes import SHARDING, ShardingAttr, sharding_in
from gcomp.ir.sizes import change_sizes
from gcomp.ir.types import Tensor, dtype_text, element_type, is_tensor, shape_of
from gcomp.ir.walking import walk
from gcomp.ir.weights import Array, Weights
from gcomp.records import record
from gcomp.sharding import Sharding

_NAME, _DONATED, _DEFAULT, _STATE = "gcomp.name", "gcomp.donated", "gcomp.default", "gcomp.state"
_KEY, _NAMES = "gcomp.key", "gcomp.names"
_RANGES, _CONSTRAINTS = "gcomp.ranges", "gcomp.constraints"


@record
class Port:
    """An input or output of a program: its name, element type text and shape.

    An input with a default, which is an integer of rank 0, may be left out. An input with a state is kept by the model
    from call to call: the output of that name is its next value. What has a `key` holds JAX's typed random keys, of the
    generator that is named, as the integers that they stand for. An output with `names` holds positions among these
    strings, and is given as them. A `sharding` says how the array lies on the devices of a mesh.
    """

    name: str
    dtype: str
    shape: tuple[Size, ...]
    donated: bool = False
    default: int | None = None
    state: str | None = None
    key: str | None = None
    names: tuple[str, ...] | None = None
    sharding: Sharding | None = None


@dataclass
class Program:
    """A module with a public function `main`, and its weights."""

    module: ModuleOp
    weights: Weights = field(default_factory=Weights)
    result_structure: Any = None
    """How results become the source's own structure, as JSON; None is a tuple in declared order."""
    argument_structure: Any = None
    """How the source's (args, kwargs) hold the inputs, in the same form; None is by position and by name."""
    names: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue], compare=False)
    """What the frontend calls values: ONNX's tensors, torch's nodes. The text does not say it, and passes may not."""
    initial: dict[str, Array] = field(default_factory=dict[str, Array], compare=False)
    """The first values of inputs that are a state; one without is zero at first."""

    # ---- construction ----

    @staticmethod
    def empty(inputs: Sequence[tuple[str, Tensor]]) -> Program:
        """A program with inputs and an open `main`: append ops to `block`, then call `finish`."""
        main = FuncOp("main", ([type for _, type in inputs], []), visibility="public")
        for arg, (name, _) in zip(main.args, inputs, strict=True):
            arg.name_hint = _hint(name)
        main.arg_attrs = ArrayAttr([DictionaryAttr({_NAME: StringAttr(name)}) for name, _ in inputs])
        return Program(ModuleOp([main]))

    def add_input(self, name: str, type: Tensor, default: int | None = None) -> SSAValue:
        """One more input, after the others; with a default, callers may leave it out. Ops may be there already."""
        main = self.main
        arg = self.block.insert_arg(type, len(self.block.args))
        arg.name_hint = _hint(name)
        attr: dict[str, Attribute] = {_NAME: StringAttr(name)}
        if default is not None:
            attr[_DEFAULT] = IntegerAttr(default, cast(Any, type.element_type))
        main.arg_attrs = ArrayAttr([*cast("ArrayAttr[DictionaryAttr]", main.arg_attrs).data, DictionaryAttr(attr)])
        main.function_type = FunctionType.from_lists([a.type for a in self.block.args], main.function_type.outputs.data)
        return arg

    def finish(self, results: Sequence[tuple[str, SSAValue]]) -> None:
        """Return `results`, in order, from `main`."""
        self.block.add_op(ReturnOp(*[value for _, value in results]))
        self.main.update_function_type()
        self.main.res_attrs = ArrayAttr([DictionaryAttr({_NAME: StringAttr(name)}) for name, _ in results])

    def add_outputs(self, outputs: Sequence[tuple[str, SSAValue]]) -> None:
        """More outputs, after the others."""
        names = [DictionaryAttr({_NAME: StringAttr(name)}) for name, _ in outputs]
        self.main.res_attrs = ArrayAttr([*map(_attributes, self.outputs()), *names])
        self.returned.operands = [*self.returned.operands, *[value for _, value in outputs]]
        self.main.update_function_type()

    @staticmethod
    def parse(source: str, name: str = "<text>") -> Program:
        """Read and verify a program's text. Raises ParseError, VerificationError or InvalidModelError."""
        program = Program(text.parse_module(source, name))
        program.find_main(name)
        program.verify("as read")
        return program

    # ---- structure ----

    def functions(self) -> Iterator[FuncOp]:
        """All functions of the module."""
        for op in self.module.body.block.ops:
            if isinstance(op, FuncOp):
                yield op

    def function(self, name: str) -> FuncOp | None:
        """The function with a name."""
        return next((f for f in self.functions() if f.sym_name.data == name), None)

    def find_main(self, source: str) -> FuncOp:
        """`@main`, or the module's only public function. Raises InvalidModelError when there is none."""
        main = self.function("main")
        if main is None:
            public = [f for f in self.functions() if f.sym_visibility is None or f.sym_visibility.data == "public"]
            main = public[0] if len(public) == 1 else None
        if main is None or main.body.blocks.first is None:
            raise InvalidModelError(
                "the module has no function @main", where=source, fix="name the entry function main"
            )
        return main

    @property
    def main(self) -> FuncOp:
        """The function that the program runs."""
        return self.find_main("program")

    @property
    def block(self) -> Block:
        """The block of `main`."""
        return self.main.body.block

    @property
    def returned(self) -> ReturnOp:
        """The return of `main`."""
        return cast(ReturnOp, self.block.last_op)

    def ops(self) -> Iterator[Operation]:
        """All ops, nested ones included."""
        return walk(self.module)

    def op_count(self) -> int:
        """How many ops there are, the module and functions not counted."""
        return sum(1 for op in self.ops() if not isinstance(op, ModuleOp | FuncOp))

    def callees(self) -> Iterator[tuple[CallOp, str]]:
        """All call ops, each with the name of its callee."""
        for op in self.ops():
            if isinstance(op, CallOp):
                yield op, op.callee.root_reference.data

    # ---- signature ----

    def inputs(self) -> list[Port]:
        """The inputs in order."""
        attrs = self.main.arg_attrs
        return _ports(attrs, [arg.type for arg in self.block.args], "input")

    def outputs(self) -> list[Port]:
        """The outputs in order."""
        return _ports(self.main.res_attrs, [v.type for v in self.returned.operands], "output")

    def named_outputs(self) -> list[tuple[str, SSAValue]]:
        """The names and values of the outputs."""
        return [(port.name, value) for port, value in zip(self.outputs(), self.returned.operands, strict=True)]

    def donate(self, names: set[str]) -> None:
        """Mark inputs as given away: their memory may hold outputs."""
        self._mark([replace(port, donated=port.name in names) for port in self.inputs()])

    def keep(self, states: Mapping[str, str], initial: Mapping[str, Array]) -> None:
        """Let the model keep inputs from call to call: input name -> the output that is its next value.

        `initial` has their first values; one that has none is zero at first.
        """
        ports = [replace(p, state=states.get(p.name), donated=p.donated or p.name in states) for p in self.inputs()]
        self._mark(ports)
        self.initial = dict(initial)

    def default(self, name: str, value: int) -> None:
        """Let callers leave an input out, which is an integer of rank 0."""
        self._mark([replace(p, default=value) if p.name == name else p for p in self.inputs()])

    def hold_keys(self, inputs: Sequence[str | None], outputs: Sequence[str | None]) -> None:
        """Say which inputs and outputs hold typed keys, and of which generators."""
        self._mark([replace(port, key=key) for port, key in zip(self.inputs(), inputs, strict=True)])
        made = [replace(port, key=key) for port, key in zip(self.outputs(), outputs, strict=True)]
        self.main.res_attrs = ArrayAttr(list(map(_attributes, made)))

    def hold_names(self, outputs: Mapping[str, tuple[str, ...]]) -> None:
        """Say which outputs hold positions (i64) of strings, and of which."""
        made = [replace(port, names=outputs.get(port.name)) for port in self.outputs()]
        self.main.res_attrs = ArrayAttr(list(map(_attributes, made)))

    def _mark(self, ports: Sequence[Port]) -> None:
        """Write down the inputs' attributes."""
        self.main.arg_attrs = ArrayAttr(list(map(_attributes, ports)))

    @property
    def ranges(self) -> Ranges:
        """The ranges of the symbols."""
        attr = self.module.attributes.get(_RANGES)
        if not isinstance(attr, DictionaryAttr):
            return Ranges({})
        try:
            return Ranges.from_json({k: cast(StringAttr, v).data for k, v in attr.data.items()})
        except (dims.DimError, AttributeError) as error:
            raise InvalidModelError("the module's gcomp.ranges are not valid", why=str(error)) from None

    @ranges.setter
    def ranges(self, ranges: Ranges) -> None:
        self._set(_RANGES, DictionaryAttr({k: StringAttr(v) for k, v in ranges.to_json().items()}), bool(len(ranges)))

    @property
    def constraints(self) -> list[Constraint]:
        """What must hold of the symbols for the program to be defined, checked at each call."""
        attr = self.module.attributes.get(_CONSTRAINTS)
        if attr is None:
            return []
        try:
            texts = [cast(StringAttr, a).data for a in cast("ArrayAttr[Attribute]", attr).data]
            return [Constraint.from_json(json.loads(t)) for t in texts]
        except (dims.DimError, AttributeError, ValueError, RecursionError) as error:
            raise InvalidModelError("the module's gcomp.constraints are not valid", why=str(error)) from None

    @constraints.setter
    def constraints(self, constraints: Sequence[Constraint]) -> None:
        texts = dict.fromkeys(json.dumps(c.to_json(), sort_keys=True) for c in constraints)
        self._set(_CONSTRAINTS, ArrayAttr([StringAttr(t) for t in texts]), bool(texts))

    def _set(self, key: str, attr: Attribute, keep: bool) -> None:
        if keep:
            self.module.attributes[key] = attr
        else:
            self.module.attributes.pop(key, None)

    # ---- whole-program operations ----

    def verify(self, stage: str = "") -> None:
        """Verify every op. Raises VerificationError."""
        text.verify_module(self.module, stage)

    def text(self, *, generic: bool = False, locations: bool = False) -> str:
        """The program's IR text."""
        return text.print_module(self.module, generic=generic, locations=locations)

    def _repr_html_(self) -> str:
        """For notebooks: the text, folded under a line that says how large it is."""
        ports = [f"{len(ports)} {kind}{'s' * (len(ports) != 1)}" for kind, ports in
                 (("input", self.inputs()), ("output", self.outputs()))]  # fmt: skip
        return html_text(self.text(), f"{self.op_count():,} ops, {ports[0]}, {ports[1]}, {len(self.weights)} weights")

    def clone(self) -> Program:
        """A copy of the module that shares the weights' arrays. For tests and reports; passes work in place."""
        weights = Weights()
        for name, array in self.weights.items():
            weights.add(name, array)
        copies: dict[SSAValue, SSAValue] = {}
        module = self.module.clone(copies)
        names = {name: copies[value] for name, value in self.names.items() if value in copies}
        return Program(module, weights, self.result_structure, self.argument_structure, names, dict(self.initial))

    def bind(self, sizes: Mapping[str, int]) -> Program:
        """A copy in which the named symbols have their sizes."""
        bound = self.clone()
        mapping: dict[str, Size] = dict(sizes)
        for op in bound.ops():
            change_sizes(op, lambda size: dims.substitute(size, mapping))
        for function in bound.functions():
            function.update_function_type()
        return bound


def _attributes(port: Port) -> DictionaryAttr:
    """What an input or output says about itself."""
    attr: dict[str, Attribute] = {_NAME: StringAttr(port.name)}
    if port.donated:
        attr[_DONATED] = UnitAttr()
    if port.default is not None:
        attr[_DEFAULT] = IntegerAttr(port.default, cast(Any, element_type(port.dtype)))
    if port.state is not None:
        attr[_STATE] = StringAttr(port.state)
    if port.key is not None:
        attr[_KEY] = StringAttr(port.key)
    if port.names is not None:
        attr[_NAMES] = ArrayAttr([StringAttr(name) for name in port.names])
    if port.sharding is not None:
        attr[SHARDING] = ShardingAttr(port.sharding)
    return DictionaryAttr(attr)


def _ports(attrs: Attribute | None, types: Sequence[Attribute], kind: str) -> list[Port]:
    named: list[Mapping[str, Attribute]] = [{} for _ in types]
    if isinstance(attrs, ArrayAttr):
        entries = cast("ArrayAttr[DictionaryAttr]", attrs).data
        named = [e.data for e in entries] if len(entries) == len(types) else named
    ports: list[Port] = []
    taken: set[str] = set()
    for i, (type, attr) in enumerate(zip(types, named, strict=True)):
        name = _text(attr, _NAME)
        label = f"{kind}{i}" if name is None else name
        if not is_tensor(type):
            raise UnsupportedError(
                f"the program's {kind} {label!r} is not a tensor",
                why=f"it is {type}",
                fix="order side effects inside the program, and flatten tuples",
            )
        if label in taken:
            raise InvalidModelError(f"two {kind}s of the program have the name {label!r}", where=f"{kind} {i}")
        taken.add(label)
        dtype, shape = dtype_text(type), shape_of(type)
        default = _default(attr, dtype, shape, label)
        state, key, names = _text(attr, _STATE), _text(attr, _KEY), _texts(attr, dtype, label)
        ports.append(Port(label, dtype, shape, _DONATED in attr, default, state, key, names, sharding_in(attr)))
    return ports


def _text(attr: Mapping[str, Attribute], name: str) -> str | None:
    return _string(attr.get(name))


def _string(attr: Attribute | None) -> str | None:
    """A string; xDSL reads one that is not ASCII as bytes."""
    if isinstance(attr, BytesAttr):
        return attr.data.decode(errors="replace")
    return attr.data if isinstance(attr, StringAttr) else None


def _texts(attr: Mapping[str, Attribute], dtype: str, label: str) -> tuple[str, ...] | None:
    """The names of an output whose numbers are positions among them."""
    if (found := attr.get(_NAMES)) is None:
        return None
    entries = list(cast("ArrayAttr[Attribute]", found).data) if isinstance(found, ArrayAttr) else []
    names = tuple(text for entry in entries if (text := _string(entry)) is not None)
    if dtype != "i64" or not names or len(names) != len(entries):
        raise InvalidModelError(
            f"the names of {label!r} are not valid",
            why=f"they are {len(entries)} entries, of {dtype}",
            fix="names are strings, at least one, of an output of type i64 that holds their positions",
        )
    return names


def _default(attr: Mapping[str, Attribute], dtype: str, shape: Sequence[Size], label: str) -> int | None:
    found = attr.get(_DEFAULT)
    if found is None:
        return None
    value = cast("IntegerAttr[Any]", found).value.data if isinstance(found, IntegerAttr) else None
    if value is None or len(shape) or not default_fits(value, dtype):
        raise InvalidModelError(
            f"the default of the input {label!r} is not valid",
            why=f"it is {found}, and the input has rank {len(shape)} and element type {dtype}",
            fix="defaults are integers of at most 63 bits, for inputs of rank 0 that hold them",
        )
    return value


def _hint(name: str) -> str | None:
    cleaned = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    return cleaned if cleaned and not cleaned[0].isdigit() else None
