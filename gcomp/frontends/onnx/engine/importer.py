"""ONNX models to graph-level programs.

A model is read (`reading`), checked against ONNX's schemas (`schemas`), and walked once in topological order: each
node's importer (`registry`) builds StableHLO. Initializers become weights without being copied; values that depend
only on constants and shapes are folded on the way (`folding`), so that exports with dynamic dims keep them symbolic.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeAlias

import onnx
import onnx_ir
from xdsl.dialects.builtin import CallSiteLoc, LocationAttr
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from gcomp import dims
from gcomp.dims import Dim, DimSpec, Ranges
from gcomp.errors import GcompError, InternalError, InvalidModelError, UnsupportedError, VerificationError
from gcomp.frontends.onnx.engine import folding, functions, inference, registry, schemas, strings
from gcomp.frontends.onnx.engine.bounds import BoundedBuilder
from gcomp.frontends.onnx.engine.context import NodeContext, label
from gcomp.frontends.onnx.engine.devices import Devices
from gcomp.frontends.onnx.engine.ordering import describe, reads, sort_nodes
from gcomp.frontends.onnx.engine.parameters import Frozen, NeedsConstantsError, Open, Opening
from gcomp.frontends.onnx.engine.scopes import DataDependentSymbols, Scope
from gcomp.frontends.onnx.engine.shortening import shorten_sizes
from gcomp.frontends.onnx.engine.streams import Streams
from gcomp.frontends.onnx.model.containers import AnyValue, NamesValue, leaf_names, leaves, rebuilt, result_structure
from gcomp.frontends.onnx.model.declarations import as_declared
from gcomp.frontends.onnx.model.reading import forget_tensors, read_model
from gcomp.frontends.onnx.model.signature import Signature, Structure, constant_inputs
from gcomp.frontends.onnx.model.values import Array, Value
from gcomp.ir import locations
from gcomp.ir.builder import Builder
from gcomp.ir.host import symbols_in
from gcomp.ir.program import Program

Source: TypeAlias = "str | os.PathLike[str] | bytes | onnx.ModelProto"

OLDEST_OPSET = 1


def import_onnx(
    source: Source,
    *,
    dims: Mapping[str, DimSpec] | None = None,
    constants: Mapping[str, Array] | None = None,
    structures: Mapping[str, Structure] | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> Program:
    """The program of an ONNX model given as a file, its bytes or a protobuf.

    `dims` binds symbolic dims of the inputs: to a size (`{"batch": 4}`) or a range (`"1..64"`, `(1, 64)`). `constants`
    fixes inputs for good (shapes, axes: whatever decides result sizes); they are then no inputs of the program.
    `structures` says of inputs that are sequences how many elements they have (`{"xs": 3}`), or which shapes
    (`{"xs": [(2, 3), ("n", 3)]}`, None for any size), and of optionals what they hold: None for nothing, 1 for a
    tensor, the structure of a sequence. Their tensors are the program's inputs `xs.0`, `xs.1` and so on.
    `folder` is where external data lies. Raises InvalidModelError for a model that is damaged or contradicts itself,
    and one UnsupportedError that lists every node that gcomp does not import.
    """
    model = read_model(source, folder=folder)
    with _importing(model, source) as where:
        return Importer(model, where, dims or {}, constants or {}, structures or {}).run()


def import_open(
    source: Source,
    *,
    frozen: Frozen,
    training: bool = False,
    dims: Mapping[str, DimSpec] | None = None,
    constants: Mapping[str, Array] | None = None,
    structures: Mapping[str, Structure] | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> Open:
    """The program of an ONNX model whose initializers of floats are inputs, but for those that `frozen` gives a reason.

    With `training`, BatchNormalization and Dropout do what they do in training, however they were exported. The other
    arguments are those of `import_onnx`.
    """
    model = read_model(source, folder=folder)
    opening = Opening(frozen, training)
    with _importing(model, source) as where:
        while True:
            importer = Importer(model, where, dims or {}, constants or {}, structures or {}, opening)
            try:
                program = importer.run()
            except NeedsConstantsError as error:
                opening = opening.again(error)
                continue
            updates = {name: f"next({name})" for name in opening.updates}
            return Open(program, opening.arrays, opening.fixed, updates)


@contextmanager
def _importing(model: onnx_ir.Model, source: Source) -> Generator[str]:
    """Where a model comes from; what else may go wrong with it becomes errors, and its elements are let go."""
    where = os.fspath(source) if isinstance(source, (str, os.PathLike)) else "the model"
    try:
        yield where
    except RecursionError:
        raise UnsupportedError("The model's graphs and functions are nested too deeply.", where=where) from None
    except MemoryError as error:
        raise UnsupportedError("There is not enough memory to import the model.", where=where, why=str(error)) from None
    finally:
        forget_tensors(model)


class Importer:
    """One import: the program being built, and what is known of its symbols."""

    def __init__(
        self,
        model: onnx_ir.Model,
        where: str,
        dims: Mapping[str, DimSpec],
        constants: Mapping[str, Array],
        structures: Mapping[str, Structure],
        opening: Opening | None = None,
    ) -> None:
        self.model = model
        self.opening = opening or Opening()
        """Which initializers are inputs. By default none."""
        self.where = where
        self.opsets = {functions.domain_of(d): v for d, v in model.opset_imports.items()}
        self.functions = functions.FunctionTable(model)
        self.constants = constants
        self.signature = Signature.of(model, where, dims, constants, structures)
        self.ranges: Ranges = self.signature.ranges
        """What is known of the symbols: the caller's ranges, narrowed by the constraints noted so far."""
        self.program = Program.empty([(p.name, p.type) for p in self.signature.inputs])
        self.devices = Devices(model, self.program, where)
        self.bounded = BoundedBuilder(self.program)
        self.builder: Builder = self.bounded
        self.streams = Streams(self.builder)
        self.short: dict[Dim, Dim] = {}
        """Formulas that were too large to go on with -> the symbols that stand for them."""
        self.data_dependent = DataDependentSymbols(symbols_in([arg.type for arg in self.program.block.args]))

    def run(self) -> Program:
        """Import the whole model."""
        graph = self.model.graph
        self._check_opsets()
        self._check_supported()
        scope = Scope(self.opsets)
        args = iter([Value.of(arg) for arg in self.program.block.args])
        for argument in self.signature.arguments:
            scope.values[argument.value] = rebuilt(argument.form, args)
        for value, array in constant_inputs(graph, self.constants, self.where):
            scope.values[value] = Value.constant(array, str(value.name))
        scope.values.update(self.opening.begin(graph, self.program, self.where))
        self.run_graph(graph, scope)
        self.opening.end()
        outputs = [(str(value.name), self._result(scope, value)) for value in graph.outputs]
        names = [leaf for name, value in outputs for leaf in leaf_names(name, value)]
        tensors = [leaf.read(self.builder) for _, value in outputs for leaf in leaves(value)]
        updates = [(f"next({name})", value) for name, value in self.opening.updates.items()]
        self.program.finish([*zip(names, tensors, strict=True), *updates])
        self.program.hold_names({name: value.names for name, value in outputs if isinstance(value, NamesValue)})
        self.program.result_structure = result_structure(value for _, value in outputs)
        self.streams.check()
        self.program.ranges = self.signature.ranges.with_ranges(self.data_dependent.ranges)
        self.program.constraints = self.builder.constraints
        self._verify()
        return self.program

    def _verify(self) -> None:
        """Whatever the importers let through of a model that contradicts itself, the ops' verifiers refuse."""
        try:
            self.program.verify("as imported")
        except VerificationError as error:
            symbolic = any(isinstance(s, Dim) for port in self.program.inputs() for s in port.shape)
            kind = UnsupportedError if symbolic else InvalidModelError
            raise kind(
                "A node of the model contradicts its inputs.",
                where=f"{self.where}: {error.where}",
                why=error.why,
                fix="Bind the symbolic dims with dims=." if symbolic else None,
            ) from error

    def _result(self, scope: Scope, value: onnx_ir.Value) -> AnyValue:
        found = scope.find(value)
        if found is None:
            raise InvalidModelError(f"The graph's output `{value.name}` is not computed.", where=self.where)
        return as_declared(found, value, f"output `{value.name}`", self.where)

    # ---- checks before anything is built ----

    def _check_opsets(self) -> None:
        if not self.opsets and (self.model.ir_version or 0) < 3:
            # Before IR version 3 there were no opset imports.
            self.opsets[""] = OLDEST_OPSET
        version, newest = self.opsets.get("", OLDEST_OPSET), onnx.defs.onnx_opset_version()
        if version < OLDEST_OPSET:
            raise InvalidModelError(
                f"The model uses ONNX opset {version}.",
                where=self.where,
                why=f"ONNX's opsets begin with {OLDEST_OPSET}.",
            )
        if version > newest:
            raise UnsupportedError(
                f"The model uses ONNX opset {version}.",
                where=self.where,
                why=f"The installed onnx package knows opsets up to {newest}.",
                fix="Install a newer onnx package, or export the model for an older opset.",
            )

    def _check_supported(self) -> None:
        """One error for all nodes that have no importer."""
        missing: dict[tuple[str, str, int], list[str]] = {}
        graphs = [(self.model.graph, self.opsets)]
        graphs += [(f.graph, self.functions.opsets(f, self.opsets)) for f in self.functions.reachable()]
        for graph, opsets in graphs:
            for node in graph.all_nodes():
                domain = functions.domain_of(node.domain)
                version = opsets.get(domain)
                if self.functions.find(node) is not None:
                    continue
                if version is None:
                    raise InvalidModelError(
                        f"The model uses {node.op_type} of `{node.domain or 'ai.onnx'}` without importing that domain.",
                        where=f"{self.where}: {describe(node)}",
                        fix="Add the domain to the model's opset_import.",
                    )
                if not self._importable(domain, node.op_type, version):
                    missing.setdefault((domain, node.op_type, version), []).append(label(node))
        if missing:
            raise _unsupported_error(missing, self.where)

    def _importable(self, domain: str, operator: str, version: int) -> bool:
        if registry.lookup(domain, operator, version) is not None:
            return True
        return functions.has_body(domain, operator, version)

    # ---- walking graphs ----

    def run_graph(self, graph: onnx_ir.Graph, scope: Scope) -> None:
        """Import a graph's initializers and nodes into `scope`."""
        where = f"{self.where}: graph `{graph.name}`"
        for name, value in graph.initializers.items():
            if value in scope.values:
                continue
            if value.const_value is None:
                raise InvalidModelError(f"The initializer `{name}` has no data.", where=where)
            scope.values[value] = strings.constant_of(value.const_value, f"{where}, `{name}`", name)
        for node in sort_nodes(graph, where):
            self._run_node(node, scope)

    def run_body(self, ctx: NodeContext, graph: onnx_ir.Graph, arguments: Sequence[AnyValue]) -> list[AnyValue]:
        """Import a node's subgraph at the builder's point, with its inputs bound; the values of its outputs."""
        outer = ctx.scope
        scope = Scope(outer.opsets, outer, attributes=outer.attributes, caller=outer.caller)
        if len(arguments) != len(graph.inputs):
            ctx.invalid(
                f"its graph `{graph.name}` takes {len(graph.inputs)} inputs", f"the node gives it {len(arguments)}"
            )
        for value, argument in zip(graph.inputs, arguments, strict=True):
            what = f"input `{value.name}` of its graph `{graph.name}`"
            scope.values[value] = as_declared(argument, value, what, ctx.where)
        self.run_graph(graph, scope)
        results: list[AnyValue] = []
        for value in graph.outputs:
            what = f"output `{value.name}` of its graph `{graph.name}`"
            if (found := scope.find(value)) is None:
                ctx.invalid(f"the {what} is not computed", "no node and no outer graph gives it")
            results.append(as_declared(found, value, what, ctx.where))
        return results

    def run_again(
        self, ctx: NodeContext, given: Mapping[onnx_ir.Value, AnyValue], wanted: onnx_ir.Value
    ) -> AnyValue | None:
        """Import once more what computes a value of the node's graph from other values; names stay with the first."""
        outer, graph, names = ctx.scope, ctx.node.graph, dict(self.program.names)
        scope = Scope(outer.opsets, outer, dict(given), outer.attributes, outer.caller)
        needed, pending = set[onnx_ir.Node](), [wanted]
        while pending:
            value = pending.pop()
            node = None if value in given else value.producer()
            if node is not None and node.graph is graph and node not in needed:
                needed.add(node)
                pending += reads(node)
        if ctx.node in needed:
            ctx.invalid(f"it is itself part of what computes `{wanted.name}`", "a derivative cannot be its own input")
        for node in sort_nodes(graph, ctx.where) if isinstance(graph, onnx_ir.Graph) else ():
            if node in needed:
                self._run_node(node, scope)
        self.program.names = names
        return scope.find(wanted)

    def _run_node(self, node: onnx_ir.Node, scope: Scope) -> None:
        where = f"{self.where}: {describe(node)}"
        if scope.caller is not None:
            where += f", called at {locations.describe(scope.caller)}"
        values = [None if v is None else self._operand(v, scope, where) for v in node.inputs]
        while values and values[-1] is None:
            values.pop()
        here = locations.named_location(label(node), _operator_location(node.op_type))
        location = here if scope.caller is None else CallSiteLoc(here, scope.caller)
        domain = functions.domain_of(node.domain)
        ctx = NodeContext(self, scope, node, scope.opsets.get(domain, 1), values, where)
        with self.builder.at(location), translated_errors(ctx), self.bounded.bounding(ctx):
            if node.device_configurations:
                ctx.values = self.devices.place(self.builder, node, node.inputs, values)
            results = self._results(ctx, domain)
            if node.device_configurations:
                results = self.devices.place(self.builder, node, node.outputs, results)
            if len(results) < len([o for o in node.outputs if o.name]):
                ctx.unsupported(f"it has {len(node.outputs)} outputs, of which gcomp computes {len(results)}")
        for output, result in zip(node.outputs, results, strict=False):
            if result is not None and output.name:
                scope.values[output] = Value.of(result) if isinstance(result, SSAValue) else result
                if isinstance(result, SSAValue):
                    self.builder.program.names.setdefault(output.name, result)

    def _results(self, ctx: NodeContext, domain: str) -> registry.Results:
        function = self.functions.find(ctx.node)
        if function is not None:
            return self._call(ctx, function)
        schemas.check_node(ctx, domain)
        mark = len(self.builder.constraints), self.ranges
        try:
            return self._import(ctx, domain)
        except dims.DimLimitError:
            del self.builder.constraints[mark[0] :]
            self.ranges = mark[1]
            if (again := shorten_sizes(ctx)) is None:
                raise
            return self._import(again, domain)

    def _import(self, ctx: NodeContext, domain: str) -> registry.Results:
        if (moved := strings.by_positions(ctx, domain)) is not None:
            results = list(self._import(moved.ctx, domain))
            return [None if r is None else moved.wrap(r) for r in results]
        folded = folding.fold(ctx) if not domain else None
        if folded is not None:
            return folded
        importer = registry.lookup(domain, ctx.op_type, ctx.opset)
        if importer is not None:
            return importer(ctx)
        return self.expand(ctx)

    def expand(self, ctx: NodeContext) -> registry.Results:
        """Import a node by ONNX's own definition of its operator as a function."""
        domain = functions.domain_of(ctx.node.domain)
        if (refused := inference.contradiction(ctx, domain)) is not None:
            ctx.invalid("the node contradicts its inputs", refused)
        return self._call(ctx, functions.body_of(ctx, domain), functions.defaults_of(domain, ctx.op_type, ctx.opset))

    def _call(
        self, ctx: NodeContext, function: onnx_ir.Function, defaults: Mapping[str, onnx_ir.Attr] | None = None
    ) -> registry.Results:
        """Inline a function: of the model, or of an operator's definition."""
        undefined = onnx_ir.AttributeType.UNDEFINED
        attributes = dict(defaults or {})
        attributes |= {n: a for n, a in function.attributes.items() if a.type != undefined and a.value is not None}
        attributes |= {n: a for n in ctx.node.attributes if (a := ctx.attribute(n)) is not None}
        opsets = self.functions.opsets(function, ctx.scope.opsets)
        scope = Scope(opsets, attributes=attributes, caller=self.builder.location)
        if len(ctx.values) > len(function.inputs):
            ctx.invalid(f"it has {len(ctx.values)} inputs", f"the function takes {len(function.inputs)}")
        for formal, actual in zip(function.inputs, ctx.values, strict=False):
            if actual is not None:
                scope.values[formal] = actual
        self.run_graph(function.graph, scope)
        return [scope.find(value) for value in function.outputs]

    def _operand(self, value: onnx_ir.Value, scope: Scope, where: str) -> AnyValue | None:
        found = scope.find(value)
        if found is None and value.name and not (scope.caller is not None and value.is_graph_input()):
            raise InvalidModelError(f"The value `{value.name}` is used and never computed.", where=where)
        return found


class translated_errors:
    """Say which node an error of the layers below belongs to."""

    def __init__(self, ctx: NodeContext) -> None:
        self.ctx = ctx

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        match error:
            case None | GcompError():
                return
            case VerifyException() | dims.DimError():
                why = str(error).strip().splitlines()[-1]
                tensors = [t for v in self.ctx.values if v is not None for t in leaves(v)]
                if any(isinstance(s, Dim) for t in tensors for s in t.shape):
                    raise UnsupportedError(
                        f"gcomp does not import this {self.ctx.op_type} with symbolic sizes.",
                        where=self.ctx.where,
                        why=why,
                        fix="Bind the symbolic dims with dims=.",
                    ) from error
                raise InvalidModelError(
                    f"The {self.ctx.op_type} node contradicts its inputs.", where=self.ctx.where, why=why
                ) from error
            case ArithmeticError() | AttributeError() | AssertionError() | LookupError() | TypeError() | ValueError():
                domain = functions.domain_of(self.ctx.node.domain)
                if (refused := inference.contradiction(self.ctx, domain)) is not None:
                    raise InvalidModelError(
                        f"The {self.ctx.op_type} node contradicts its inputs.", where=self.ctx.where, why=refused
                    ) from error
                raise InternalError(
                    f"gcomp failed to import a {self.ctx.op_type} node.",
                    where=self.ctx.where,
                    why=f"{type(error).__name__}: {error}",
                    fix="If onnx.checker accepts the model, please report it.",
                ) from error
            case _:
                return


@lru_cache(512)
def _operator_location(operator: str) -> LocationAttr:
    return locations.named_location(operator)


def _unsupported_error(missing: Mapping[tuple[str, str, int], Sequence[str]], where: str) -> UnsupportedError:
    lines: list[str] = []
    for (domain, operator, version), names in sorted(missing.items()):
        shown = ", ".join(f"`{n}`" for n in names)
        lines.append(f"{operator} (domain {domain or 'ai.onnx'}, opset {version}): {shown}")
    count = sum(map(len, missing.values()))
    known = [op for domain, op, _ in missing if schemas.exists(domain, op)]
    return UnsupportedError(
        f"gcomp does not import {count} node{'s' if count > 1 else ''} of the model:\n    " + "\n    ".join(lines),
        where=where,
        why="these operators have no importer at this opset version"
        if len(known) == len(missing)
        else "some of these operators are not ONNX's: a custom op needs a model-local function that defines it",
        fix="export the model without them; docs/generated/onnx_coverage.md lists the operators that gcomp imports",
    )
