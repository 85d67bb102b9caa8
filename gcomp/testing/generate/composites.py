"""Steps of composites: gcomp's own with their canonical decompositions, and others whose names promise nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.composites import attribute_of, composite, trust
from gcomp.ir.types import FLOATS, dtype_text, rank_of, shape_of, tensor, tensor_of
from gcomp.testing.generate.control import function_of
from gcomp.testing.generate.growth import Growth, step

_WIDE = frozenset({tensor((), t).element_type for t in ("f32", "f64", "f16", "bf16")})


def _composite(g: Growth, name: str, inputs: Sequence[SSAValue], attributes: Mapping[str, Any]) -> Sequence[SSAValue]:
    """A composite; of those with an even number of attributes and operands, the mark says that its name may be used."""
    results = composite(g.b, name, inputs, attributes)
    op = results[0].owner
    if isinstance(op, hlo.CompositeOp) and (len(inputs) + len(attributes)) % 2 == 0:
        trust(op)
    return results


@step("softmax", hlo.CompositeOp, weight=0.35)
def softmax(g: Growth) -> None:
    """gcomp.softmax or gcomp.log_softmax along any axis."""
    x = g.pick(_WIDE, least=1)
    name = g.choices.chosen(("gcomp.softmax", "gcomp.log_softmax"))
    g.keep(_composite(g, name, [x], {"axis": g.choices.integer(0, rank_of(x) - 1)})[0])


@step("norm", hlo.CompositeOp, weight=0.35)
def norm(g: Growth) -> None:
    """gcomp.layer_norm with or without a bias, or gcomp.rms_norm."""
    x = g.pick(_WIDE, least=1)
    axis = g.choices.integer(0, rank_of(x) - 1)
    type = tensor(shape_of(x)[axis:], dtype_text(x.type))
    attributes = {"axis": axis, "epsilon": g.choices.chosen((1e-5, 0.0))}
    if g.choices.flag(0.3):
        g.keep(_composite(g, "gcomp.rms_norm", [x, g.of_type(type)], attributes)[0])
        return
    vectors = [g.of_type(type) for _ in range(g.choices.integer(1, 2))]
    results = _composite(g, "gcomp.layer_norm", [x, *vectors], attributes)
    for result in results[::-1] if g.choices.flag(0.8) else results[:1]:
        g.keep(result)


@step("gelu", hlo.CompositeOp, weight=0.3)
def gelu(g: Growth) -> None:
    """gcomp.gelu, exact or by tanh."""
    x = g.pick(_WIDE)
    g.keep(_composite(g, "gcomp.gelu", [x], {"approximate": g.choices.chosen(("none", "tanh"))})[0])


@step("attention", hlo.CompositeOp, weight=0.3)
def attention(g: Growth) -> None:
    """gcomp.attention on queries, keys and values, with or without a mask."""
    choices = g.choices
    x = g.pick(_WIDE, least=2, most=4, empty=False)
    text, shape = dtype_text(x.type), shape_of(x)
    keys = choices.chosen((2, 1, 3))
    if not g.fits((*shape[:-1], keys)) or not g.fits((*shape[:-2], keys, shape[-1])):
        keys = 1
    type = tensor((*shape[:-2], keys, shape[-1]), text)
    inputs = [x, g.of_type(type), g.of_type(type)]
    if choices.flag(0.4) and g.fits((*shape[:-1], keys)):
        inputs.append(g.of_type(tensor((shape[-2], keys), text)))
    g.keep(_composite(g, "gcomp.attention", inputs, {"scale": choices.chosen((1.0, 0.5, 0.35355338))})[0])


@step("composite", hlo.CompositeOp, weight=0.4, nests=True)
def other(g: Growth) -> None:
    """A composite of another name, or of a known name with a decomposition that is not the canonical one."""
    x = g.pick()
    known = tensor_of(x).element_type in FLOATS and g.choices.flag(0.4)
    wanted = [tensor_of(x)]
    function = function_of(g, [x], wanted)
    name = g.choices.chosen(("gcomp.gelu", "gcomp.softmax")) if known else "my.op"
    attributes = {"axis": 0} if name == "gcomp.softmax" else {"approximate": "none"} if known else {}
    encoded = DictionaryAttr({k: attribute_of(v) for k, v in attributes.items()})
    g.emit(hlo.CompositeOp, x, types=wanted, name=name, decomposition=function.sym_name.data,
           composite_attributes=encoded)  # fmt: skip
