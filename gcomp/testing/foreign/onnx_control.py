# pyright: basic
"""ONNX's loops and scans of one node, with bodies of a few nodes; trips and conditions that are known, and not."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from gcomp.testing.foreign.onnx_nodes import Known, Model, Rng, flip, maker, one, whole

_OPERATORS = ("Add", "Mul", "Sub", "Max")


def _float(name: str, shape: Any) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


@maker(16)
def loops(rng: Rng) -> Model:
    """Trips that are known, that are an input, that a condition ends early, and none at all; what each trip gives."""
    n, operator, stacked = int(rng.integers(0, 4)), str(rng.choice(_OPERATORS)), flip(rng)
    early, free = flip(rng), flip(rng)
    nodes = [helper.make_node(operator, ["s", "s" if flip(rng) else "t"], ["u"]), helper.make_node("Neg", ["s"], ["v"])]
    if early and not free:  # where no condition goes in, nobody agrees on what one that comes out means
        nodes += [
            helper.make_node("ReduceMax", ["u"], ["m"], keepdims=0),
            helper.make_node("Constant", [], ["w"], value_float=6.0),
            helper.make_node("Less", ["m", "w"], ["d"]),
        ]
    else:
        nodes.append(helper.make_node("Identity", ["c"], ["d"]))
    given = [helper.make_tensor_value_info("i", TensorProto.INT64, []),
             helper.make_tensor_value_info("c", TensorProto.BOOL, []), _float("s", [3]), _float("t", [3])]  # fmt: skip
    made = [helper.make_tensor_value_info("d", TensorProto.BOOL, []), _float("u", [3]), _float("v", [3])]
    if stacked:
        nodes.append(helper.make_node("Identity", ["s"], ["z"]))
        made.append(_float("z", [3]))
    body = helper.make_graph(nodes, "body", given, made)
    trips, going = np.array(n, np.int64), np.array(bool(rng.integers(4)))
    return one(
        "Loop", Known(trips) if flip(rng) else trips, None if free else Known(going) if flip(rng) else going,
        whole(rng, 3), whole(rng, 3), outputs=2 + stacked, body=body,
    )  # fmt: skip


@maker(10)
def scans(rng: Rng) -> Model:
    """Forward and backward, along any axis, of what comes and of what goes."""
    axis, out = int(rng.integers(-2, 2)), int(rng.integers(-2, 2))
    nodes = [helper.make_node(str(rng.choice(_OPERATORS)), ["s", "x"], ["u"]), helper.make_node("Neg", ["s"], ["z"])]
    body = helper.make_graph(nodes, "body", [_float("s", [3]), _float("x", [3])], [_float("u", [3]), _float("z", [3])])
    return one(
        "Scan", whole(rng, 3), whole(rng, [3, 4] if axis % 2 else [4, 3]), outputs=2, body=body, num_scan_inputs=1,
        scan_input_axes=[axis], scan_input_directions=[flip(rng)], scan_output_axes=[out],
        scan_output_directions=[flip(rng)],
    )  # fmt: skip
