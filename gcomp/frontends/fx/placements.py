"""`DTensor` parameters of a torch module: the module with whole tensors, and how each parameter lies on a mesh.

torch.export does not take such modules: it captures the module as one device runs it, without the hooks that
`parallelize_module` adds, and the placements become shardings of weights.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NoReturn

from gcomp.errors import UnsupportedError
from gcomp.frontends.fx.torch_api import torch
from gcomp.ir import sdy
from gcomp.ir.placing import place, shapes_by_name
from gcomp.ir.program import Program
from gcomp.ir.weights import symbol_of
from gcomp.sharding import Mesh, Sharding

_DISTRIBUTED = "torch.distributed"


def is_placed(module: Any) -> bool:
    """Whether a parameter or buffer of a module lies on devices of a mesh."""
    return any(map(_is_placed, (*module.parameters(), *module.buffers())))


def taken_apart(module: Any) -> tuple[Any, Mapping[str, Any]]:
    """A copy of a module with whole tensors, and its placed tensors by name. All processes of the mesh call this."""
    placed = {n: t for n, t in (*module.named_parameters(), *module.named_buffers()) if _is_placed(t)}
    bare = copy.deepcopy(module)
    for name, tensor in placed.items():
        owner, _, own = name.rpartition(".")
        whole = tensor.full_tensor().detach()
        if isinstance(tensor, torch.nn.Parameter):
            whole = torch.nn.Parameter(whole, requires_grad=tensor.requires_grad)
        setattr(bare.get_submodule(owner), own, whole)
    for part in bare.modules():
        for hooks in (part._forward_pre_hooks, part._forward_hooks):
            for key in [k for k, hook in hooks.items() if _is_of_torch(hook)]:
                del hooks[key]
    return bare, placed


def place_weights(program: Program, placed: Mapping[str, Any]) -> None:
    """Say of weights how they lie. UnsupportedError for placements that are no shardings, and for several meshes."""
    roots = {tensor.device_mesh._get_root_mesh() for tensor in placed.values()}
    if len(roots) > 1:
        _refuse("parameters", "they lie on several meshes")
    (root,) = roots
    mesh = Mesh.of(zip(_names(root), root.shape, strict=True), [int(n) for n in root.mesh.flatten().tolist()])
    name = sdy.add_mesh(program.module, mesh)
    known = shapes_by_name(program)
    for key, tensor in placed.items():
        if (symbol := symbol_of(key)) in known:
            place(program, symbol, _sharding(key, tensor, name))


def _sharding(key: str, tensor: Any, mesh: str) -> Sharding:
    cuts: list[list[str]] = [[] for _ in range(tensor.ndim)]
    for axis, placement in zip(_names(tensor.device_mesh), tensor.placements, strict=True):
        if type(placement).__name__ == "Shard":
            cuts[int(placement.dim) % int(tensor.ndim)].append(axis)
        elif not placement.is_replicate():
            _refuse(f"the parameter {key!r}", f"it is placed as {placement}")
    return Sharding.of(mesh, cuts)


def _names(mesh: Any) -> list[str]:
    return list(mesh.mesh_dim_names or [f"d{i}" for i in range(len(mesh.shape))])


def _is_placed(tensor: Any) -> bool:
    return hasattr(tensor, "placements") and hasattr(tensor, "device_mesh")


def _is_of_torch(hook: Any) -> bool:
    return str(getattr(hook, "__module__", "")).startswith(_DISTRIBUTED)


def _refuse(what: str, why: str) -> NoReturn:
    raise UnsupportedError(
        f"The placement of {what} is not imported.", why=why, fix="Shard or replicate it, on one mesh."
    )


__all__ = ["is_placed", "place_weights", "taken_apart"]
