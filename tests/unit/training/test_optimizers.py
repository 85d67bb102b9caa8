"""Optimizers, clipping and schedules: those of torch and optax, over random shapes, at once and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp import ops
from gcomp.errors import UsageError
from gcomp.training import SGD, Adafactor, AdamW, Constant, Cosine, Linear, Lion, Piecewise, clip_by_global_norm

Array = np.ndarray[Any, Any]
STEPS, RATE = 6, 0.03


def course(rule: Any, shape: Sequence[int], seed: int, dtype: Any = np.float32) -> list[Array]:
    """A parameter after each of some steps along random gradients."""
    rng = np.random.default_rng(seed)
    parameter = ops.asarray(rng.standard_normal(shape).astype(dtype))
    slots = {name: ops.zeros(size, dtype) for name, size in rule.slots(tuple(shape)).items()}
    found: list[Array] = []
    for i in range(STEPS):
        gradient = ops.asarray(rng.standard_normal(shape).astype(dtype))
        count, rate = ops.asarray(np.float64(i)), ops.asarray(np.float64(RATE))
        parameter, slots = rule.update(parameter, gradient, slots, count, rate)
        found.append(parameter.numpy())
    return found


TORCH: list[tuple[Any, str, dict[str, Any]]] = [
    (SGD(), "SGD", {}),
    (SGD(momentum=0.9), "SGD", {"momentum": 0.9}),
    (SGD(momentum=0.9, nesterov=True, weight_decay=0.1), "SGD",
     {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    (SGD(momentum=0.8, dampening=0.3), "SGD", {"momentum": 0.8, "dampening": 0.3}),
    (AdamW(), "AdamW", {}),
    (AdamW(beta1=0.8, beta2=0.95, eps=1e-6, weight_decay=0.2), "AdamW",
     {"betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.2}),
    (AdamW(weight_decay=0.0), "AdamW", {"weight_decay": 0.0}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "name", "options"), TORCH)
@pytest.mark.parametrize("shape", [(), (3,), (4, 1, 5)])
def test_torchs_optimizers(rule: Any, name: str, options: dict[str, Any], shape: tuple[int, ...]) -> None:
    torch: Any = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    parameter = torch.tensor(rng.standard_normal(shape).astype(np.float32), requires_grad=True)
    theirs = getattr(torch.optim, name)([parameter], lr=RATE, foreach=False, **options)
    for own in course(rule, shape, 1):
        parameter.grad = torch.tensor(rng.standard_normal(shape).astype(np.float32))
        theirs.step()
        np.testing.assert_allclose(own, parameter.detach().numpy(), rtol=1e-6, atol=1e-7)


OPTAX: list[tuple[Any, Callable[[Any], Any]]] = [
    (Lion(), lambda optax: optax.lion(RATE)),
    (Lion(beta1=0.8, beta2=0.9, weight_decay=0.1), lambda optax: optax.lion(RATE, 0.8, 0.9, weight_decay=0.1)),
    (Adafactor(), lambda optax: optax.adafactor(RATE)),
    (Adafactor(factored_from=2), lambda optax: optax.adafactor(RATE, min_dim_size_to_factor=2)),
    (Adafactor(factored_from=2, momentum=0.9, weight_decay=0.1, by_parameter=False, clipping=0.5, decay_rate=0.7),
     lambda optax: optax.adafactor(RATE, min_dim_size_to_factor=2, momentum=0.9, weight_decay_rate=0.1, decay_rate=0.7,
                                   multiply_by_parameter_scale=False, clipping_threshold=0.5)),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "make"), OPTAX)
@pytest.mark.parametrize("shape", [(), (3,), (4, 6), (6, 4), (5, 2, 4)])
def test_optaxs_optimizers(rule: Any, make: Callable[[Any], Any], shape: tuple[int, ...]) -> None:
    optax: Any = pytest.importorskip("optax")
    rng = np.random.default_rng(2)
    parameter: Any = rng.standard_normal(shape).astype(np.float32)
    theirs = make(optax)
    state = theirs.init(parameter)
    for own in course(rule, shape, 2):
        updates, state = theirs.update(rng.standard_normal(shape).astype(np.float32), state, parameter)
        parameter = optax.apply_updates(parameter, updates)
        np.testing.assert_allclose(own, np.asarray(parameter), rtol=1e-5, atol=1e-6)


def test_compiled_is_as_at_once() -> None:
    rule = AdamW(weight_decay=0.1)
    update = gcomp.function(rule.update)
    rng = np.random.default_rng(3)
    p, g, m, v = (np.abs(rng.standard_normal((3, 4))).astype(np.float32) for _ in range(4))
    arguments = (p, g, {"mean": m, "square": v}, np.float64(4), np.float64(0.1))
    with gcomp.eager():
        expected, _ = update(*arguments)
    np.testing.assert_allclose(update(*arguments)[0].numpy(), expected.numpy(), rtol=1e-6)


@pytest.mark.parametrize("norm", [0.5, 1.0, 100.0])
def test_clipping_is_torchs(norm: float) -> None:
    torch: Any = pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in [(3,), (2, 5), ()]]
    parameters = [torch.zeros(np.shape(a), requires_grad=True) for a in arrays]
    for parameter, array in zip(parameters, arrays, strict=True):
        parameter.grad = torch.tensor(array)
    total = torch.nn.utils.clip_grad_norm_(parameters, norm)
    clipped, own = clip_by_global_norm([ops.asarray(a) for a in arrays], norm)
    np.testing.assert_allclose(own.numpy(), total.numpy(), rtol=1e-6)
    for ours, parameter in zip(clipped, parameters, strict=True):
        np.testing.assert_allclose(ours.numpy(), parameter.grad.numpy(), rtol=1e-6)


def factors(schedule: Any, count: int = 40) -> list[float]:
    return [float(schedule(ops.asarray(np.float64(i))).numpy()) for i in range(count)]


def test_schedules_are_those_of_torch() -> None:
    torch: Any = pytest.importorskip("torch")
    schedulers = torch.optim.lr_scheduler

    def theirs(make: Callable[[Any], Any]) -> list[float]:
        optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        scheduler = make(optimizer)
        found: list[float] = []
        for _ in range(40):
            found.append(scheduler.get_last_lr()[0])
            optimizer.step()
            scheduler.step()
        return found

    np.testing.assert_allclose(
        factors(Piecewise((5, 20), 0.5)), theirs(lambda o: schedulers.MultiStepLR(o, [5, 20], gamma=0.5))
    )
    np.testing.assert_allclose(
        factors(Linear(30, final=0.1)), theirs(lambda o: schedulers.LinearLR(o, 1.0, 0.1, total_iters=30)), rtol=1e-12
    )
    expected = theirs(lambda o: schedulers.CosineAnnealingLR(o, 39, eta_min=0.1))
    np.testing.assert_allclose(factors(Cosine(39, final=0.1)), expected, rtol=1e-9)
    assert factors(Constant()) == [1.0] * 40


def test_schedules_are_those_of_optax() -> None:
    optax: Any = pytest.importorskip("optax")
    theirs = optax.warmup_cosine_decay_schedule(0.0, 1.0, 8, 28, 0.2)
    expected = [float(theirs(i)) for i in range(40)]
    np.testing.assert_allclose(factors(Cosine(20, final=0.2, warmup=8)), expected, rtol=1e-5)
    warm = optax.join_schedules([optax.linear_schedule(0.0, 1.0, 8), optax.constant_schedule(1.0)], [8])
    np.testing.assert_allclose(factors(Constant(warmup=8)), [float(warm(i)) for i in range(40)], rtol=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: SGD(nesterov=True),
        lambda: AdamW(beta1=1.0),
        lambda: Cosine(0),
        lambda: Constant(warmup=-1),
        lambda: Piecewise((5, 5)),
        lambda: clip_by_global_norm([ops.zeros((2,))], 0.0),
    ],
)
def test_what_cannot_be_is_refused(wrong: Callable[[], Any]) -> None:
    with pytest.raises(UsageError):
        wrong()
