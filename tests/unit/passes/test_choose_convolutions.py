"""Convolutions by values at points: chosen where they are as exact, and as fast by a model; what classes promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.analysis.machines import machine_named
from gcomp.analysis.winograd import Errors, Layer, errors, layers_of, seconds, ways_of
from gcomp.dims import Ranges, Size, symbol
from gcomp.errors import UsageError
from gcomp.exactness import Numerics
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.composites import MEASURED
from gcomp.ir.program import Program
from gcomp.ir.structures import ConvDimensions
from gcomp.ir.types import tensor
from gcomp.ir.winograd import transformed
from gcomp.passes.base import PassContext
from gcomp.passes.convert import choose_convolutions
from gcomp.passes.convert.choose_convolutions import ChooseConvolutions
from gcomp.reference.interpreter import Interpreter, interpret
from gcomp.reference.spreading import Spreading
from gcomp.runtime.cpu.variants import VARIANTS, runs

Array = np.ndarray[Any, Any]
V4 = machine_named("x86-64-v4")
here = pytest.mark.skipif(not any(map(runs, VARIANTS.values())), reason="no code for this machine")


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def network(channels: int = 64, size: Size = 11, count: Size = 1, features: int = 32) -> Program:
    """A convolution of an image that is padded for it, and an activation."""
    program = Program.empty([("x", tensor((count, size, size, channels), "f32"))])
    b = Builder(program)
    image = b.pad(program.block.args[0], b.full((), 0, "f32"), (0, 1, 1, 0), (0, 1, 1, 0))
    weight = b.weight("w", numbers(3, 3, channels, features) / np.float32(24))
    found = b.emit(
        hlo.ConvolutionOp, image, weight, types=(tensor((count, size, size, features), "f32"),),
        dimension_numbers=ConvDimensions.channels_last(2),
    )  # fmt: skip
    program.finish([("y", b.maximum(found, b.full_like(found, 0)))])
    return program


def chosen(program: Program) -> list[str]:
    """The algorithms that were chosen in a program."""
    ChooseConvolutions("x86-64-v4").run(program, PassContext())
    return [str(op.attributes[MEASURED].data["algorithm"].data) for op in program.ops() if MEASURED in op.attributes]  # type: ignore[attr-defined]


def test_many_channels_of_a_large_image_are_chosen_and_few_are_not() -> None:
    assert chosen(network()) == ["winograd 4x4"]
    assert chosen(network(channels=24)) == []
    assert chosen(network(features=12)) == []


def test_images_of_any_size_and_number_are_computed_in_tiles() -> None:
    program = network(size=symbol("s"), count=symbol("n"))
    before = network(size=symbol("s"), count=symbol("n"))
    assert chosen(program) == ["winograd 4x4"]
    for count, size in ((1, 5), (2, 8), (1, 1)):
        x = numbers(count, size, size, 64)
        (expected,), (found,) = interpret(before, [x]), interpret(program, [x])
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
    bound = program.bind({"s": 6, "n": 2})
    bound.verify()
    x = numbers(2, 6, 6, 64)
    assert interpret(bound, [x])[0].tobytes() == interpret(program, [x])[0].tobytes()


def test_no_number_of_images_is_much_slower_for_it() -> None:
    """Where the call decides how many images there are, one must not wait for weights that many would share."""
    for features, size in ((512, 7), (512, 4), (1024, 7)):
        layers = layers_of((symbol("n"), size, size, features), features, features, Ranges())
        assert [layer.images for layer in layers] == [1, 512]
        ways = ways_of(layers, V4)
        for m in ways.tiles:
            for layer in layers:
                assert seconds(layer, V4, m) <= 1.05 * ways_of([layer], V4).sums
    assert list(ways_of(layers_of((symbol("n"), 28, 28, 128), 128, 128, Ranges()), V4).tiles) == [4, 2]


def test_errors_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of tiles that are too inexact the next smaller ones are taken, or none."""
    monkeypatch.setattr(choose_convolutions, "errors", lambda *a: Errors(3.0 if a[2] == 4 else 1.0, 1.0))
    assert chosen(network()) == ["winograd 2x2"]
    monkeypatch.setattr(choose_convolutions, "errors", lambda *a: Errors(3.0, 1.0))
    assert chosen(network()) == []


def test_large_weights_of_a_small_image_are_read_as_they_are() -> None:
    """Where memory decides, products at more points are no gain."""
    assert ways_of([Layer(1, 56, 56, 64, 64)], V4).tiles[0] == 4
    assert list(ways_of([Layer(1, 14, 14, 256, 256)], V4).tiles) == [2]
    assert list(ways_of([Layer(1, 7, 7, 512, 512)], V4).tiles) == []
    assert list(ways_of([Layer(1, 2, 2, 512, 512)], V4).tiles) == []


@pytest.mark.parametrize("m", [2, 4])
def test_measured_errors_are_those_of_other_samples(m: int) -> None:
    """What is measured on a few results is what all of them have: the seed of the weights makes no difference."""
    window = [numbers(3, 3, 64, 16, seed=seed) for seed in (1, 2)]
    first, second = (errors(w, transformed(w, m, 16), m) for w in window)
    assert 0.7 < first.transformed / second.transformed < 1.4
    assert 0.7 < first.exact / second.exact < 1.4
    assert 1e-8 < first.transformed < 1e-6


@here
@pytest.mark.parametrize("numerics", ["standard", "fast"])
def test_a_model_is_as_exact_as_its_class_says(numerics: Numerics) -> None:
    """Against f64, on all results: within the factor of what plain sums are off by."""
    x = numbers(1, 11, 11, 64, seed=3)
    ((true,),) = ((np.asarray(v, np.float64) for v in interpret(network(), [x])),)
    off: dict[str, float] = {}
    for name in ("exact", numerics):
        found = gcomp.compile(network(), numerics=name)
        (y,) = found(x)
        off[name] = float(np.sqrt(np.mean((y - true) ** 2)))
        assert found.numerics is not None and found.numerics.name == name
    assert off[numerics] <= {"standard": 2, "fast": 8}[numerics] * off["exact"]


@here
@pytest.mark.parametrize("numerics", ["exact", "standard", "fast"])
def test_an_image_gives_the_same_bits_in_any_batch(numerics: Numerics) -> None:
    images = numbers(5, 11, 11, 64, seed=4)
    alone = [gcomp.compile(network(), numerics=numerics)(image[None])[0][0] for image in images]
    together = gcomp.compile(network(count=5), numerics=numerics)(images)[0]
    assert np.stack(alone).tobytes() == together.tobytes()


@here
def test_bits_do_not_depend_on_threads_or_vectors() -> None:
    x, found = numbers(3, 11, 11, 64, seed=5), set[bytes]()
    for target in [f"cpu:{name}" for name, variant in VARIANTS.items() if runs(variant)]:
        for threads in (1, 2):
            model = gcomp.compile(network(count=3), target=target, threads=threads)
            assert model.numerics is not None and len(model.numerics.kernels) == 1
            found.add(model(x)[0].tobytes())
    assert len(found) == 1


@here
def test_an_artifact_says_its_class_and_what_was_chosen(tmp_path: Path) -> None:
    path = tmp_path / "net.gcomp"
    gcomp.compile(network()).save(path)
    found = gcomp.load(path).numerics
    assert found is not None and found.name == "standard"
    (kernel,) = found.kernels
    assert kernel.algorithm == "winograd 4x4" and 0 < kernel.error <= 2 * kernel.exact


def test_targets_without_classes_refuse_them() -> None:
    with pytest.raises(UsageError, match="no classes of numerics on the target xla:cpu"):
        gcomp.compile(network(), target="xla:cpu", numerics="exact")
    with pytest.raises(UsageError, match="numerics is 'exact', 'standard', 'fast', not 'odd'"):
        gcomp.compile(network(), numerics="odd")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a pipeline says itself how exact it is"):
        gcomp.compile(network(), numerics="exact", pipeline="cse")


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_what_is_not_finite_may_spread_over_a_tile_and_no_further(value: float) -> None:
    before, after = network(), network()
    ChooseConvolutions("x86-64-v4").run(after, PassContext())
    x = numbers(1, 11, 11, 64, seed=6)
    x[0, 5, 1, 7] = value
    (expected,), (actual,), (spread,) = (run([x]) for run in (
        Interpreter(before).run, Interpreter(after).run, Spreading(before).run
    ))  # fmt: skip
    odd = np.isnan(actual) & np.isfinite(expected)
    assert odd.any() and (odd <= np.isnan(spread)).all()
    # A tile of four results that reads column 1 ends with column 5 at most.
    assert np.isnan(spread[0, 5, 5]).all()
    np.testing.assert_array_equal(spread[:, :, 6:], expected[:, :, 6:])


@here
def test_verification_knows_what_standard_leaves_open() -> None:
    x = numbers(1, 11, 11, 64, seed=6)
    x[0, 5, 1, 7] = np.inf
    for verify in ("each", "full"):
        assert gcomp.compile(network(), verify=verify, verify_inputs=[x]).verified is not None
