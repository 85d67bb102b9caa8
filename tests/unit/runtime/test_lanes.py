"""Calls that repeat take a short way; what differs from the call before must not."""

from __future__ import annotations

import threading

import numpy as np
import torch

import gcomp
from gcomp.ir.program import Program
from gcomp.runtime.xla.lanes import TorchLane

TEXT = """
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.subtract %x, %y : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}"""


def model() -> gcomp.Model:
    return gcomp.compile(Program.parse(TEXT))


def difference(compiled: gcomp.Model, x: torch.Tensor, y: torch.Tensor) -> None:
    (found,) = compiled(x, y)
    assert isinstance(found, torch.Tensor) and torch.equal(found, x.detach() - y.detach())


def test_tensors_of_another_place_stride_or_content() -> None:
    compiled = model()
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    for _ in range(3):
        difference(compiled, x, y)
    assert isinstance(compiled._executor._lane, TorchLane)  # pyright: ignore
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
    compiled = torch.compile(lambda x, y: x - y, backend="gcomp", dynamic=True)
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
    compiled = torch.compile(lambda x, y: x - y, backend="gcomp", dynamic=False)
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    cases = [(x, y), (x, y), (y, x), (torch.randn(3, 2).t(), y), (x.double(), y.double()), (x, y)]
    for a, b in cases:
        for _ in range(2):
            assert torch.equal(compiled(a, b), a - b)
