"""An op in other sizes: as many of its rule's factors as can be are symbols, so that a proof is about all sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from xdsl.ir import Block, Operation
from xdsl.utils.exceptions import VerifyException

from gcomp.dims import DimError, Size, product, symbol
from gcomp.ir.op import GraphOp
from gcomp.ir.types import shape_of, with_shape
from gcomp.partitioning.part import Part
from gcomp.partitioning.rule import LOCAL, ShardingRule, letter
from gcomp.partitioning.table import rule_of

PARTS, PART = symbol("parts"), symbol("part")
"""Into how many parts a factor is cut, and how many indices each has."""

Sizes = Mapping[int, Size]
"""Factor -> its size."""


@dataclass(frozen=True)
class Cut:
    """The whole op and its part, where one factor of its rule is cut into `count` parts of `size` indices each."""

    whole: GraphOp
    part: GraphOp
    rule: ShardingRule
    factor: int
    count: Size
    size: Size


class Refused(Exception):
    """The part is no valid op; the message says why."""


def cuts(op: Operation, rule: ShardingRule, true: ShardingRule, factor: int) -> Iterator[Cut]:
    """The ways in which a factor is cut: all numbers and sizes of parts at once, where they can be symbols.

    Which sizes there are follows from `true`, the op's own rule, of which `rule` may be a twin. ValueError where no way
    is found, Refused where the part is no op.
    """
    for sizes in _with_symbols(true, factor):
        if (whole := _resized(op, true, sizes)) is not None:
            yield _cut(whole, _renamed(rule, sizes), factor, PARTS, PART)
            return
    size = true.factors[factor].size
    for sizes in _without_symbol(true, factor):
        if isinstance(size, int) and (whole := _resized(op, true, sizes)) is not None:
            fitting = [n for n in range(2, size + 1) if size % n == 0 and _divides(whole, rule, factor, n)]
            if not fitting:
                break
            yield from (_cut(whole, _renamed(rule, sizes), factor, n, size // n) for n in fitting)
            return
    raise ValueError("it has no form in other sizes with the same rule")


def _cut(whole: GraphOp, rule: ShardingRule, factor: int, count: Size, size: Size) -> Cut:
    part = Part(whole, rule, {factor: count})
    try:
        types = [with_shape(v.type, part.shape(t)) for t, v in enumerate(whole.operands)]
        made = part.made(Block(arg_types=types).args, [region.clone() for region in whole.regions])
        made.verify_()
    except (VerifyException, ValueError) as error:
        raise Refused(f"the op on parts is none: {error}") from None
    return Cut(whole, made, rule, factor, count, size)


def _divides(whole: GraphOp, rule: ShardingRule, factor: int, count: int) -> bool:
    part = Part(whole, rule, {factor: count})
    try:
        _ = [part.shape(t) for t in range(len(rule.tensors))]
    except ValueError:
        return False
    return True


# ---- sizes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Resized(Part):
    """An op whose rule's factors have these sizes, and which is not cut."""

    sizes: Sizes

    def shape(self, tensor: int) -> list[Size]:
        """The shape of a tensor."""
        rule, own = self.rule, shape_of((*self.op.operands, *self.op.results)[tensor])
        return [
            product(self.sizes.get(f, rule.factors[f].size) for f in factors) if self.is_cut(tensor, dim) else size
            for dim, (size, factors) in enumerate(zip(own, rule.tensors[tensor], strict=True))
        ]

    def is_cut(self, tensor: int, dim: int) -> bool:
        """Whether a dimension has another size."""
        return any(f in self.sizes for f in self.rule.tensors[tensor][dim])


def _resized(op: Operation, rule: ShardingRule, sizes: Sizes) -> GraphOp | None:
    """The op in other sizes; None where it is none, or has another rule."""
    new = _Resized(op, rule, {}, sizes)
    try:
        types = [with_shape(v.type, new.shape(t)) for t, v in enumerate(op.operands)]
        made = new.made(Block(arg_types=types).args, [region.clone() for region in op.regions])
        made.verify_()
        found = rule_of(made)
    except (VerifyException, DimError):
        return None
    return made if found is not None and _is_alike(found, rule) else None


def _is_alike(a: ShardingRule, b: ShardingRule) -> bool:
    """Whether two rules cut the same dimensions together, and send the same."""
    kinds = [[(f.kind, f.combine) for f in rule.factors] for rule in (a, b)]
    return a.tensors == b.tensors and kinds[0] == kinds[1]


def _renamed(rule: ShardingRule, sizes: Sizes) -> ShardingRule:
    return rule.changed({f: replace(rule.factors[f], size=size) for f, size in sizes.items()})


def _with_symbols(rule: ShardingRule, factor: int) -> Iterator[Sizes]:
    """Sizes of which that of the factor is any, the most general ones first: all are symbols of their own, or
    equal ones stay equal; then only those of factors that can be cut are symbols; then only the factor's own."""
    own, values = _own(rule), [f.size for f in rule.factors]
    cut: Sizes = {factor: PARTS * PART}
    if values[factor] == 1:
        return
    yield {**own, **cut}
    yield {g: PARTS * PART if values[g] == values[factor] else symbol(f"size_{values[g]}") for g in own}
    yield {**{g: s for g, s in own.items() if rule.factors[g].kind in LOCAL}, **cut}
    yield cut


def _without_symbol(rule: ShardingRule, factor: int) -> Iterator[Sizes]:
    """Sizes of which that of the factor is a number, as it is: of groups, which are a number of the op."""
    yield {g: s for g, s in _own(rule).items() if rule.factors[g].kind in LOCAL and g != factor}
    yield {}


def _own(rule: ShardingRule) -> dict[int, Size]:
    return {g: symbol(letter(g)) for g, f in enumerate(rule.factors) if f.size != 1}


__all__ = ["PART", "PARTS", "Cut", "Refused", "cuts"]
