"""torch's own operators (OpInfo) through the Dynamo backend: a few of each family, and the lists that are kept."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

from tests.conformance.torch_opinfo import modules, peer  # noqa: E402
from tests.conformance.torch_opinfo.harness import DTYPES, Case, cases, gradient_cases, samples  # noqa: E402
from tests.conformance.torch_opinfo.outcomes import CLASSES, NOBODYS, Outcome, run_case  # noqa: E402
from tests.conformance.torch_opinfo.page import PAGE  # noqa: E402

PASSING = (
    "add[int64]", "addbmm[float32]", "bucketize[int64]", "cdist[float32]", "cummax[float32]",
    "argwhere[int64]", "fft.irfft2[float32]", "frexp[float32]", "gcd[int64]", "index_put[float32]", "kthvalue[int64]",
    "linalg.det[float32]", "linalg.eigh[float32]", "linalg.ldl_solve[float32]", "linalg.lu[float32]",
    "linalg.solve[float32]",
    "logcumsumexp[float32]", "masked.mean[float32]", "masked_scatter[int64]", "matrix_exp[float32]",
    "nanmedian[float32]", "nn.functional.adaptive_max_pool2d[float32]", "nn.functional.embedding_bag[float32]",
    "igamma[float32]", "masked_select[float32]", "narrow[int64]", "repeat_interleave[int64]", "unique[int64]",
    "scatter_reduce.mean[int64]", "special.bessel_y1[float32]", "special.chebyshev_polynomial_u[float32]",
    "view_as_complex[float32]",
)  # fmt: skip
REFUSED = {
    "chalf[float32]": "no element type for torch.complex32",
    "nn.functional.linear_cross_entropy.chunked[float32]": "torch_nn::_linear_cross_entropy_batch_chunked",
}


GRADIENTS = (
    "masked_scatter", "nn.BatchNorm2d", "nn.ConvTranspose2d", "nn.CrossEntropyLoss", "nn.EmbeddingBag", "nn.GRUCell",
    "nn.MaxUnpool2d", "nn.MultiheadAttention", "nn.functional.grid_sample",
)  # fmt: skip
NO_GRADIENTS = {
    "chalf", "nn.LinearCrossEntropyLoss", "nn.functional.linear_cross_entropy.chunked",
    "nn.functional.linear_cross_entropy.chunked_none",
}  # fmt: skip
"""What gcomp refuses when gradients are wanted."""
CHUNKS = 32


def known() -> set[Case]:
    return set(cases())


@pytest.mark.parametrize("name", PASSING)
def test_an_operator_gives_eager_torchs_results(name: str) -> None:
    assert run_case(Case.of(name), count=2) == Outcome("passed")


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_training_step_has_eager_torchs_gradients(name: str) -> None:
    assert run_case(Case(name, "float32", gradients=True), count=2) == Outcome("passed")


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_gradients_of_operators_and_modules_are_eager_torchs(chunk: int) -> None:
    found = {case: run_case(case, count=2) for case in gradient_cases()[chunk::CHUNKS]}
    problems = {str(case): o for case, o in found.items() if o.kind not in ("passed", "unsupported", *NOBODYS)}
    assert not problems
    assert {case.operator for case, o in found.items() if o.kind == "unsupported"} <= NO_GRADIENTS


def test_every_module_is_tried_or_why_not_is_said() -> None:
    classes = {
        name for name in dir(torch.nn)
        if isinstance(cls := getattr(torch.nn, name), type) and issubclass(cls, torch.nn.Module)
    }  # fmt: skip
    tried = {name.removeprefix(modules.PREFIX) for name in modules.database()}
    assert classes == tried | {name for names in modules.NOT_TRIED.values() for name in names}


@pytest.mark.parametrize("name", REFUSED)
def test_an_operator_is_refused_by_its_name(name: str) -> None:
    outcome = run_case(Case.of(name), count=1)
    assert outcome.kind == "unsupported"
    assert REFUSED[name] in outcome.detail


def test_samples_are_the_same_each_time() -> None:
    case = Case.of("add[float32]")
    first, second = (s.input if isinstance(s.input, torch.Tensor) else s for s in (samples(case)[0], samples(case)[0]))
    assert torch.equal(first, second)


def test_a_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.conformance.torch_opinfo import outcomes

    monkeypatch.setattr(outcomes, "compiled", lambda call, backend: lambda arguments: call(arguments) + 1)
    assert run_case(Case.of("add[int64]"), count=1).kind == "wrong"


def test_a_wrong_gradient_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.conformance.torch_opinfo import outcomes

    def compiled(call: Any, backend: str) -> Any:
        return lambda arguments: call(arguments).detach() + 2 * call(arguments) - 2 * call(arguments).detach()

    monkeypatch.setattr(outcomes, "compiled", compiled)
    assert run_case(Case.of("nn.functional.grid_sample[float32, gradients]"), count=1).kind == "wrong"


def test_what_is_kept_of_the_peer_is_of_this_database() -> None:
    if not torch.__version__.startswith("2.13."):
        pytest.skip(f"the list is of torch 2.13, and this is {torch.__version__}")
    kept = peer.load()
    assert set(kept) == known()
    assert {outcome.kind for outcome in kept.values()} <= set(CLASSES)
    assert version("torch").partition("+")[0] in peer.KEPT.read_text("utf-8").splitlines()[0]


def test_the_page_names_operators_of_this_database() -> None:
    text = PAGE.read_text("utf-8")
    listed = set(re.findall(r"^\| `([\w.]+)` \|", text, re.M))
    assert listed
    assert listed <= {case.operator for case in known()}
    assert not re.search(r"\| (wrong|error|crash|timeout) \|", text.partition("## Not passed")[2])
    assert all(dtype in text for dtype in DTYPES)
