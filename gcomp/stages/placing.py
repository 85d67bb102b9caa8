"""Programs for several devices: what users say of how arrays lie, and which targets and options go with it."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any, cast

from gcomp.dims import Size, exact_div
from gcomp.errors import UnsupportedError, UsageError, suggest
from gcomp.ir import sdy
from gcomp.ir.locations import where
from gcomp.ir.placing import place, shapes_by_name
from gcomp.ir.printing import PrintOp
from gcomp.ir.program import Program
from gcomp.options import Options
from gcomp.runtime.engine import Ability
from gcomp.sharding import Mesh, Sharding, check_sharding
from gcomp.sharding.text import MeshSpec, read_mesh, read_sharding, spec_of
from gcomp.stages.base import Stage
from gcomp.targets.base import Target


class Placing(Stage):
    """Says in the program how arrays lie, and refuses what does not go together with several devices."""

    def __init__(self, options: Options, target: Target) -> None:
        self.options, self.target = options, target

    def before_passes(self, program: Program) -> None:
        """Raises UsageError for names, axes and sizes that do not fit, UnsupportedError for targets of one device."""
        if self.options.shardings == "auto":
            self.target.require(Ability.MESH)
            self._search(program)
        elif self.options.mesh is not None or self.options.shardings:
            self._place(program, cast("Mapping[str, Any]", self.options.shardings or {}))
        if sdy.is_sharded(program.module):
            self.target.require(Ability.MESH)
            self._check(program)

    def _place(self, program: Program, given: Mapping[str, Any]) -> None:
        if not given and not sdy.is_sharded(program.module):
            raise UsageError(
                "nothing says how arrays lie on the mesh", why="all devices would compute the same",
                fix='give shardings: shardings={"x": "data,*"}, or --sharding x=data,*',
            )  # fmt: skip
        name, mesh = self._mesh(program)
        shapes = shapes_by_name(program)
        found: dict[str, Any] = {}
        # A name says more than a pattern, and a later pattern more than one before.
        for key, spec in sorted(given.items(), key=lambda item: item[0] in shapes):
            named = [key] if key in shapes else fnmatch.filter(shapes, key)
            if not named:
                fix = f"{suggest(key, shapes)}there are: {', '.join(shapes)}"
                raise UsageError(f"there is no input, output or weight {key!r} to place", fix=fix)
            found |= dict.fromkeys(named, spec)
        for key, spec in found.items():
            place(program, key, _read(key, spec, name, mesh, shapes[key]))
        _return_states(program)

    def _search(self, program: Program) -> None:
        """Cut the program as takes the least time, and write it for one device, which sends what the plan says."""
        from gcomp.passes.manager import PassManager
        from gcomp.passes.pipelines import TO_SHARDING
        from gcomp.passes.registry import parse_pipeline

        if sdy.is_sharded(program.module):
            raise UsageError(
                "the program has shardings already", why='shardings="auto" finds all of them', fix="leave it out"
            )
        assert self.options.mesh is not None
        mesh = ",".join(f"{axis.name}={axis.size}" for axis in _read_mesh(self.options.mesh).axes)
        self.options.report("search for shardings")
        PassManager(parse_pipeline(f'{TO_SHARDING},shard{{mesh="{mesh}"}},partition')).run(program)

    def _mesh(self, program: Program) -> tuple[str, Mesh]:
        """The mesh's name in the program, and the mesh."""
        known = {n: m for n, m in sdy.meshes_of(program.module).items() if m.axes}
        if self.options.mesh is None:
            if not known:
                raise UsageError("shardings name axes of a mesh", why="no mesh was given", fix='mesh={"data": 2}')
            return next(iter(known.items()))
        mesh = _read_mesh(self.options.mesh)
        if known and mesh not in known.values():
            why = f"the program is for {next(iter(known.values())).text()}"
            raise UsageError(f"the mesh {mesh.text()} is not the program's", why=why, fix="leave the mesh out")
        return sdy.add_mesh(program.module, mesh), mesh

    def _check(self, program: Program) -> None:
        meshes = sdy.meshes_of(program.module)
        for kind, ports in (("input", program.inputs()), ("output", program.outputs())):
            for port in ports:
                if port.sharding is not None:
                    mesh = sdy.mesh_of(port.sharding, meshes)
                    _check_sizes(f"the {kind} {port.name!r}", port.shape, port.sharding, mesh)
        for option in ("buckets", "checks"):
            if getattr(self.options, option):
                raise UnsupportedError(f"a program for several devices has no {option}", fix=f"leave {option} out")
        for op in program.ops():
            if isinstance(op, PrintOp):
                raise UnsupportedError(
                    "a program for several devices does not print", where=where(op),
                    why="each device would print for itself", fix="compile it for one device to see what it prints",
                )  # fmt: skip


def _read_mesh(given: MeshSpec) -> Mesh:
    try:
        return read_mesh(given)
    except ValueError as error:
        raise UsageError("the mesh is not valid", why=str(error)) from None


def _return_states(program: Program) -> None:
    """Let the next value of a state lie where the state does, where nothing else is said."""
    outputs = {port.name: port for port in program.outputs()}
    for port in program.inputs():
        if port.state is not None and port.sharding is not None and outputs[port.state].sharding is None:
            place(program, port.state, port.sharding)


def _read(key: str, spec: Any, name: str, mesh: Mesh, shape: Sequence[Size]) -> Sharding:
    """What was said of a value. Raises UsageError where that is not valid on the mesh."""
    try:
        sharding = read_sharding(spec_of(spec), name, len(shape))
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"the sharding of {key!r} is not valid", why=str(error), fix="write it as data,*") from None
    if why := check_sharding(sharding, mesh, len(shape)):
        raise UsageError(f"the sharding of {key!r} is not valid", why=why)
    _check_sizes(repr(key), shape, sharding, mesh)
    return sharding


def _check_sizes(what: str, shape: Sequence[Size], sharding: Sharding, mesh: Mesh) -> None:
    """Raises UsageError for a dimension of known size that its axes do not divide."""
    for i, (size, dimension) in enumerate(zip(shape, sharding.dimensions, strict=False)):
        pieces = dimension.pieces(mesh)
        if isinstance(size, int) and exact_div(size, pieces) is None:
            raise UsageError(
                f"{what} cannot lie as {sharding.text()} says",
                why=f"dimension {i} has size {size}, and is cut into {pieces} pieces",
                fix="cut it along fewer axes, or pad it",
            )


__all__ = ["Placing"]
