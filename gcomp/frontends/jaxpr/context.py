"""What an importer sees of the equation that it imports: operands, parameters, types, the builder, and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, NoReturn, Protocol

from xdsl.ir import Region, SSAValue

from gcomp import dims
from gcomp.dims import Constraint, Range, Ranges, Size
from gcomp.errors import UnsupportedError
from gcomp.frontends.jaxpr import avals
from gcomp.frontends.jaxpr.jax_api import jax, place_of, trace_context
from gcomp.ir import locations
from gcomp.ir.builder import Builder
from gcomp.ir.types import Tensor, dtype_text, rank_of, shape_of
from gcomp.sharding import Mesh

_WIDE = frozenset(("complex128", "float64", "int64", "uint64"))


@lru_cache(1024)
def _jaxpr_of(function: Callable[..., Any], keywords: tuple[tuple[str, Any], ...], avals: tuple[Any, ...],
              configuration: Any) -> Any:  # fmt: skip
    """The jaxpr of a JAX function on types, under the present configuration (which is part of the key)."""
    types = [jax.ShapeDtypeStruct(t.shape, t.dtype, weak_type=t.weak_type) for t in avals]
    return jax.make_jaxpr(partial(function, **dict(keywords)))(*types)


def _always_equal(a: Size, b: Size) -> bool:
    """Whether two sizes are the same, whatever sizes their symbols stand for, 0 among them."""
    ranges = Ranges(dict.fromkeys(dims.symbols_of(a) | dims.symbols_of(b), Range(0)))
    return ranges.equal(a, b) is True


class Frame(NamedTuple):
    """A `shard_map` that is being imported: its mesh, and the axes that are manual in it and around it."""

    name: str
    mesh: Mesh
    axes: frozenset[str]


class Importer(Protocol):
    """What imports a jaxpr, as those see it that import its equations."""

    builder: Builder
    frames: list[Frame]
    """What is mapped over meshes and being imported, the innermost last."""

    def inline(self, jaxpr: Any, args: Sequence[SSAValue], consts: Sequence[Any] = ()) -> list[SSAValue]:
        """Import a jaxpr (closed, or open with its `consts`) at the builder's point; its results."""
        ...


class EqnContext:
    """One equation being imported. `ctx[i]` is operand i as a tensor; `ctx.params` are the primitive's parameters."""

    def __init__(self, importer: Importer, eqn: Any, operands: Sequence[SSAValue]) -> None:
        self.importer = importer
        self.eqn = eqn
        self.operands = list(operands)
        self.b: Builder = importer.builder

    @property
    def where(self) -> str:
        """The user's line, for people."""
        return place_of(self.eqn.source_info) or "an unknown line"

    @property
    def primitive(self) -> str:
        """The name of the primitive."""
        return self.eqn.primitive.name

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the equation."""
        return self.eqn.params

    def __getitem__(self, index: int) -> SSAValue:
        return self.operands[index]

    def __len__(self) -> int:
        return len(self.operands)

    # ---- types ----

    def aval(self, index: int = 0) -> Any:
        """JAX's type of an operand."""
        return self.eqn.invars[index].aval

    def out_aval(self, index: int = 0) -> Any:
        """JAX's type of a result."""
        return self.eqn.outvars[index].aval

    def shape(self, index: int = 0) -> tuple[Size, ...]:
        """The shape of an operand."""
        return shape_of(self[index])

    def rank(self, index: int = 0) -> int:
        """The rank of an operand."""
        return rank_of(self[index])

    def dtype(self, index: int = 0) -> str:
        """The element type of an operand."""
        return dtype_text(self[index].type)

    def type_of(self, aval: Any) -> Tensor:
        """The IR type of a JAX abstract value."""
        return avals.type_of(aval)

    def out_type(self, index: int = 0) -> Tensor:
        """The type of a result."""
        return avals.type_of(self.out_aval(index))

    def out_shape(self, index: int = 0) -> tuple[Size, ...]:
        """The shape of a result."""
        return shape_of(self.out_type(index))

    def out_dtype(self, index: int = 0) -> str:
        """The element type of a result."""
        return dtype_text(self.out_type(index))

    def as_shape(self, value: SSAValue, shape: Sequence[Size]) -> SSAValue:
        """A tensor whose sizes are written in another way; calls are checked where they may differ."""
        own = shape_of(value)
        if len(own) != len(shape):
            return value
        for ours, theirs in zip(own, shape, strict=True):
            if ours != theirs and not _always_equal(ours, theirs):
                where = locations.describe(self.b.location)
                self.b.constraints.append(Constraint("eq", ours, theirs, where))
        return self.b.reshape(value, shape)

    # ---- jaxprs inside ----

    def inline(self, jaxpr: Any, args: Sequence[SSAValue], consts: Sequence[Any] = ()) -> list[SSAValue]:
        """Import a jaxpr (closed, or open with its `consts`) at this place; its results."""
        return self.importer.inline(jaxpr, args, consts)

    def region(self, types: Sequence[Tensor], body: Callable[[Sequence[SSAValue]], Sequence[SSAValue]]) -> Region:
        """A region of one block that `body` fills."""
        return self.b.region(types, body)

    def trace(
        self,
        function: Callable[..., Any],
        *operands: SSAValue | Any,
        avals: Sequence[Any] = (),
        **keywords: Any,
    ) -> list[SSAValue]:
        """What a JAX function computes of the equation's operands: it is traced on their types, and imported here.

        For primitives that JAX itself defines by others. `avals` are the JAX types of operands that are not the
        equation's. Traces are kept: `function` should be one object, not made anew for each equation.
        """
        own = tuple(avals or [v.aval for v in self.eqn.invars])
        types = [*own, *[v.aval for v in self.eqn.outvars]]
        # The function may have been traced with 64 bits, and be imported without.
        x64 = bool(jax.config.jax_enable_x64) or any(str(t.dtype) in _WIDE for t in types)
        with self.eqn.ctx.manager, jax.enable_x64(x64):
            try:
                jaxpr = _jaxpr_of(function, tuple(keywords.items()), own, trace_context())
            except jax.errors.InconclusiveDimensionOperation as error:
                self.unsupported(str(error).splitlines()[0], "give that dimension a size")
        return self.inline(jaxpr, operands or self.operands)

    # ---- errors ----

    def unsupported(self, why: str, fix: str | None = None) -> NoReturn:
        """Refuse the equation."""
        raise UnsupportedError(f"gcomp does not import this {self.primitive}", where=self.where, why=why, fix=fix)
