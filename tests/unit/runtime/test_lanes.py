"""Calls of xla:cpu that repeat take a short way; what differs from the call before must not."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

import gcomp
from gcomp.dtypes import dtype_of
from gcomp.errors import InputError
from gcomp.ir.program import Program
from gcomp.runtime.xla.lanes import DispatchedLane, NumpyLane, TorchLane

TEXT = """
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.subtract %x, %y : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}"""


def model() -> gcomp.Model:
    return gcomp.compile(Program.parse(TEXT), target="xla:cpu")


def difference(compiled: gcomp.Model, x: torch.Tensor, y: torch.Tensor) -> None:
    (found,) = compiled(x, y)
    assert isinstance(found, torch.Tensor) and torch.equal(found, x.detach() - y.detach())


def test_tensors_of_another_place_stride_or_content() -> None:
    compiled = model()
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    for _ in range(3):
        difference(compiled, x, y)
    assert isinstance(compiled._executor.lane, TorchLane)  # pyright: ignore
    x += 1
    difference(compiled, x, y)
    difference(compiled, y, x)
    difference(compiled, torch.randn(3, 2).t(), y)
    difference(compiled, torch.nn.Parameter(x.clone()), y)
    difference(compiled, torch.randn(7)[1:].view(2, 3), y)  # not where the device can read in place
    difference(compiled, torch.view_as_complex(torch.randn(2, 3, 2)).conj().imag, y)  # negated on reading
    difference(compiled, x, x)
    found = compiled(x.numpy(), y.numpy())
    assert isinstance(found[0], np.ndarray)
    difference(compiled, x, y)


def test_results_are_of_their_own() -> None:
    compiled = model()
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    first = [compiled(x, y)[0] for _ in range(3)]
    kept = first[1].clone()
    x.zero_()
    y.fill_(5)
    compiled(x, y)
    first[2].zero_()
    assert torch.equal(first[1], kept)


def test_memory_that_was_freed_and_given_out_again() -> None:
    compiled = model()
    y = torch.ones(2, 3)
    for i in range(50):
        difference(compiled, torch.full((2, 3), float(i)), y)


def test_sizes_that_change() -> None:
    compiled = torch.compile(lambda x, y: x - y, backend="gcomp", dynamic=True, options={"target": "xla:cpu"})
    for n in (2, 4, 4, 3, 4, 2):
        x, y = torch.randn(n, 3), torch.randn(n, 3)
        assert torch.equal(compiled(x, y), x - y)


def test_threads() -> None:
    compiled, failures = model(), list[str]()

    def work(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        for _ in range(200):
            x, y = (torch.randn(2, 3, generator=generator) for _ in range(2))
            if not torch.equal(compiled(x, y)[0], x - y):
                failures.append(f"thread {seed}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_captured_graphs_that_see_other_tensors() -> None:
    compiled = torch.compile(lambda x, y: x - y, backend="gcomp", dynamic=False, options={"target": "xla:cpu"})
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    cases = [(x, y), (x, y), (y, x), (torch.randn(3, 2).t(), y), (x.double(), y.double()), (x, y)]
    for a, b in cases:
        for _ in range(2):
            assert torch.equal(compiled(a, b), a - b)


def negation(type: str) -> gcomp.Model:
    text = f"func.func @main(%x: {type}) -> {type} {{ %0 = stablehlo.negate %x : {type} return %0 : {type} }}"
    return gcomp.compile(Program.parse(text), target="xla:cpu")


def test_arrays_that_differ_from_those_of_the_call_before() -> None:
    compiled = model()
    x, y = np.ones((2, 3), np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    for _ in range(3):
        assert np.array_equal(compiled(x, y)[0], x - y)
    assert isinstance(compiled._executor.lane, DispatchedLane)  # pyright: ignore
    x += 1
    for a, b in ((x, y), (y, x), (np.asfortranarray(x), y[::-1]), (np.full((3, 2), 7, np.float32).T, y)):
        assert np.array_equal(compiled(a, b)[0], a - b)
    kept = compiled(x, y)[0]
    copy = kept.copy()
    x.fill(9)
    compiled(x, y)
    assert np.array_equal(kept, copy)
    for wrong in (x.astype(np.float64), x.astype(np.int32), x[:1], x[0], 1.0, None):
        with pytest.raises(InputError):
            compiled(wrong, y)
        assert np.array_equal(compiled(x, y)[0], x - y)
    tensors = compiled(torch.from_numpy(x), torch.from_numpy(y))
    assert isinstance(tensors[0], torch.Tensor)


@pytest.mark.parametrize("element", ["f64", "i64"])
def test_64_bits_stay_64_bits(element: str) -> None:
    compiled, x = (
        negation(f"tensor<2x{element}>"),
        np.array([2**40 + 1, 3], {"f64": np.float64, "i64": np.int64}[element]),
    )
    for _ in range(3):
        (found,) = compiled(x)
        assert found.dtype == x.dtype
        assert np.array_equal(found, -x)
    assert isinstance(compiled._executor.lane, NumpyLane)  # pyright: ignore


@pytest.mark.parametrize("element", ["f16", "bf16", "i8", "ui16", "i1"])
def test_narrow_types_take_the_short_way(element: str) -> None:
    type = f"tensor<5x{element}>"
    text = f"func.func @main(%x: {type}) -> {type} {{ %0 = stablehlo.maximum %x, %x : {type} return %0 : {type} }}"
    compiled = gcomp.compile(Program.parse(text), target="xla:cpu", pipeline="")
    x = np.array([0, 1, 1, 0, 1]).astype(dtype_of(element))
    for _ in range(3):
        (found,) = compiled(x)
        assert found.dtype == x.dtype
        assert np.array_equal(found, x)
    assert isinstance(compiled._executor.lane, DispatchedLane)  # pyright: ignore


def test_sizes_that_change_between_short_ways() -> None:
    compiled = negation('tensor<?xf32, ["n"]>')
    for size in (1, 4, 4, 2, 4, 1, 1, 3, 4):
        x = np.arange(size, dtype=np.float32)
        assert np.array_equal(compiled(x)[0], -x)
