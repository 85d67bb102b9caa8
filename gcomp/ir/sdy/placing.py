"""What a program says of where its values lie: the meshes of a module, and the shardings of arguments and results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import Rewriter

from gcomp.errors import InvalidModelError
from gcomp.ir.op import GraphOp
from gcomp.ir.sdy.attributes import SHARDING, ShardingAttr, ShardingPerValueAttr, sharding_in
from gcomp.ir.sdy.ops import ManualComputationOp, MeshOp, PlacingOp
from gcomp.ir.stablehlo.reduction import applied_op
from gcomp.ir.walking import walk
from gcomp.sharding import Mesh, Sharding


def meshes_of(module: Operation) -> dict[str, Mesh]:
    """The meshes of a module by name."""
    blocks = (block for region in module.regions for block in region.blocks)
    return {op.sym_name.data: op.mesh.data for block in blocks for op in block.ops if isinstance(op, MeshOp)}


def all_meshes(module: Operation) -> Iterator[Mesh]:
    """The meshes of a module, those that shardings hold themselves included."""
    yield from meshes_of(module).values()
    for op in filter(says_something, walk(module)):
        for _, _, sharding in placed(op):
            if isinstance(sharding.mesh, Mesh):
                yield sharding.mesh


def mesh_of(sharding: Sharding, meshes: Mapping[str, Mesh]) -> Mesh:
    """The mesh that a sharding is on. InvalidModelError where the module has none of its name."""
    if isinstance(sharding.mesh, Mesh):
        return sharding.mesh
    if sharding.mesh not in meshes:
        raise InvalidModelError(f"there is no mesh @{sharding.mesh}", fix="declare it: sdy.mesh @name = <[...]>")
    return meshes[sharding.mesh]


def add_mesh(module: ModuleOp, mesh: Mesh, name: str = "mesh") -> str:
    """Give a mesh a name in a module, unless it has one; the name."""
    meshes = meshes_of(module)
    if (found := next((n for n, m in meshes.items() if m == mesh), None)) is not None:
        return found
    free = next(n for n in (name, *(f"{name}_{i}" for i in range(len(meshes)))) if n not in meshes)
    op, block = MeshOp.named(free, mesh), module.body.block
    if block.first_op is None:
        block.add_op(op)
    else:
        block.insert_op_before(op, block.first_op)
    return free


def folded_op(region: Region) -> type[GraphOp] | None:
    """The binary op that a region applies to its two arguments, as `applied_op` has it, wherever the result lies.

    JAX writes where values of bodies lie.
    """
    if not any(isinstance(op, PlacingOp) for block in region.blocks for op in block.ops):
        return applied_op(region)
    bare = region.clone()
    for op in list(bare.block.ops):
        if isinstance(op, PlacingOp):
            op.result.replace_all_uses_with(op.input)
            Rewriter.erase_op(op)
    return applied_op(bare)


# ---- values --------------------------------------------------------------------------------------------------------


def sharding_of(value: SSAValue) -> Sharding | None:
    """What a function's argument, or an op's result, says of how it lies."""
    if isinstance(value, BlockArgument):
        around = value.block.parent_op()
        return argument_shardings(around)[value.index] if isinstance(around, FuncOp) else None
    result = cast(OpResult, value)
    op = result.op
    if isinstance(op, PlacingOp):
        return op.layout
    if isinstance(op, ManualComputationOp):
        return op.outer[result.index]
    found = op.attributes.get(SHARDING)
    return found.data[result.index] if isinstance(found, ShardingPerValueAttr) else None


def set_sharding(op: Operation, shardings: Sequence[Sharding]) -> None:
    """Say how the results of an op lie, one sharding each."""
    op.attributes[SHARDING] = ShardingPerValueAttr(tuple(shardings))


def argument_shardings(function: FuncOp) -> list[Sharding | None]:
    """What a function says of its arguments."""
    return _shardings(function.arg_attrs, len(function.function_type.inputs))


def result_shardings(function: FuncOp) -> list[Sharding | None]:
    """What a function says of its results."""
    return _shardings(function.res_attrs, len(function.function_type.outputs))


def set_argument_shardings(function: FuncOp, shardings: Sequence[Sharding | None]) -> None:
    """Say how a function's arguments lie; None says nothing."""
    function.arg_attrs = _with(function.arg_attrs, shardings)


def set_result_shardings(function: FuncOp, shardings: Sequence[Sharding | None]) -> None:
    """Say how a function's results lie; None says nothing."""
    function.res_attrs = _with(function.res_attrs, shardings)


def _entries(attrs: Attribute | None, count: int) -> list[Mapping[str, Attribute]]:
    entries = cast("ArrayAttr[DictionaryAttr]", attrs).data if isinstance(attrs, ArrayAttr) else ()
    return [entry.data for entry in entries] if len(entries) == count else [{} for _ in range(count)]


def _shardings(attrs: Attribute | None, count: int) -> list[Sharding | None]:
    return [sharding_in(entry) for entry in _entries(attrs, count)]


def _with(attrs: Attribute | None, shardings: Sequence[Sharding | None]) -> ArrayAttr[DictionaryAttr]:
    said: list[DictionaryAttr] = []
    for entry, sharding in zip(_entries(attrs, len(shardings)), shardings, strict=True):
        rest = {name: attr for name, attr in entry.items() if name != SHARDING}
        said.append(DictionaryAttr(rest if sharding is None else {**rest, SHARDING: ShardingAttr(sharding)}))
    return ArrayAttr(said)


def is_sharded(module: Operation) -> bool:
    """Whether a module says anything of devices: it has a mesh, or an op or attribute of Shardy."""
    return any(says_something(op) for op in walk(module))


def says_something(op: Operation) -> bool:
    """Whether an op itself says anything of devices."""
    if op.name.startswith("sdy.") or SHARDING in op.attributes:
        return True
    return isinstance(op, FuncOp) and any((*argument_shardings(op), *result_shardings(op)))


def placed(op: Operation) -> Iterator[tuple[str, SSAValue, Sharding]]:
    """Each sharding that an op has of its own, with what it is of."""
    if isinstance(op, FuncOp):
        for argument, sharding in zip(op.body.block.args, argument_shardings(op), strict=True):
            if sharding is not None:
                yield f"argument {argument.index}", argument, sharding
        last = op.body.block.last_op
        values = () if last is None else last.operands
        for index, (value, sharding) in enumerate(zip(values, result_shardings(op), strict=False)):
            if sharding is not None:
                yield f"result {index}", value, sharding
    elif isinstance(op, PlacingOp):
        yield "result 0", op.result, op.layout
    elif isinstance(op, ManualComputationOp):
        for index, (value, sharding) in enumerate(zip(op.operands, op.inner, strict=False)):
            yield f"operand {index}", value, sharding
        for index, (value, sharding) in enumerate(zip(op.results, op.outer, strict=False)):
            yield f"result {index}", value, sharding
    elif isinstance(found := op.attributes.get(SHARDING), ShardingPerValueAttr):
        for index, (value, sharding) in enumerate(zip(op.results, found.data, strict=False)):
            yield f"result {index}", value, sharding
