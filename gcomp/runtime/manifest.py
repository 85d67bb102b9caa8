"""The manifest: what an artifact says about itself, as a JSON member named `manifest.json`.

The dataclasses are the schema: a manifest with a field missing, unknown or of another type is refused. Its
text is canonical, so one manifest has one text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

from gcomp.dims import DimError, Range, parse, symbols_of
from gcomp.dtypes import DTYPES, MISSING, default_fits
from gcomp.errors import ArtifactError
from gcomp.records import record
from gcomp.runtime import strict_json
from gcomp.runtime.narrowing import NARROWER, SCALED, scales_fit
from gcomp.runtime.strict_json import Json, JsonError

FORMAT_VERSION = 11
"""Raised by one whenever an older gcomp could misread a newer artifact."""

MAX_RANK = 64

_SHA256 = re.compile(r"[0-9a-f]{64}")
_GENERATOR = re.compile(r"\w{1,64}")


@record
class MemberSpec:
    """Size in bytes and SHA-256 (hexadecimal) of one member of the archive."""

    size: int
    sha256: str


@record
class InputSpec:
    """An argument of the model. `dims` are texts of the dim algebra (`4`, `2*seq + 1`).

    A donated input's memory may be overwritten by the call. An input with a default, which is an integer of rank 0, may
    be left out. An input with a `state`, which is the index of an output, is kept by the model: that output is its
    value in the next call. One with a `key` takes JAX's typed random keys of the generator that is named; they are held
    as the integers that they stand for, and may be given as those.
    """

    name: str
    dtype: str
    dims: tuple[str, ...]
    donated: bool
    default: int | None = None
    state: int | None = None
    key: str | None = None


@record
class OutputSpec:
    """A result of the model. `alias` is the index of the donated input whose memory it may take, or None.

    One with a `key` becomes typed random keys where the results are jax arrays; one with `names` is given as an array
    of these strings, of which it holds the positions.
    """

    name: str
    dtype: str
    dims: tuple[str, ...]
    alias: int | None
    key: str | None = None
    names: tuple[str, ...] | None = None


@record
class SymbolSpec:
    """What a symbolic dim may be: from `low` to `high` (None: no bound), a multiple of `multiple_of`."""

    low: int
    high: int | None
    multiple_of: int


@record
class WeightSpec:
    """A stored tensor.

    `sha256` is of its little-endian bytes in row-major order; `argument` is its position among the arguments
    of the program's entry function. Where that is an input, which has a state then, the tensor is its first value.
    A tensor whose numbers are small integers may be `stored` as an integer type, and is widened when it is read. Where
    its numbers are integers times `scales`, this is the shape of the scales, which are stored behind the integers and
    follow them in the hash.
    """

    name: str
    dtype: str
    dims: tuple[int, ...]
    sha256: str
    argument: int
    stored: str | None = None
    scales: tuple[int, ...] | None = None

    @property
    def kept_as(self) -> str:
        """The element type of the bytes in the file."""
        return self.stored or self.dtype


@record
class MemorySpec:
    """Memory that a call needs: bytes where known, a formula over symbols where not, and who says so."""

    bytes: int | None
    formula: str | None
    source: str


@record
class ChosenKernel:
    """A kernel that was chosen for how fast it is: what of the source it computes, by which algorithm, its error, and
    that of plain sums (`exact`), measured when it was compiled, relative to its results."""

    where: str
    algorithm: str
    error: float
    exact: float


@record
class NumericsSpec:
    """The class of a model's numerics ("exact", "standard", "fast"; "pipeline" where a pipeline of the user's said what
    to do), and the kernels that were chosen in it."""

    name: str
    kernels: tuple[ChosenKernel, ...]


@record
class Manifest:
    """All that an artifact says about itself.

    `constraints` (texts of relations that sizes must obey), `segments`, `result` and `arguments` are read by the
    target's executor. `verified` says what a verified compilation compared, by what was held to the reference
    ("passes", "target"); None where nothing was. `numerics` is None for a target that has no classes of them.
    """

    format_version: int
    gcomp_version: str
    target: str
    native_code: bool
    producers: Mapping[str, str]
    members: Mapping[str, MemberSpec]
    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    symbols: Mapping[str, SymbolSpec]
    constraints: tuple[str, ...]
    result: Json
    arguments: Json
    weights: tuple[WeightSpec, ...]
    memory: MemorySpec
    licences: tuple[str, ...]
    segments: tuple[Mapping[str, Json], ...]
    verified: Json
    numerics: NumericsSpec | None

    def to_json(self) -> bytes:
        """The canonical text. Raises ArtifactError for what JSON cannot say."""
        try:
            return strict_json.dumps(self)
        except JsonError as error:
            raise ArtifactError("The manifest cannot be written as JSON.", why=str(error)) from error


def parse_manifest(data: bytes, where: str) -> Manifest:
    """Reads a manifest. Raises ArtifactError unless it is canonical, consistent and of this version."""
    try:
        value = strict_json.loads(data)
        _check_version(value, where)
        manifest = strict_json.decode(Manifest, value, "the manifest")
        check_manifest(manifest)
        if strict_json.dumps(manifest) != data:
            raise JsonError("its text is not canonical")
    except JsonError as error:
        raise ArtifactError(
            "The artifact's manifest is not valid.",
            where=where,
            why=str(error),
            fix="Compile the model again.",
        ) from error
    return manifest


def _check_version(value: Json, where: str) -> None:
    # Another version may have another schema, so this comes before reading the fields.
    fields = cast(dict[str, Json], value) if isinstance(value, dict) else {}
    version = fields.get("format_version")
    if type(version) is int and version != FORMAT_VERSION:
        raise ArtifactError(
            f"The artifact has format version {version}, and this gcomp reads version {FORMAT_VERSION}.",
            where=where,
            why=f"It was written by gcomp {str(fields.get('gcomp_version'))[:40]}.",
            fix="Use that version of gcomp, or compile the model again.",
        )


def check_manifest(manifest: Manifest) -> None:
    """Raises JsonError for what the fields' types alone cannot exclude."""
    for problem in _problems(manifest):
        raise JsonError(problem)


def _problems(manifest: Manifest) -> Iterator[str]:
    for name, member in manifest.members.items():
        if member.size < 0 or not _SHA256.fullmatch(member.sha256):
            yield f"member {name!r} has an impossible size or SHA-256"
    for kind, specs in (
        ("input", manifest.inputs),
        ("output", manifest.outputs),
        ("weight", manifest.weights),
    ):
        if len({spec.name for spec in specs}) != len(specs):
            yield f"two {kind}s have the same name"
        for spec in specs:
            if spec.dtype in MISSING:
                yield f"{kind} {spec.name!r} is {spec.dtype}, of which NumPy knows nothing here: pip install ml_dtypes"
            elif spec.dtype not in DTYPES:
                yield f"{kind} {spec.name!r} has an unknown dtype, {spec.dtype[:40]!r}"
            if len(spec.dims) > MAX_RANK:
                yield f"{kind} {spec.name!r} has {len(spec.dims)} dims, more than {MAX_RANK}"
    for spec in manifest.inputs:
        if spec.default is not None and (spec.dims or not default_fits(spec.default, spec.dtype)):
            yield f"input {spec.name!r} cannot have the default {spec.default}"
    for spec in (*manifest.inputs, *manifest.outputs):
        if spec.key is not None and (spec.dtype != "ui32" or not _GENERATOR.fullmatch(spec.key)):
            yield f"{spec.name!r} cannot hold keys of {spec.key[:40]!r}"
    for spec in manifest.outputs:
        if spec.names is not None and (spec.dtype != "i64" or not spec.names):
            yield f"output {spec.name!r} cannot hold the positions of {len(spec.names)} names"
    yield from _alias_problems(manifest)
    yield from _state_problems(manifest)
    yield from _dim_problems(manifest)
    for weight in manifest.weights:
        if min(weight.dims, default=0) < 0 or weight.argument < 0 or not _SHA256.fullmatch(weight.sha256):
            yield f"weight {weight.name!r} has an impossible dim, argument or SHA-256"
        if weight.stored is not None and weight.stored not in NARROWER.get(weight.dtype, ()):
            yield f"weight {weight.name!r} cannot be stored as {weight.stored[:40]!r}"
        if (scales := weight.scales) is not None and (
            weight.stored is None or weight.dtype != SCALED or not scales_fit(scales, weight.dims)
        ):
            yield f"weight {weight.name!r} cannot have scales of {len(scales)} dims"
    if len({weight.argument for weight in manifest.weights}) != len(manifest.weights):
        yield "two weights are the same argument"
    if manifest.memory.bytes is not None and manifest.memory.bytes < 0:
        yield "it claims negative memory"


def _dim_problems(manifest: Manifest) -> Iterator[str]:
    try:
        for symbol in manifest.symbols.values():
            Range(symbol.low, symbol.high, symbol.multiple_of)
        sizes = [parse(text) for spec in (*manifest.inputs, *manifest.outputs) for text in spec.dims]
        if manifest.memory.formula is not None:
            sizes.append(parse(manifest.memory.formula))
    except DimError as error:
        yield str(error)
        return
    lows = [symbol.low for symbol in manifest.symbols.values()]
    if any(isinstance(size, int) and size < 0 for size in (*sizes, *lows)):
        yield "a size is negative"
    used = frozenset[str]().union(*map(symbols_of, sizes))
    if unknown := sorted(used - manifest.symbols.keys()):
        yield f"the symbol {unknown[0]!r} has no range"


def _alias_problems(manifest: Manifest) -> Iterator[str]:
    aliases = [output.alias for output in manifest.outputs if output.alias is not None]
    if len(set(aliases)) != len(aliases):
        yield "two outputs alias the same input"
    for alias in aliases:
        if not 0 <= alias < len(manifest.inputs) or not manifest.inputs[alias].donated:
            yield f"an output aliases input {alias}, which does not exist or is not donated"


def _state_problems(manifest: Manifest) -> Iterator[str]:
    states = [spec.state for spec in manifest.inputs if spec.state is not None]
    if len(set(states)) != len(states):
        yield "two inputs have the same next state"
    for spec in manifest.inputs:
        if spec.state is None:
            continue
        if not 0 <= spec.state < len(manifest.outputs):
            yield f"the next state of input {spec.name!r} does not exist"
            continue
        following = manifest.outputs[spec.state]
        if (following.dtype, following.dims) != (spec.dtype, spec.dims) or spec.default is not None:
            yield f"the next state of input {spec.name!r} is of another type"
        if not all(text.isdecimal() and text.isascii() for text in spec.dims):
            yield f"the state {spec.name!r} has no fixed shape"
    for weight in manifest.weights:
        if not 0 <= weight.argument < len(manifest.inputs):
            continue
        spec = manifest.inputs[weight.argument]
        if spec.state is None or weight.name != initial_name(spec.name):
            yield f"weight {weight.name!r} is the input {spec.name!r}, which has no state"
        elif (weight.dtype, tuple(map(str, weight.dims))) != (spec.dtype, spec.dims):
            yield f"the first value of the state {spec.name!r} is of another type"


def initial_name(state: str) -> str:
    """The name of the weight that is the first value of a state; a state without one is zero at first."""
    return f"initial({state})"
