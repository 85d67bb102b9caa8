"""`torch.export` programs: the model as one graph, its parameters as weights, symbolic sizes with their ranges.

Operators that gcomp imports stay as they are; torch's own decompositions replace the others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from functools import lru_cache
from types import BuiltinFunctionType
from typing import Any, cast

from gcomp import dims, owners
from gcomp.dims import Constraint, Dim, Range, Ranges
from gcomp.errors import UnsupportedError, VerificationError
from gcomp.frontends.fx import registry
from gcomp.frontends.fx.context import operator_name
from gcomp.frontends.fx.definitions import DEFINITIONS
from gcomp.frontends.fx.guards import Guards, current, environment_of, range_of, under
from gcomp.frontends.fx.importer import Importer, attributes_of, check_supported, last_line
from gcomp.frontends.fx.numbers import symbols_of_program
from gcomp.frontends.fx.placements import is_placed, place_weights, taken_apart
from gcomp.frontends.fx.torch_api import DECIDED_BY_DATA, NOT_CAPTURED, TORCH_FOLDER, pytree, torch
from gcomp.frontends.fx.values import array_of, size_of, size_of_expression, type_of
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program

Kind = Any
"""A `torch.export.graph_signature.InputKind` or `OutputKind`."""


def export_module(module: Any, args: Sequence[Any], dynamic_shapes: Any = None) -> Program:
    """The program of a `torch.nn.Module` (or a function), exported on example arguments. Parameters that are
    `DTensor`s are weights with shardings.

    Raises UnsupportedError, with the user's line, for what torch.export does not capture.
    """
    target = module if isinstance(module, torch.nn.Module) else _as_module(module)
    if is_placed(target):
        bare, placed = taken_apart(target)
        program = export_module(bare, args, dynamic_shapes)
        place_weights(program, placed)
        return program
    try:
        exported = torch.export.export(target, tuple(args), dynamic_shapes=dynamic_shapes)
    except NOT_CAPTURED as error:
        raise _not_captured(error) from error
    return import_exported(exported)


def _not_captured(error: BaseException) -> UnsupportedError:
    """The error for a model that is not one graph, with the user's line."""
    way = "compile with torch.compile(backend='gcomp'), which breaks the graph there"
    if isinstance(error, DECIDED_BY_DATA):
        way = f"write `torch.cond(condition, function, other_function, (x, ...))` in place of an `if` on data, or {way}"
    return UnsupportedError(
        "torch.export does not capture the model as one graph",
        where=owners.line_of(error.__traceback__, TORCH_FOLDER),
        why=str(error).partition("\n\n")[0].partition("For more information")[0].strip(),
        fix=way,
    )


def import_exported(exported: Any) -> Program:
    """The program of a `torch.export.ExportedProgram`: its user inputs and outputs; parameters are weights.

    Raises UnsupportedError for operators without importer, and for a model that changes its buffers or inputs.
    """
    table = decompositions()
    try:
        with warnings.catch_warnings():
            # Of what torch itself does with its own classes.
            warnings.simplefilter("ignore", FutureWarning)
            lowered = exported.run_decompositions(table)
    except Exception as error:
        raise UnsupportedError(
            "torch does not decompose the program into operators without side effects",
            where=last_line(str(error)),
            why=f"{type(error).__name__}: {str(error).strip().splitlines()[0]}",
        ) from error
    check_supported(lowered.graph_module)
    values = [node.meta.get("val") for node in lowered.graph.nodes]
    with under(Guards(environment_of(values), size_of_expression)):
        return _Import(lowered).run()


@lru_cache(1)
def decompositions() -> Mapping[Any, Callable[..., Any]]:
    """torch's decompositions of the operators that gcomp does not import itself."""
    others: Mapping[Any, Callable[..., Any]] = torch._decomp.decomposition_table
    table = {op: function for op, function in others.items() if not _is_mutable(op)}
    # The definitions of composites there have views of their own, which torch does not see through; export's do not.
    table |= dict(torch.export.default_decompositions())
    registry.load_families()
    table |= DEFINITIONS
    return {op: function for op, function in table.items() if not registry.is_known(operator_name(op))}


def _is_mutable(operator: Any) -> bool:
    """Whether an operator changes its arguments: torch puts one that does not in its place, before it decomposes."""
    schema = getattr(operator, "_schema", None)
    return schema is not None and schema.is_mutable


class _Import:
    """One exported program."""

    def __init__(self, exported: Any) -> None:
        self.exported = exported
        self.signature = exported.graph_signature
        self.kinds: Any = torch.export.graph_signature.InputKind
        self.placeholders = {n.name: n for n in exported.graph.nodes if n.op == "placeholder"}

    def run(self) -> Program:
        self._check_mutations()
        inputs = [s for s in self.signature.input_specs if s.kind == self.kinds.USER_INPUT]
        tensors = [s.arg.name for s in inputs if _is_tensor(self.placeholders[s.arg.name])]
        types = [type_of(self.placeholders[name].meta["val"]) for name in tensors]
        program = Program.empty(list(zip(tensors, types, strict=True)))
        program.ranges = current().narrow(Ranges(self._ranges()))
        builder = Builder(program)
        given = dict(zip(tensors, program.block.args, strict=True))
        values = [given.get(s.arg.name, self._value_of_spec(builder, s)) for s in self.signature.input_specs]
        importer = Importer(builder)
        results = importer.run(self.exported.graph, values, attributes_of(self.exported.graph_module))
        self._finish(program, builder, results)
        importer.numbers.settle(())
        importer.streams.check()
        if importer.streams.seed is not None:
            # Callers may give the seed, which is no argument of the model's own.
            program.argument_structure = None
        used = symbols_of_program(program)
        program.ranges = Ranges({symbol: found for symbol, found in program.ranges.items() if symbol in used})
        program.constraints = [*builder.constraints, *current().constraints(used), *self._bounds(program.ranges, used)]
        verify_import(program)
        return program

    def _bounds(self, ranges: Ranges, used: Set[str]) -> list[Constraint]:
        """The ranges of sizes that are formulas in the program, where a guard said so of their symbols.

        A least size of 2 says only that torch looked at no smaller one; torch runs those, too.
        """
        found: list[Constraint] = []
        for expression, values in self.exported.range_constraints.items():
            size, known = size_of(expression), range_of(values)
            if not isinstance(size, Dim) or str(size) in used or not dims.symbols_of(size) <= used:
                continue
            sides = [*([(known.lo, size)] if known.lo > 2 else []), *([] if known.hi is None else [(size, known.hi)])]
            found += [Constraint("le", a, b, f"the range of {size}") for a, b in sides if not ranges.less_equal(a, b)]
        return found

    def _ranges(self) -> dict[str, Range]:
        return {str(symbol): range_of(known) for symbol, known in self.exported.range_constraints.items()}

    def _value_of_spec(self, builder: Builder, spec: Any) -> Any:
        """What stands for an input that the caller does not pass: a weight, or a plain value."""
        if spec.kind in (self.kinds.PARAMETER, self.kinds.BUFFER):
            found = self.exported.state_dict.get(spec.target)
            found = self.exported.constants[spec.target] if found is None else found
            return builder.weight(spec.target, array_of(found))
        if spec.kind == self.kinds.CONSTANT_TENSOR:
            return builder.weight(spec.target, array_of(self.exported.constants[spec.target]))
        if spec.kind == self.kinds.TOKEN:
            return None
        if spec.kind == self.kinds.USER_INPUT and hasattr(spec.arg, "value"):
            return spec.arg.value
        if spec.kind == self.kinds.USER_INPUT and _is_tensor(self.placeholders[spec.arg.name]):
            return None
        raise UnsupportedError(f"gcomp does not import an input of kind {spec.kind.name}", where=str(spec.arg))

    def _check_mutations(self) -> None:
        kinds: Any = torch.export.graph_signature.OutputKind
        kept = (kinds.USER_OUTPUT, kinds.TOKEN)
        changed = [s.target for s in self.signature.output_specs if s.kind not in kept]
        if changed:
            raise UnsupportedError(
                f"the model changes its buffers or inputs: {', '.join(map(str, changed))}",
                why="a compiled model keeps nothing between calls",
                fix="call model.eval() first, return the new values, or use torch.compile(backend='gcomp')",
            )

    def _finish(self, program: Program, builder: Builder, results: Sequence[Any]) -> None:
        outputs: list[tuple[str, Any]] = []
        leaves: list[Any] = []
        tokens = [s.kind == torch.export.graph_signature.OutputKind.TOKEN for s in self.signature.output_specs]
        for value, is_token in zip(results, tokens, strict=True):
            if is_token:
                continue
            if hasattr(value, "owner"):
                leaves.append(len(outputs))
                outputs.append((f"r{len(outputs)}", value))
            else:
                leaves.append({"constant": value} if value is not None else None)
        program.finish(outputs)
        spec = self.exported.call_spec
        program.result_structure = _structure(pytree.tree_unflatten([_Leaf(leaf) for leaf in leaves], spec.out_spec))
        program.argument_structure = self._arguments(spec.in_spec)

    def _arguments(self, spec: Any) -> Any:
        """The structure of (args, kwargs); None where an argument is a plain value."""
        inputs = [s for s in self.signature.input_specs if s.kind == self.kinds.USER_INPUT]
        if any(hasattr(s.arg, "value") and s.arg.value is not None for s in inputs):
            return None
        numbers = iter(range(len(inputs)))
        leaves = [_Leaf(None if hasattr(s.arg, "value") else next(numbers)) for s in inputs]
        return _structure(pytree.tree_unflatten(leaves, spec))


def verify_import(program: Program) -> None:
    """Verify what was imported. UnsupportedError where symbolic sizes do not agree that numbers would."""
    try:
        program.verify("as imported")
    except VerificationError as error:
        if not any(dims.symbols_of(size) for port in program.inputs() for size in port.shape):
            raise
        raise UnsupportedError(
            "gcomp cannot show that sizes of the model agree", where=error.where, why=error.why,
            fix="bound the sizes with torch.export.Dim(min=..., max=...), or make them static",
        ) from error  # fmt: skip


class _Leaf:
    """A leaf of a pytree, with the structure that stands for it."""

    def __init__(self, structure: Any) -> None:
        self.structure = structure


def _structure(value: Any) -> Any:
    """A pytree of `_Leaf`s as the runtime's structure (`gcomp.runtime.structure`); None where JSON cannot hold it."""
    try:
        return _node(value)
    except TypeError:
        return None


def _node(value: Any) -> Any:
    if isinstance(value, _Leaf):
        return value.structure
    if type(value) in (tuple, list):
        return {type(value).__name__: [_node(v) for v in value]}
    # Outputs of transformers are mappings with attributes; their keys are strings.
    if isinstance(value, Mapping):
        entries = cast("Mapping[Any, Any]", value)
        if all(type(key) in (str, int) for key in entries):
            return {"dict": [[key, _node(v)] for key, v in entries.items()]}
    raise TypeError(f"JSON does not hold a {type(cast(object, value)).__name__}")


def _is_tensor(node: Any) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _as_module(function: Callable[..., Any]) -> Any:
    """A module that calls a function, and whose inputs have the names of its parameters."""

    def plain(*args: Any) -> Any:
        return function(*args)

    module = torch.nn.Module()
    # A builtin has no signature.
    module.forward = plain if isinstance(function, BuiltinFunctionType) else function
    return module


__all__ = ["decompositions", "export_module", "import_exported"]
