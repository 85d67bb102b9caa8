"""One program, three doors: from JAX, torch and ONNX the same networks reach IR of the same structure, and results.

Held to be the same is what fusion looks at: contractions, convolutions, reductions, and arithmetic. Movement and
constants may differ. Composites are what the sources name: JAX names none, until they are raised.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

from gcomp.driver import compile  # noqa: E402
from gcomp.ir.program import Program  # noqa: E402
from gcomp.passes.manager import PassManager  # noqa: E402
from gcomp.passes.registry import parse_pipeline  # noqa: E402
from gcomp.sources import import_model  # noqa: E402
from tests.conformance.three_doors import NETWORKS  # noqa: E402

DOORS = ("JAX", "torch", "ONNX")
PIPELINE = (
    "infer-shapes,inline-composites,expand-chlo,canonicalize,cse,fold-constants,fold-batch-norm,fold-constants,"
    "canonicalize,cse,dce"
)
STRUCTURE: dict[str, dict[str, int]] = {
    "MLP": {"dot_general": 2, "add": 2, "maximum": 1},
    "CNN": {"convolution": 2, "reduce_window": 2, "dot_general": 1, "maximum": 4},
    "attention": {
        "dot_general": 6, "reduce": 4, "exponential": 1, "rsqrt": 1, "divide": 3, "multiply": 4, "add": 6,
        "subtract": 2, "maximum": 1, "transpose": 2,
    },
    "batch norm": {"convolution": 1, "add": 1, "maximum": 1},
    "GRU cell": {"dot_general": 2, "slice": 6, "logistic": 2, "tanh": 1, "add": 4, "multiply": 3, "subtract": 1},
    "embedding": {
        "gather": 1, "dot_general": 1, "reduce": 2, "exponential": 1, "divide": 1, "add": 1, "subtract": 1,
        "maximum": 1,
    },
}  # fmt: skip
"""What each network is made of, bodies of reductions included."""
WRAPPED = {"add": 1, "compare": 1, "select": 1}
DIFFERENCES: dict[tuple[str, str], tuple[dict[str, int], str]] = {
    ("attention", "JAX"): ({"maximum": 1}, "jax.nn.softmax takes the maximum from -inf on"),
    ("batch norm", "JAX"): (
        {"subtract": 1, "multiply": 2},
        "it names no batch norm, so nothing is folded into weights",
    ),
    ("embedding", "JAX"): ({**WRAPPED, "maximum": 1}, "negative tokens count from the end; and the softmax as above"),
    ("embedding", "ONNX"): (WRAPPED, "negative tokens count from the end; torch has none"),
}
"""What a door has more of than the others, and why."""
COMPOSITES: dict[tuple[str, str], dict[str, int]] = {
    ("attention", "torch"): {"gcomp.layer_norm": 1, "gcomp.attention": 1},
    ("attention", "ONNX"): {"gcomp.layer_norm": 1, "gcomp.softmax": 1},
    ("embedding", "torch"): {"gcomp.softmax": 1},
    ("embedding", "ONNX"): {"gcomp.softmax": 1},
}
"""The composites that sources name; the others name none."""
LEFT_OUT = {"module", "func", "return", "constant", "weight", "broadcast_in_dim", "reshape"}


@lru_cache
def imported(network: str) -> dict[str, Program]:
    """The program by door."""
    return {door: import_model(*source) for door, source in NETWORKS[network].sources(torch).items()}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("network", NETWORKS)
def test_the_structure_is_the_same(network: str, door: str) -> None:
    program = imported(network)[door].clone()
    PassManager(parse_pipeline(PIPELINE)).run(program)
    found = Counter(op.name.partition(".")[2] for op in program.ops())
    more, _ = DIFFERENCES.get((network, door), ({}, ""))
    assert {n: k for n, k in found.items() if n not in LEFT_OUT} == Counter(STRUCTURE[network]) + Counter(more)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("network", NETWORKS)
def test_composites_are_those_that_the_source_names(network: str, door: str) -> None:
    ops = imported(network)[door].ops()
    found = Counter(op.properties["name"].data for op in ops if op.name == "stablehlo.composite")
    assert found == COMPOSITES.get((network, door), {})


@pytest.mark.parametrize("network", NETWORKS)
def test_results_are_the_same(network: str) -> None:
    values = list(NETWORKS[network].inputs.values())
    first, *others = (compile(program.clone()).flat(values)[0] for program in imported(network).values())
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-5, atol=1e-6)
