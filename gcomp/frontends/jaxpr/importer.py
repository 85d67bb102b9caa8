"""Jaxprs to graph-level programs: equation by equation, each by its primitive's importer (`registry`).

Jaxprs that an equation holds (calls, custom derivatives) are imported in its place; bodies of control flow become
regions. Constants become weights. Each op carries the user's source line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from gcomp import dims
from gcomp.dims import Constraint
from gcomp.errors import GcompError, InternalError, UnsupportedError
from gcomp.frontends.jaxpr import avals, registry
from gcomp.frontends.jaxpr.context import EqnContext, Frame
from gcomp.frontends.jaxpr.jax_api import core, line_of, scope_constraints
from gcomp.frontends.jaxpr.refusing import check_supported, unsupported_error
from gcomp.frontends.jaxpr.shardings import explicit, explicit_sharding
from gcomp.ir import locations, sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import INLINE_BYTES, Builder
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.program import Program


def import_jaxpr(jaxpr: Any, names: Sequence[str] = (), results: Sequence[str] = ()) -> Program:
    """The program of a closed jaxpr. `names` and `results` name its inputs and outputs (`x0`, `r0`... by default).

    Raises one UnsupportedError that lists every primitive without importer, with the lines that use it.
    """
    check_supported(jaxpr)
    names = names or [f"x{i}" for i in range(len(jaxpr.in_avals))]
    results = results or [f"r{i}" for i in range(len(jaxpr.out_avals))]
    types = [avals.type_of(aval) for aval in jaxpr.in_avals]
    program = Program.empty(list(zip(names, types, strict=True)))
    builder = Builder(program)
    values = Importer(builder).inline(jaxpr, list(program.block.args))
    program.finish(list(zip(results, values, strict=True)))
    keys = [list(map(avals.generator_of, found)) for found in (jaxpr.in_avals, jaxpr.out_avals)]
    if any(key for found in keys for key in found):
        program.hold_keys(*keys)
    program.constraints = [*_constraints_of(jaxpr.in_avals), *builder.constraints]
    program.verify("as imported")
    return program


def _constraints_of(inputs: Sequence[Any]) -> list[Constraint]:
    """What users said of the symbolic sizes of inputs, which JAX relies on (`symbolic_shape(..., constraints=)`)."""
    symbolic = [size for aval in inputs for size in aval.shape if not isinstance(size, int)]
    known = {name for size in symbolic for name in dims.symbols_of(avals.size_of(size))}
    scopes = {id(size.scope): size.scope for size in symbolic}
    found = [
        Constraint(kind, avals.size_of(lhs), avals.size_of(rhs), f"the constraint '{text}'")
        for scope in scopes.values()
        for kind, lhs, rhs, text in scope_constraints(scope)
    ]
    return [constraint for constraint in found if constraint.symbols <= known]


class Importer:
    """One import: the builder, and the constants made so far."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.frames: list[Frame] = []
        self._weights: dict[int, tuple[Any, str]] = {}
        """The object of a constant (its identity is the key, so it must live on), and its weight's name."""

    def inline(self, jaxpr: Any, args: Sequence[SSAValue], consts: Sequence[Any] = ()) -> list[SSAValue]:
        """Import a jaxpr (closed, or open with its `consts`) at the builder's point; its results."""
        if isinstance(jaxpr, core.ClosedJaxpr):
            jaxpr, consts = jaxpr.jaxpr, jaxpr.consts
        env: dict[Any, SSAValue] = dict(zip(jaxpr.invars, args, strict=True))
        for var, value in zip(jaxpr.constvars, consts, strict=True):
            env[var] = value if isinstance(value, SSAValue) else self.constant(value)
        for eqn in jaxpr.eqns:
            results = self._equation(eqn, [self._read(env, atom) for atom in eqn.invars])
            env.update(zip(eqn.outvars, results, strict=True))
        return [self._read(env, atom) for atom in jaxpr.outvars]

    def constant(self, value: Any) -> SSAValue:
        """A constant of the traced function; a large one is a weight, and one only however often it is used."""
        array = avals.array_of(value)
        if array.nbytes <= INLINE_BYTES:
            return self.builder.emit(hlo.ConstantOp, value=_elements(array.tobytes(), array.dtype, array.shape))
        if id(value) not in self._weights:
            self._weights[id(value)] = (value, self.builder.program.weights.add("constant", array))
        # Read anew for each use: the first may be inside a region that the others do not see.
        return self.builder.read_weight(self._weights[id(value)][1])

    def _read(self, env: Mapping[Any, SSAValue], atom: Any) -> SSAValue:
        return self.constant(avals.literal_array(atom)) if isinstance(atom, core.Literal) else env[atom]

    def _equation(self, eqn: Any, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
        ctx = EqnContext(self, eqn, operands)
        importer = registry.lookup(ctx.primitive)
        if importer is None:
            raise unsupported_error({ctx.primitive: [ctx.where]}, registry.REFUSED)
        with self.builder.at(_location(eqn)):
            try:
                results = importer(ctx)
            except GcompError:
                raise
            except (VerifyException, dims.DimError) as error:
                why = str(error).strip().splitlines()[-1]
                raise UnsupportedError(
                    f"gcomp does not import this {ctx.primitive}", where=ctx.where, why=why
                ) from error
            except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
                raise InternalError(
                    f"gcomp failed to import a {ctx.primitive}", where=ctx.where, why=f"{type(error).__name__}: {error}"
                ) from error
            found = [results] if isinstance(results, SSAValue) else results
            found = [_as_jax_says(ctx, var.aval, value) for var, value in zip(eqn.outvars, found, strict=True)]
        return self._placed(eqn, found) if eqn.primitive.name not in _CALLS else found

    def _placed(self, eqn: Any, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Results that lie where their types say, on meshes whose axes are explicit."""
        said = [explicit_sharding(var.aval) for var in eqn.outvars]
        if not any(sharding is not None for sharding in said):
            return values
        b = self.builder
        with b.at(_location(eqn)):
            return [
                value if sharding is None
                else b.emit(sdy.ShardingConstraintOp, value, sharding=sdy.ShardingAttr(explicit(b, sharding, var.aval)))
                for value, sharding, var in zip(values, said, eqn.outvars, strict=True)
            ]  # fmt: skip


def _as_jax_says(ctx: EqnContext, aval: Any, value: SSAValue) -> SSAValue:
    """A result in the shape that JAX gives it, which knows more of symbolic sizes: that they are at least 1, say."""
    if all(isinstance(size, int) for size in getattr(aval, "shape", ())):
        return value
    return ctx.as_shape(value, avals.shape_of_aval(aval))


_CALLS = frozenset(
    ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remat2", "shard_map")
)
"""Primitives whose results were placed inside of them."""


def _location(eqn: Any) -> LocationAttr:
    """A primitive, in the user's line."""
    return _primitive_location(eqn.primitive.name, line_of(eqn.source_info))


@lru_cache(4096)
def _primitive_location(primitive: str, line: tuple[str, int, int] | None) -> LocationAttr:
    if line is None:
        return locations.named_location(primitive)
    file, row, column = line
    return locations.named_location(primitive, FileLineColLoc(StringAttr(file), IntAttr(row), IntAttr(column)))


@lru_cache(1024)
def _elements(data: bytes, dtype: np.dtype[Any], shape: tuple[int, ...]) -> ElementsAttr:
    return ElementsAttr.of(np.frombuffer(data, dtype).reshape(shape))
