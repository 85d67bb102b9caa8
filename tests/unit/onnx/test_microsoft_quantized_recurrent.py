"""DynamicQuantizeLSTM against ONNX Runtime.

Both round the states to 255 steps at every time step. Where a state lies between two quantized values, an ulp in an
activation decides: that moves a gate's sum by one step of the states (at most 2 / 255, often less) times a weight
(below 0.5 here). Gates contract, so that this bounds what such flips add up to in a few steps: 4e-3, of results around
0.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gcomp.errors import InvalidModelError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.contrib_models import (
    Array,
    compare,
    compiled_agrees,
    in_seven_bits,
    interpreted,
    node_model,
    normal,
    peer,
)

Inputs = dict[str, Array | None]
OUTPUTS = ("y", "h", "c")
FLIP = 4e-3


def layer(
    length: int, batch: int, directions: int, dtype: Any, per_column: bool, *, width: int = 6, hidden: int = 8
) -> Inputs:
    """Operands with weights of about 0.3."""
    rng = np.random.default_rng(length + 10 * batch)
    info = np.iinfo(dtype)
    columns = (directions, 4 * hidden) if per_column else (directions,)
    # ONNX Runtime takes one zero point for all columns: 0, or any for unsigned weights.
    zero = np.full(columns, 0 if dtype is np.int8 else 60, dtype)

    def weights(rows: int) -> Array:
        return in_seven_bits(rng.integers(info.min + 1, info.max + 1, (directions, rows, 4 * hidden)).astype(dtype))

    return {
        "x": normal(rng, length, batch, width), "w": weights(width), "r": weights(hidden),
        "b": 0.3 * normal(rng, directions, 8 * hidden), "lengths": None,
        "h0": 0.5 * normal(rng, directions, batch, hidden), "c0": 0.5 * normal(rng, directions, batch, hidden),
        "p": None,
        "sw": rng.uniform(0.004, 0.008, columns).astype(np.float32), "zw": zero,
        "sr": rng.uniform(0.004, 0.008, columns).astype(np.float32), "zr": zero,
    }  # fmt: skip


CONSTANTS = ("w", "r", "sw", "zw", "sr", "zr")


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize(("direction", "count"), [("forward", 1), ("reverse", 1), ("bidirectional", 2)])
def test_directions_and_granularities(dtype: Any, per_column: bool, direction: str, count: int) -> None:
    inputs = layer(5, 1, count, dtype, per_column)
    options: dict[str, Any] = {"direction": direction, "hidden_size": 8}
    model = node_model("DynamicQuantizeLSTM", inputs, OUTPUTS, constants=CONSTANTS, **options)
    compare(interpreted(model, inputs), peer(model, inputs), FLIP)


def test_a_whole_input_is_quantized_by_one_range() -> None:
    """One step from a state of zeros: nothing is left to chance, so that sums are equal up to a few roundings."""
    inputs = layer(1, 3, 1, np.int8, True) | {"h0": None, "c0": None}
    assert inputs["x"] is not None
    inputs["x"][0, 1] *= 50
    model = node_model("DynamicQuantizeLSTM", inputs, OUTPUTS, constants=CONSTANTS, hidden_size=8)
    compare(interpreted(model, inputs), peer(model, inputs), 2e-6)


def test_peepholes_clip_activations_and_coupled_gates() -> None:
    inputs = layer(4, 1, 1, np.int8, False)
    inputs["p"] = 0.3 * normal(np.random.default_rng(3), 1, 24)
    options: dict[str, Any] = {
        "clip": 0.6, "activations": ["HardSigmoid", "Softsign", "Tanh"], "activation_alpha": [0.3],
        "activation_beta": [0.4], "input_forget": 1,
    }  # fmt: skip
    model = node_model("DynamicQuantizeLSTM", inputs, OUTPUTS, constants=CONSTANTS, hidden_size=8, **options)
    compare(interpreted(model, inputs), peer(model, inputs), FLIP)


def test_steps_after_the_end_do_not_count() -> None:
    inputs = layer(6, 1, 1, np.int8, True) | {"lengths": np.array([4], np.int32)}
    assert inputs["x"] is not None
    inputs["x"][4:] *= 100
    model = node_model("DynamicQuantizeLSTM", inputs, OUTPUTS, constants=CONSTANTS, hidden_size=8)
    compare(interpreted(model, inputs), peer(model, inputs), FLIP)


def test_any_length_compiled() -> None:
    inputs = layer(5, 1, 1, np.int8, True)
    model = node_model(
        "DynamicQuantizeLSTM", inputs, OUTPUTS, constants=CONSTANTS, hidden_size=8, dims={"x": ["n", 1, 6]}
    )
    calls: list[Inputs] = [{**inputs, "x": normal(np.random.default_rng(n), n, 1, 6)} for n in (1, 2, 7)]
    compiled_agrees(model, calls, FLIP)


def test_what_contradicts_is_refused() -> None:
    good = layer(2, 1, 1, np.int8, True)
    assert good["w"] is not None and good["zw"] is not None and good["sw"] is not None
    wrong: list[Inputs] = [
        {"zw": good["zw"].astype(np.uint8)},
        {"sw": good["sw"][:, :5]},
        {"sw": np.ones(2, np.float32)},
        {"w": good["w"][:, :4]},
        {"w": good["w"][..., :30]},
        {"sw": None},
    ]
    for change in wrong:
        inputs = {**good, **change}
        constants = [name for name in CONSTANTS if inputs[name] is not None]
        with pytest.raises(InvalidModelError):
            import_onnx(node_model("DynamicQuantizeLSTM", inputs, OUTPUTS, constants=constants, hidden_size=8))
