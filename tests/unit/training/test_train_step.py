"""Training steps: gradients, state, what trains and what does not, and how they are refused."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp import ops
from gcomp.errors import ArtifactError, GcompError, InputError, UnsupportedError, UsageError
from gcomp.frontends.onnx import import_onnx, import_open
from gcomp.runtime.stateful import model_of
from gcomp.training import SGD, TrainingWarning, mse, training_step
from tests.unit.training.models import MLP, MLP_WEIGHTS, X, Y, batches, draw, model

Array = np.ndarray[Any, Any]


def test_a_step_of_gradient_descent_is_the_gradient() -> None:
    """With a rate of 1 each parameter moves by its gradient, which `gcomp.grad` gives of the same loss."""
    text = """g (float[n, 4] x) => (float loss) {
        a = MatMul(x, w)
        t = Transpose<perm = [1, 0]>(w)
        b = MatMul(a, t)
        c = Mul(b, s)
        d = Mul(c, c)
        loss = ReduceMean<keepdims = 0>(d)
    }"""
    source = model(text, {"w": draw(4, 3), "s": draw(4)})
    opened = import_open(source, frozen=lambda name, array: "")
    slopes = gcomp.compile(gcomp.grad(opened.program, wrt=["w", "s"], of="loss", dims={"n": 6}))
    expected = slopes.named(x=X, **dict(opened.parameters))
    step = gcomp.train_step(source, loss="output", optimizer="sgd:lr=1", dims={"n": 6})
    loss = step(X)
    for name, before in opened.parameters.items():
        np.testing.assert_allclose(before - step.state[name], expected[f"grad(loss, {name})"], rtol=1e-4, atol=1e-6)
    assert loss == pytest.approx(np.mean(((X @ opened.parameters["w"] @ opened.parameters["w"].T)
                                          * opened.parameters["s"]) ** 2), rel=1e-5)  # fmt: skip


def test_a_course_is_torchs() -> None:
    torch: Any = pytest.importorskip("torch")
    weights = {name: torch.tensor(array, requires_grad=True) for name, array in MLP_WEIGHTS.items()}
    adamw = torch.optim.AdamW(weights.values(), lr=0.05, weight_decay=0.1)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(adamw, 12)
    step = gcomp.train_step(
        MLP, optimizer="adamw:lr=0.05,weight_decay=0.1", schedule="cosine:steps=12", clip=0.5,
        metrics=("accuracy", "grad_norm", "learning_rate"), loss="cross_entropy:label_smoothing=0.1",
    )  # fmt: skip
    for x, y in batches(8):
        logits = torch.tanh(torch.tensor(x) @ weights["w1"] + weights["b1"]) @ weights["w2"] + weights["b2"]
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor(y), label_smoothing=0.1)
        adamw.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(weights.values(), 0.5)
        rate = cosine.get_last_lr()[0]
        adamw.step()
        cosine.step()
        found = step(x, y)
        assert found["loss"] == pytest.approx(loss.item(), rel=1e-5)
        assert found["grad_norm"] == pytest.approx(norm.item(), rel=1e-4)
        assert found["learning_rate"] == pytest.approx(rate, rel=1e-6)
        assert found["accuracy"] == np.float32(np.mean(logits.detach().numpy().argmax(1) == y))
    for name, weight in weights.items():
        np.testing.assert_allclose(step.state[name], weight.detach().numpy(), rtol=1e-4, atol=1e-6)
    assert step.state["step"] == 8


def test_small_initializers_stay_weights_only_for_training() -> None:
    assert len(import_onnx(MLP).weights) == 0
    assert list(gcomp.train_step(MLP).state)[:4] == ["w1", "b1", "w2", "b2"]


def test_one_text_has_one_program() -> None:
    assert training_step(MLP).program.text() == training_step(MLP).program.text()


def test_a_softmax_at_the_end_is_taken_off() -> None:
    with_softmax = model(
        "g (float[n, 4] x) => (float[n, 3] p) { a = MatMul(x, w)\n p = Softmax<axis = -1>(a) }", {"w": draw(4, 3)}
    )
    step = gcomp.train_step(with_softmax, optimizer="sgd:lr=0")
    logits = X @ step.state["w"]
    expected = -np.mean(np.log(np.exp(logits) / np.exp(logits).sum(1, keepdims=True))[np.arange(6), Y])
    assert step(X, Y) == pytest.approx(expected, rel=1e-5)


def test_any_number_of_samples() -> None:
    step, fixed = gcomp.train_step(MLP), gcomp.train_step(MLP, dims={"n": 6})
    assert step(X, Y) == fixed(X, Y)
    assert step(X[:2], Y[:2]) > 0
    with pytest.raises(InputError, match="labels"):
        step(X, Y[:2])


def test_a_torch_module() -> None:
    torch: Any = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 3)).eval()
    step = gcomp.train_step(module, torch.tensor(X), optimizer=SGD(lr=0.1))
    assert [name for name in step.state if "running" in name] == []
    assert "0.weight" in step.state
    assert falls(step)


def test_inputs_as_parameters() -> None:
    opened = import_open(MLP, frozen=lambda name, array: "")
    assert falls(gcomp.train_step(opened.program, parameters=opened.parameters, optimizer="lion:lr=0.01"))


def falls(step: Any) -> bool:
    """Whether the loss does."""
    losses = [float(step(X, Y)) for _ in range(20)]
    return losses[-1] < 0.7 * losses[0]


def test_a_loss_of_ones_own() -> None:
    def loss(logits: Any, target: Any, weight: Any) -> Any:
        return (ops.square(logits - target).mean(-1) * weight).sum()

    step = gcomp.train_step(
        MLP, loss=loss, labels={"target": ("float32", ("n", 3)), "weight": ("float32", ("n",))}, dims={"n": 6}
    )
    target, weight = draw(6, 3), np.ones(6, np.float32)
    before = step(X, target=target, weight=weight)
    for _ in range(30):
        after = step(X, target, weight)
    assert after < before
    assert gcomp.train_step(MLP, loss=mse, labels={"y": ("f32", ("n", 3))})(X, target) > 0


# ---- what trains --------------------------------------------------------------------------------------------------


def reasons(source: Any, **options: Any) -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        return dict(training_step(source, **options).fixed)


def test_what_does_not_train_says_why() -> None:
    text = """g (float[n, 4] x) => (float[n, 3] y, float[2] other) {
        a = MatMul(x, w)
        b = Mul(a, scale)
        c = Add(b, mask)
        y = Add(c, bias)
        other = Identity(unused)
    }"""
    weights = {"w": draw(4, 3), "scale": np.float32(0.5), "mask": np.float32([0, -np.inf, 0]), "bias": draw(3),
               "unused": draw(2)}  # fmt: skip
    source = model(text, weights)
    found = reasons(source, output="y", freeze="bi*")
    assert sorted(found) == ["bias", "mask", "scale", "unused"]
    assert "frozen, by 'bi*'" in found["bias"] and "depend" in found["unused"]
    assert "single number" in found["scale"] and "infinities" in found["mask"]
    step = gcomp.train_step(source, output="y", trainable=["w", "scale"])
    assert {"w", "scale"} <= set(step.state)


def test_what_must_be_known_stays_a_constant() -> None:
    text = """g (float[1, 1, 2, 2] x) => (float[a, b, c, d] y) {
        a = Mul(x, w)
        y = Resize<mode = "nearest">(a, roi, scales)
    }"""
    source = model(text, {"w": draw(2), "roi": np.zeros(0, np.float32), "scales": np.float32([1, 1, 2, 2])})
    found = training_step(source, loss="mse")
    assert found.trained == ("w",)
    assert "scales of a Resize" in found.fixed["scales"]


NORM = """g (float[n, 3, 2, 2] x) => (float[n, 3, 2, 2] y) {
    y = BatchNormalization<momentum = 0.75 : float>(x, scale, bias, mean, var)
}""".replace(" : float", "")
STATISTICS = {"scale": np.ones(3, np.float32), "bias": np.zeros(3, np.float32), "mean": draw(3),
              "var": np.abs(draw(3)) + 1}  # fmt: skip


def test_statistics_are_frozen_at_inference() -> None:
    with pytest.warns(TrainingWarning, match="statistics"):
        step = gcomp.train_step(model(NORM, STATISTICS), loss="mse")
    assert "mean" not in step.state and "scale" in step.state


@pytest.mark.parametrize("exported", [False, True])
def test_statistics_are_state_in_training(exported: bool) -> None:
    text = (
        NORM
        if not exported
        else NORM.replace("y = Batch", "y, m, v = Batch").replace("0.75", "0.75, training_mode = 1")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingWarning)
        step = gcomp.train_step(model(text, STATISTICS), loss="mse", train_mode=not exported, optimizer="sgd:lr=0")
    x = draw(5, 3, 2, 2)
    loss = step(x, np.zeros_like(x))
    assert loss == pytest.approx(1, rel=1e-4)  # normalized by its own statistics
    np.testing.assert_allclose(step.state["mean"], 0.75 * STATISTICS["mean"] + 0.25 * x.mean((0, 2, 3)), rtol=1e-4)
    np.testing.assert_allclose(step.state["var"], 0.75 * STATISTICS["var"] + 0.25 * x.var((0, 2, 3)), rtol=1e-4)


@pytest.mark.parametrize("exported", [False, True])
def test_dropout_draws_anew_in_each_step(exported: bool) -> None:
    third = "training" if exported else ""
    text = f"""g (float[n, 64] x) => (float[n, 64] y) {{
        a = Mul(x, w)
        y = Dropout(a, ratio, {third})
    }}"""
    source = model(text.replace(", )", ")"), {"w": np.ones(64, np.float32), "ratio": np.float32(0.5)}
                   | ({"training": np.bool_(True)} if exported else {}))  # fmt: skip

    def losses(**options: Any) -> list[float]:
        step = gcomp.train_step(source, loss="mse", optimizer="sgd:lr=0", train_mode=not exported)
        ones = np.ones((2, 64), np.float32)
        return [float(step(ones, 0 * ones, **options)) for _ in range(3)]

    first = losses()
    assert len(set(first)) > 1 and first == losses() and first != losses(seed=np.uint64(1))


# ---- what is refused ----------------------------------------------------------------------------------------------

WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: training_step(MLP, loss="cross_entrop"), "did you mean 'cross_entropy'"),
    (lambda: training_step(MLP, loss="mse:delta=1"), "no setting 'delta'"),
    (lambda: training_step(MLP, loss="cross_entropy:axis=7"), "dimension 7"),
    (lambda: training_step(MLP, loss="cross_entropy:label_smoothing=x"), "cannot be 'x'"),
    (lambda: training_step(MLP, optimizer="adam"), "did you mean 'adamw'"),
    (lambda: training_step(MLP, optimizer="adamw:lr"), "cannot be read"),
    (lambda: training_step(MLP, optimizer="adamw:lr=nan"), "cannot be 'nan'"),
    (lambda: training_step(MLP, optimizer="sgd:lr=1,lr=2"), "twice"),
    (lambda: training_step(MLP, optimizer="sgd:nesterov=yes"), "cannot be 'yes'"),
    (lambda: training_step(MLP, schedule="cosine"), "needs steps"),
    (lambda: training_step(MLP, clip=0.0), "clipped"),
    (lambda: training_step(MLP, labels="float32"), "no classes"),
    (lambda: training_step(MLP, labels="int33"), "int33"),
    (lambda: training_step(MLP, output="logit"), "logits"),
    (lambda: training_step(MLP, output=3), "no output 3"),
    (lambda: training_step(MLP, loss="output"), "no number"),
    (lambda: training_step(MLP, loss="output", labels="int32"), "no labels"),
    (lambda: training_step(MLP, loss="mse", metrics=["accuracy"]), "no accuracy"),
    (lambda: training_step(MLP, metrics=["acuracy"]), "accuracy"),
    (lambda: training_step(MLP, freeze="*"), "no weight to train"),
    (lambda: training_step(MLP, freeze="w3"), "no weight of floats has a name like 'w3'"),
    (lambda: training_step(MLP, trainable="w1", freeze="w*"), "nothing like 'w1' trains"),
    (lambda: training_step(MLP, loss=lambda logits: logits.sum()), "have no type"),
    (lambda: training_step(MLP, loss=lambda x, y: 1.0, labels={"y": ("f32", ())}), "no tensor"),
    (lambda: training_step(MLP, loss=lambda x, y: x, labels={"y": ("f32", ())}), "no number"),
    (lambda: training_step(MLP, labels={"x": ("i64", ("n",))}), "input 'x' already"),
    (lambda: training_step(MLP, parameters={"z": X}), "no input 'z'"),
    (lambda: training_step(MLP, dims={"m": 3}), "m"),
]


@pytest.mark.parametrize("index", range(len(WRONG)))
def test_what_cannot_be_is_refused(index: int) -> None:
    wrong, words = WRONG[index]
    with pytest.raises((UsageError, UnsupportedError, GcompError)) as caught:
        wrong()
    assert words in str(caught.value)


def test_a_loss_of_integers_is_refused() -> None:
    source = model("g (float[n, 4] x) => (int64[n] y) { a = MatMul(x, w)\n y = ArgMax<axis = 1, keepdims = 0>(a) }",
                   {"w": draw(4, 3)})  # fmt: skip
    with pytest.raises(UsageError, match="floats"):
        training_step(source)


@pytest.mark.parametrize(
    "given", [(X, Y.astype(np.int32)), (X, Y[:, None]), (X,), (X.astype(np.float64), Y), (X, Y.astype(np.float32))]
)
def test_inputs_that_do_not_fit_leave_the_state_alone(given: tuple[Any, ...]) -> None:
    step = gcomp.train_step(MLP)
    before = dict(step.state)
    with pytest.raises(InputError):
        step(*given)
    assert all(np.array_equal(before[name], step.state[name]) for name in before)


# ---- the state ----------------------------------------------------------------------------------------------------


def test_two_runs_have_the_same_bits(tmp_path: Path) -> None:
    paths = [tmp_path / "a.gcomp", tmp_path / "b.gcomp"]
    for path in paths:
        gcomp.train_step(MLP, optimizer="adafactor:momentum=0.9", dims={"n": 6}).save(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    steps = [gcomp.train_step(MLP, optimizer="adafactor:momentum=0.9", dims={"n": 6}), gcomp.load(paths[0])]
    for x, y in batches(5):
        assert len({float(step(x, y)) for step in steps}) == 1
    for name in steps[0].state:
        assert np.array_equal(steps[0].state[name], steps[1].state[name])


def test_a_state_goes_on_where_it_was_saved(tmp_path: Path) -> None:
    step = gcomp.train_step(MLP, dims={"n": 6})
    first, *_ = [step(x, y) for x, y in batches(3)]
    step.save_state(tmp_path / "state.safetensors")
    expected = step(X, Y)
    step.save(tmp_path / "step.gcomp")
    other = gcomp.load(tmp_path / "step.gcomp")
    assert other(*batches(1)[0]) == first  # an artifact begins at the beginning
    other.load_state(tmp_path / "state.safetensors")
    assert other(X, Y) == expected
    safetensors: Any = pytest.importorskip("safetensors.numpy")
    loaded = safetensors.load_file(tmp_path / "state.safetensors")
    assert set(loaded) == set(step.state) and loaded["step"] == 3
    safetensors.save_file(loaded, tmp_path / "other.safetensors")
    step.load_state(tmp_path / "other.safetensors")
    assert step(X, Y) == expected
    step.reset()
    assert step(*batches(1)[0]) == first
    step.load_state({"w1": MLP_WEIGHTS["w1"] * 0}, partial=True)
    assert not step.state["w1"].any() and step.state["step"] == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: {**state, "w9": X}, "no 'w9'"),
        (lambda state: {name: a for name, a in state.items() if name != "b1"}, "lacks 'b1'"),
        (lambda state: {**state, "w1": state["w1"].T}, "w1"),
        (lambda state: {**state, "w1": state["w1"].astype(np.float64)}, "float64"),
    ],
)
def test_the_state_of_another_model_is_refused(change: Any, words: str, tmp_path: Path) -> None:
    from gcomp.runtime.safetensors import write_arrays

    step = gcomp.train_step(MLP, dims={"n": 6})
    step(X, Y)
    before = dict(step.state)
    wrong = change(dict(step.state))
    write_arrays(tmp_path / "wrong.safetensors", wrong)
    for source in (wrong, tmp_path / "wrong.safetensors"):
        with pytest.raises(InputError):
            step.load_state(source)
    with pytest.raises(InputError, match=words):
        step.load_state(wrong)
    assert all(np.array_equal(before[name], step.state[name]) for name in before)


@pytest.mark.parametrize("damage", [b"", b"\xff" * 20, b"\x02\0\0\0\0\0\0\0{}x", b"\x02\0\0\0\0\0\0\0[]"])
def test_a_damaged_file_is_refused(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    path.write_bytes(damage)
    step = gcomp.train_step(MLP, dims={"n": 6})
    for source in (path, tmp_path / "none.safetensors"):
        with pytest.raises(InputError):
            step.load_state(source)


def test_a_copy_of_the_state_stays_as_it_is() -> None:
    step = gcomp.train_step(MLP, dims={"n": 6})
    first = step.state["w1"]
    kept = first.copy()
    step(X, Y)
    assert np.array_equal(first, kept) and not np.array_equal(first, step.state["w1"])


def test_memory_is_taken_over() -> None:
    step = gcomp.train_step(MLP, dims={"n": 6}, target="xla:cpu")
    memory = step.memory()
    assert memory.shared_bytes >= sum(array.nbytes for array in step.state.values())


def test_an_interrupted_step_says_that_the_state_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    from gcomp.runtime.xla.resident import Whole

    step = gcomp.train_step(MLP, dims={"n": 6}, target="xla:cpu")
    first = step(X, Y)
    run = Whole.run_whole

    def interrupted(self: Any, call: Any, arguments: Any) -> Any:
        run(self, call, arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(Whole, "run_whole", interrupted)
    with pytest.raises(KeyboardInterrupt):
        step(X, Y)
    monkeypatch.undo()
    for use in (lambda: step(X, Y), lambda: step.state["w1"]):
        with pytest.raises(InputError, match="gone"):
            use()
    step.reset()
    assert step(X, Y) == first


def test_an_interrupted_step_on_processors_says_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from gcomp.runtime.cpu.session import Session

    step = gcomp.train_step(MLP, dims={"n": 6}, target="cpu")
    first, run = step(X, Y), Session.run

    def interrupted(self: Any, *arguments: Any) -> Any:
        run(self, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        step(X, Y)
    monkeypatch.undo()
    with pytest.raises(InputError, match="gone"):
        step(X, Y)
    step.reset()
    assert step(X, Y) == first


def test_every_pass_keeps_a_step_right() -> None:
    labels = {"labels": Y, "x": X}
    step = training_step(MLP, dims={"n": 6})
    given = {**labels, **step.program.initial}
    arrays = {p.name: given.get(p.name, np.zeros([int(str(s)) for s in p.shape], np.dtype(_DTYPES[p.dtype])))
              for p in step.program.inputs()}  # fmt: skip
    gcomp.compile(step.program, verify="full", verify_inputs=arrays)


_DTYPES = {"f32": "float32", "i64": "int64"}


@pytest.mark.parametrize(("target", "error"), [("xla:tpu", UnsupportedError), ("triton:sm_90", ArtifactError)])
def test_the_target_must_be_one_that_runs_the_plan(target: str, error: type[Exception]) -> None:
    step = gcomp.train_step(MLP, dims={"n": 6})
    with pytest.raises(error):
        model_of(dataclasses.replace(step.plan, target=target), step.weights)
