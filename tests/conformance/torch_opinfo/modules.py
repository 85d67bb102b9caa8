"""The modules of torch.nn in training, as entries like those of the database of operators.

torch has sample inputs for most of them (ModuleInfo); `OTHERS` has some for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tests.conformance.torch_opinfo.internal import internal

PREFIX = "nn."


def is_module(name: str) -> bool:
    """Whether a case's name is that of a module, and not of a function."""
    return name.startswith(PREFIX) and not name.startswith("nn.functional.")


@dataclass(frozen=True)
class Sample:
    """A module, and what it is called with."""

    input: Any
    args: Sequence[Any]
    kwargs: dict[str, Any]

    @staticmethod
    def output_process_fn_grad(results: Any) -> Any:
        """All of the results are compared."""
        return results


@dataclass(frozen=True)
class Entry:
    """A module: the part of an OpInfo's face that is used."""

    name: str
    make: Callable[[], Iterator[tuple[Any, Any]]]
    """Its samples, as a module in training and its inputs (torch's FunctionInput)."""
    decorators: Sequence[Any] = ()
    supports_autograd: bool = True

    def supported_dtypes(self, device: str) -> set[Any]:
        """float32 alone is tried."""
        import torch

        return {torch.float32}

    def op(self, module: Any, *args: Any, **keywords: Any) -> Any:
        """Call the module."""
        return module(*args, **keywords)

    def sample_inputs(self, device: str, dtype: Any, requires_grad: bool) -> Iterator[Sample]:
        """The module's samples."""
        for module, given in self.make():
            yield Sample(module, given.args, given.kwargs)


@lru_cache(1)
def database() -> dict[str, Entry]:
    """Name -> entry, of all modules."""
    import torch

    common = internal("common_modules")
    infos = [info for info in common.module_db if "Lazy" not in info.name]
    found = {info.name: Entry(info.name, _samples_of(info), info.decorators) for info in infos}
    for name, rows in OTHERS.items():
        cls = getattr(torch.nn, name)
        found[f"{PREFIX}{name}"] = Entry(f"{PREFIX}{name}", _samples_of_rows(cls, rows, common.FunctionInput))
    return found


def _samples_of(info: Any) -> Callable[[], Iterator[tuple[Any, Any]]]:
    def make() -> Iterator[tuple[Any, Any]]:
        import torch

        for given in info.module_inputs_func(info, "cpu", torch.float32, True, True):
            built = given.constructor_input
            yield info.module_cls(*built.args, **built.kwargs).float(), given.forward_input

    return make


Row = tuple[tuple[Any, ...] | dict[str, Any], Callable[[], Sequence[Any]]]
"""What a module is made with, and a function that makes its inputs."""


def _samples_of_rows(cls: Any, rows: Sequence[Row], given: Any) -> Callable[[], Iterator[tuple[Any, Any]]]:
    def make() -> Iterator[tuple[Any, Any]]:
        for built, inputs in rows:
            module = cls(**built) if isinstance(built, dict) else cls(*built)
            yield module, given(*inputs())

    return make


def _of(*shapes: tuple[int, ...]) -> Callable[[], Sequence[Any]]:
    """Normal numbers with gradients, in shapes."""

    def make() -> Sequence[Any]:
        import torch

        return [torch.randn(shape, requires_grad=True) for shape in shapes]

    return make


def _with_places(pool: str, *shape: int, **keywords: int) -> Callable[[], Sequence[Any]]:
    """What a pooling of maxima gives: values and places."""

    def make() -> Sequence[Any]:
        import torch

        values, places = getattr(torch.nn, pool)(**keywords, return_indices=True)(torch.randn(shape))
        return [values.detach().requires_grad_(), places]

    return make


def _rows_of_a_table(*shape: int, weights: bool = False) -> Callable[[], Sequence[Any]]:
    """Indices into a table of ten rows, in bags; with weights, if so asked."""

    def make() -> Sequence[Any]:
        import torch

        indices = torch.randint(0, 10, shape)
        offsets = torch.tensor([0, 2, 2, 5]) if len(shape) == 1 else None
        return [indices, offsets, torch.rand(shape, requires_grad=True)] if weights else [indices, offsets]

    return make


def _classes(shape: tuple[int, ...], count: int, targets: tuple[int, ...]) -> Callable[[], Sequence[Any]]:
    """Scores, and classes."""

    def make() -> Sequence[Any]:
        import torch

        return [torch.randn(shape).log_softmax(1).requires_grad_(), torch.randint(0, count, targets)]

    return make


_PADDED = ({"kernel_size": 3, "stride": 2, "padding": 1}, {"kernel_size": 2, "stride": 2})
_TABLE = {"num_embeddings": 10, "embedding_dim": 3}
_SMOOTH = (("linear", 3), ("bilinear", 4), ("bicubic", 4), ("trilinear", 5))
_VOLUME = (2, 3, 4, 5, 6)
OTHERS: dict[str, Sequence[Row]] = {
    "AdaptiveLogSoftmaxWithLoss": [((8, 12, [4, 8]), _classes((6, 8), 12, (6,)))],
    "ChannelShuffle": [((2,), _of((2, 4, 3, 3)))],
    "CosineSimilarity": [((1,), _of((4, 5), (4, 5))), ((2, 0.1), _of((2, 3, 4), (2, 3, 4)))],
    "CrossMapLRN2d": [((3,), _of((2, 5, 3, 3)))],
    "EmbeddingBag": [
        *((_TABLE | {"mode": mode}, _rows_of_a_table(7)) for mode in ("sum", "mean", "max")),
        *((_TABLE | {"mode": mode, "padding_idx": 2}, _rows_of_a_table(3, 4)) for mode in ("sum", "mean", "max")),
        (_TABLE | {"mode": "sum"}, _rows_of_a_table(7, weights=True)),
        (_TABLE | {"mode": "sum", "padding_idx": 1}, _rows_of_a_table(3, 4, weights=True)),
        (_TABLE | {"mode": "sum", "include_last_offset": True}, _rows_of_a_table(7)),
    ],
    "Flatten": [((), _of((2, 3, 4)))],
    "Fold": [(((4, 5), (2, 2)), _of((2, 12, 12))), (((5, 5), (2, 3), 1, 1, 2), _of((2, 12, 12)))],
    "Hardsigmoid": [((), _of((3, 4)))],
    "Identity": [((), _of((3, 4)))],
    "MaxUnpool1d": [(tuple(k.values()), _with_places("MaxPool1d", 2, 3, 8, **k)) for k in _PADDED],
    "MaxUnpool2d": [(tuple(k.values()), _with_places("MaxPool2d", 2, 3, 8, 6, **k)) for k in _PADDED],
    "MaxUnpool3d": [(tuple(k.values()), _with_places("MaxPool3d", 2, 3, 4, 6, 8, **k)) for k in _PADDED],
    "NLLLoss2d": [((), _classes((2, 4, 3, 3), 4, (2, 3, 3)))],
    "PairwiseDistance": [*(((p,), _of((4, 5), (4, 5))) for p in (1.0, 2.0, 3.0))],
    "PixelShuffle": [((2,), _of((2, 8, 3, 3)))],
    "PixelUnshuffle": [((2,), _of((2, 2, 4, 6)))],
    "TransformerDecoder": [],
    "TripletMarginLoss": [((), _of((4, 5), (4, 5), (4, 5))), ({"swap": True, "p": 1.0}, _of((4, 5), (4, 5), (4, 5)))],
    "TripletMarginWithDistanceLoss": [((), _of((4, 5), (4, 5), (4, 5)))],
    "Unflatten": [((1, (2, 3)), _of((2, 6, 4)))],
    "Unfold": [(((2, 3),), _of((2, 3, 5, 6))), (((2, 2), 2, 1, 2), _of((2, 3, 5, 6)))],
    "Upsample": [
        *(({"scale_factor": 2, "mode": "nearest"}, _of(_VOLUME[:n])) for n in (3, 4, 5)),
        *(({"scale_factor": 1.5, "mode": mode}, _of(_VOLUME[:n])) for mode, n in _SMOOTH),
        *(({"size": 7, "mode": mode, "align_corners": True}, _of(_VOLUME[:n])) for mode, n in _SMOOTH),
        *(({"size": 3, "mode": "nearest-exact"}, _of(_VOLUME[:n])) for n in (3, 4, 5)),
    ],
    "UpsamplingBilinear2d": [((5,), _of((2, 3, 3, 4)))],
    "UpsamplingNearest2d": [((5,), _of((2, 3, 3, 4)))],
}  # fmt: skip
"""Modules of which torch has no samples."""
NOT_TRIED: dict[str, Sequence[str]] = {
    "containers, and classes to derive from": (
        "Container", "Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "RNNBase", "RNNCellBase",
        "Sequential",
    ),
    "its layers are tried": ("TransformerDecoder",),
    "they become other modules at the first call": (
        "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
        "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d",
        "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear",
    ),
    "they draw random numbers": (
        "AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout", "RReLU",
    ),
    "they need several processes or devices": ("DataParallel", "SyncBatchNorm"),
}  # fmt: skip
"""Why other modules have none."""
