"""How to compile: one record of options for every door (`gcomp.compile`, `jit`, `function`, torch.compile, ...)."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from gcomp.dims import DimError, DimSpec, Range, range_of
from gcomp.errors import UsageError, suggest
from gcomp.exactness import Numerics
from gcomp.sharding import Mesh
from gcomp.sharding.text import MeshSpec

if TYPE_CHECKING:
    import numpy as np

    from gcomp.frontends.onnx.model.input_structures import Structure
    from gcomp.passes.manager import Instrument

Verify = Literal["off", "each", "full"]

DEFAULT_TARGET = "cpu"
"""What every door compiles for, unless it is told otherwise."""

OF_A_CALL = ("dims", "structures", "constants", "donate", "fetch", "buckets", "shardings")
"""Options that doors which compile for each kind of call leave out: its arguments and results decide them."""

Buckets = Mapping[str, Sequence[int]]
"""The sizes to pad each symbol to."""

Array: TypeAlias = "np.ndarray[Any, Any]"


def nobody(step: str) -> None:
    """A progress callback that does nothing."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The keywords of `gcomp.compile`, which says what each means."""

    target: str = DEFAULT_TARGET
    dims: Mapping[str, DimSpec] | None = None
    structures: Mapping[str, Structure] | None = None
    constants: Mapping[str, Array] | None = None
    pipeline: str | None = None
    verify: Verify = "off"
    verify_inputs: Sequence[Any] | Mapping[str, Any] | None = None
    donate: Sequence[str] = ()
    fetch: Sequence[str] | None = None
    checks: Sequence[str] = ()
    buckets: Buckets | None = None
    instruments: Sequence[Instrument] = ()
    progress: Callable[[str], object] | None = None
    reproducer: Path | None = None
    tuned: Path | None = None
    memory_budget: int | str | None = None
    numerics: Numerics | None = None
    threads: int | None = None
    executables: int | None = None
    prepare: bool = True
    mesh: MeshSpec | None = None
    shardings: Mapping[str, Any] | Literal["auto"] | None = None

    def __post_init__(self) -> None:
        """Raises UsageError for what is no setting, and for what would say nothing."""
        for option in fields(self):
            _check_kind(option.name, getattr(self, option.name), option.default)
        if self.verify not in get_args(Verify):
            raise UsageError(f"verify is {', '.join(map(repr, get_args(Verify)))}, not {self.verify!r}")
        if self.verify == "off" and self.verify_inputs is not None:
            raise UsageError("verify_inputs say nothing where verify is off", fix='verify="each" or "full"')
        if self.verify == "each" and self.verify_inputs is not None and self.buckets:
            raise UsageError(
                "verify_inputs say nothing where buckets pad what passes see",
                fix='verify="full" holds the target to them',
            )
        if isinstance(self.shardings, str) and (self.shardings != "auto" or self.mesh is None):
            raise UsageError(
                f"shardings={self.shardings!r} says nothing", fix='give a mesh, and "auto" for what a search finds'
            )
        if self.numerics is not None and self.numerics not in get_args(Numerics):
            raise UsageError(f"numerics is {', '.join(map(repr, get_args(Numerics)))}, not {self.numerics!r}")
        if self.pipeline is not None and self.numerics is not None:
            raise UsageError("a pipeline says itself how exact it is", fix="write choose-convolutions into it, or not")
        if self.pipeline is not None and self.memory_budget is not None:
            raise UsageError("a pipeline says itself what runs again", fix="write rematerialize{budget=...} into it")

    @property
    def report(self) -> Callable[[str], object]:
        """Who is told about progress."""
        return self.progress or nobody

    @classmethod
    def of(
        cls, given: Mapping[str, Any], door: str, without: Collection[str] = (), more: Sequence[str] = ()
    ) -> Options:
        """The record of what a user gave to a door: one that has all options but `without`, and `more` of its own.

        Raises UsageError, with the nearest name, for others.
        """
        known = [*more, *cls.names(without)]
        if unknown := [name for name in given if name not in known]:
            near = suggest(unknown[0], known)
            raise UsageError(f"{door} has no option {unknown[0]!r}", fix=f"{near}its options are: {', '.join(known)}")
        return cls(**given)

    @classmethod
    def of_keywords(cls, given: Mapping[str, Any], function: str, without: Collection[str]) -> Options:
        """The record of a function's keywords. Raises TypeError, as Python does, for those that it has not."""
        for name in given:
            if name not in cls.names(without):
                raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        return cls(**given)

    @classmethod
    def names(cls, without: Collection[str] = ()) -> list[str]:
        """The options' names, but for some."""
        return [option.name for option in fields(cls) if option.name not in without]


_PATH = (str, os.PathLike)
_KINDS: Mapping[str, tuple[tuple[Any, ...], str]] = {
    "target": ((str,), "a name, as in 'cpu'"),
    "dims": ((Mapping,), "a dict of sizes or ranges by symbol"),
    "structures": ((Mapping,), "a dict by input"),
    "constants": ((Mapping,), "a dict of arrays by input"),
    "pipeline": ((str,), "a text, as in 'canonicalize,cse'"),
    "verify": ((str,), "'off', 'each', 'full'"),
    "verify_inputs": ((Mapping, Sequence), "a list of arrays, or a dict of them by input"),
    "donate": ((Collection,), "a list of names"),
    "fetch": ((Collection,), "a list of names"),
    "checks": ((str, Collection), "a list, as in ['nan', 'index']"),
    "buckets": ((Mapping,), "a dict of lists of sizes by symbol"),
    "instruments": ((Sequence,), "a list of instruments"),
    "progress": ((Callable,), "a function of a text"),
    "reproducer": (_PATH, "a path"),
    "tuned": (_PATH, "a path"),
    "memory_budget": ((int, str), "a number of bytes, or a text as in '2GiB'"),
    "numerics": ((str,), "'exact', 'standard', 'fast'"),
    "threads": ((int,), "a whole number"),
    "executables": ((int,), "a whole number"),
    "prepare": ((bool,), "True or False"),
    "mesh": ((str, Mapping, Mesh), "axes and their sizes, as in {'data': 2}"),
    "shardings": ((Mapping, str), "a dict of shardings by input, output or weight, or 'auto'"),
}
"""Option -> what it may be, beside its default, and how that is said."""

_ITEMS: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(("donate", "fetch", "checks"), lambda item: isinstance(item, str)),
    "instruments": lambda item: all(callable(getattr(item, hook, None)) for hook in ("begin", "before", "after")),
}
"""Option -> what each of its items must be."""


def _check_kind(name: str, value: object, default: object) -> None:
    """Raises UsageError for what an option cannot be, such as a text for a list of texts."""
    kinds, said = _KINDS[name]
    # A text is a sequence of texts too, and a truth value a number.
    is_text = isinstance(value, str | bytes) and str not in kinds
    is_truth = isinstance(value, bool) and bool not in kinds
    is_kind = isinstance(value, kinds) and not (is_text or is_truth)
    if is_kind and name in _ITEMS and not isinstance(value, str):
        is_kind = all(map(_ITEMS[name], cast("Collection[object]", value)))
    if value is not default and not is_kind:
        raise UsageError(f"{name} is {said}, not {value!r}")


def range_given(name: str, spec: DimSpec) -> Range:
    """The range that a user gave for a symbol. UsageError, which names the symbol, when it is not one."""
    try:
        return range_of(spec)
    except DimError as error:
        fix = f"give a size or a range, as in {name}=8 or {name}=1..64"
        raise UsageError(f"the range of the dimension {name!r} is not valid", why=str(error), fix=fix) from None
