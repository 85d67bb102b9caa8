"""Large results are written past the caches: the same bits, wherever they lie, and on every processor."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.lowering.llvm import streaming
from gcomp.lowering.llvm.codegen import Module, assembly
from gcomp.lowering.llvm.lower import code_texts
from gcomp.runtime.cpu.variants import VARIANTS, Variant
from tests.unit.lowering.llvm.test_lower import HERE, KEPT, agree, floats, planned

pytestmark = pytest.mark.skipif(not HERE, reason="no code for this machine")

POINTWISE = """func.func @main(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = stablehlo.tanh %x : tensor<?x64xf32>
  %1 = stablehlo.add %0, %x : tensor<?x64xf32>
  func.return %1 : tensor<?x64xf32>
}"""

READ_AGAIN = """func.func @main(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = stablehlo.tanh %x : tensor<64x64xf32>
  %1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0]
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
}"""


@pytest.fixture(autouse=True)
def _all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of any size are large."""
    monkeypatch.setattr(streaming, "LEAST", 0)


def texts(text: str) -> str:
    return "".join(code_texts(planned(text), HERE[0]).values())


@pytest.mark.parametrize("rows", [1, 3, 64, 65])
def test_pieces_have_the_same_bits(rows: int) -> None:
    """Also of results of few bytes, which may begin anywhere, and of which the last block has few."""
    text = POINTWISE.replace("?", str(rows))
    assert "nontemporal" in texts(text)
    agree(text, [floats(rows, 64)])


@pytest.mark.parametrize("columns", [64, 100, 8192])
def test_rows_have_the_same_bits(columns: int) -> None:
    """Rows that are kept, and such as are gone over in chunks; where rows end within a line, there is no such store."""
    text = KEPT.replace("?", str(columns))
    assert ("nontemporal" in texts(text)) == (columns % 16 == 0)
    agree(text, [floats(5, columns), np.float32(-np.inf), np.float32(0)])


def test_what_a_kernel_reads_stays_in_caches() -> None:
    found = code_texts(planned(READ_AGAIN), HERE[0])
    assert {name.split(".")[0]: "nontemporal" in text for name, text in found.items()} == {
        "k_tanh": False, "k_dot_general": True
    }  # fmt: skip
    agree(READ_AGAIN, [floats(64, 64) / 8])


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=lambda v: v.name)
def test_every_processor_has_code_for_it(variant: Variant) -> None:
    (name, text), *_ = code_texts(planned(POINTWISE.replace("?", "64")), variant).items()
    assert ("vmovntps" in assembly(Module(name, text), variant)) == variant.name.startswith("x86-64")
