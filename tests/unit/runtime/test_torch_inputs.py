"""Models called with torch tensors: any layout and dtype in, tensors that own their memory out."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import jax
import numpy as np
import pytest

from gcomp.errors import InputError
from gcomp.ir.weights import copy_aligned
from tests.unit.runtime.models import TWO_SYMBOLS, UPDATE, make_model
from tests.unit.runtime.test_model import typed

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (torch.zeros(4, dtype=torch.float64), "torch.float32"),
        (torch.zeros(4).to_sparse(), "dense"),
        (torch.zeros(4, device="meta"), "cpu"),
    ],
    ids=["dtype", "sparse", "device"],
)
def test_values_that_do_not_fit(value: Any, said: str) -> None:
    with pytest.raises(InputError) as error:
        typed("f32")(value)
    assert "`input0`" in str(error.value) and "f32[4]" in str(error.value) and said in str(error.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x,
        lambda x: x.T.contiguous().T,
        lambda x: x.flip(0),
        lambda x: x[1:].clone()[[0, 0, 1, 2]],
        lambda x: torch.cat([torch.zeros(1), x.ravel()])[1:].reshape(4, 6),
        lambda x: x.requires_grad_(),
    ],
)
def test_torch_tensors_of_any_layout(make: Any) -> None:
    x = make(torch.arange(24, dtype=torch.float32).reshape(4, 6))
    (y,) = typed("f32", "4x6")(x)
    assert isinstance(y, torch.Tensor) and not y.requires_grad and torch.equal(x, y)
    y += 1
    assert torch.equal(x + 1, y)


def test_no_thread_of_the_device_frees_a_tensor() -> None:
    # A tensor over a NumPy array needs Python's lock to be freed: a thread that waits for it while Python shuts down
    # brings the whole process down ("terminate called without an active exception").
    model = make_model(
        "func.func @main(%x: tensor<384x384xf32>) -> tensor<384x384xf32> { "
        "%0 = stablehlo.dot %x, %x : (tensor<384x384xf32>, tensor<384x384xf32>) -> tensor<384x384xf32> "
        "%1 = stablehlo.dot %0, %0 : (tensor<384x384xf32>, tensor<384x384xf32>) -> tensor<384x384xf32> "
        "func.return %1 : tensor<384x384xf32> }"
    )
    freed_by: list[int] = []
    for _ in range(40):
        memory = copy_aligned(np.zeros((384, 384), np.float32))
        weakref.finalize(memory, lambda: freed_by.append(threading.get_ident()))
        model(torch.from_numpy(memory))
        del memory
    assert set(freed_by) == {threading.get_ident()}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.bool, torch.int64, torch.float8_e4m3fn, torch.complex64])
def test_torch_elements(dtype: Any) -> None:
    kind = {"bfloat16": "bf16", "bool": "i1", "int64": "i64", "float8_e4m3fn": "f8E4M3FN", "complex64": "complex<f32>"}
    x = torch.tensor([0, 1, 1, 0]).to(dtype)
    (y,) = typed(kind[str(dtype).removeprefix("torch.")])(x)
    assert y.dtype == dtype and torch.equal(x.view(torch.uint8), y.view(torch.uint8))


def test_torch_wins_over_jax() -> None:
    x, y = np.zeros((2, 4), np.int32), np.zeros(5, np.int32)
    results = make_model(TWO_SYMBOLS)(torch.from_numpy(x), jax.numpy.asarray(y))
    assert all(isinstance(r, torch.Tensor) for r in results)


def test_results_do_not_share_memory_with_each_other_or_the_inputs() -> None:
    model = make_model(
        "func.func @main(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) "
        "{ func.return %x, %x : tensor<64xf32>, tensor<64xf32> }"
    )
    x = torch.zeros(64)
    first, second = model(x)
    first += 1
    assert not x.any() and not second.any()


def test_donated_tensors_are_never_written_to() -> None:
    model = make_model(UPDATE)
    cache = torch.from_numpy(copy_aligned(np.zeros((256, 4), np.float32)))
    row = torch.from_numpy(np.ones((1, 4), np.float32))
    for _ in range(2):
        _, new = model(cache, row, torch.from_numpy(np.array(5, np.int32)))
        assert not cache.any() and new[5].all()
