"""What a model takes and gives: names, element types, shapes with symbols, and what must hold of the symbols."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from gcomp import dims
from gcomp.dims import Constraint, Range, Ranges, Size
from gcomp.dtypes import DTYPES
from gcomp.errors import ArtifactError, InputError
from gcomp.records import record
from gcomp.runtime import strict_json
from gcomp.runtime.lru import Lru
from gcomp.runtime.manifest import InputSpec, OutputSpec, SymbolSpec
from gcomp.runtime.strict_json import Json

DType = np.dtype[Any]
Shapes = tuple[tuple[int, ...], ...]

_REMEMBERED = 256
"""Sizes of host steps' results whose symbols are kept, at most."""


@record
class Signature:
    """Inputs and outputs in order; symbols' ranges, constraints among them; the structures of arguments and results."""

    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    ranges: Ranges
    constraints: tuple[Constraint, ...] = ()
    result: Json = None
    arguments: Json = None

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Input name -> position."""
        return {spec.name: i for i, spec in enumerate(self.inputs)}

    @cached_property
    def dtypes(self) -> tuple[DType, ...]:
        """The NumPy dtype of each input."""
        return tuple(DTYPES[spec.dtype] for spec in self.inputs)

    @cached_property
    def defaults(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """The values of inputs that may be left out."""
        pairs = ((spec, dtype) for spec, dtype in zip(self.inputs, self.dtypes, strict=True))
        return {spec.name: np.asarray(spec.default, dtype) for spec, dtype in pairs if spec.default is not None}

    @cached_property
    def shapes(self) -> tuple[tuple[Size, ...], ...]:
        """The shape of each input, symbols included."""
        return tuple(parse_dims(spec.dims) for spec in self.inputs)

    @cached_property
    def symbols(self) -> frozenset[str]:
        """The symbols that the inputs' shapes mention."""
        return frozenset(name for shape in self.shapes for size in shape for name in dims.symbols_of(size))

    @cached_property
    def data_dependent_symbols(self) -> frozenset[str]:
        """The symbols that data determine: host steps bind them."""
        return frozenset(self.ranges) - self.symbols

    @cached_property
    def bindings(self) -> Lru[Hashable, dict[str, int]]:
        """What host steps' results of some sizes made of the symbols' values."""
        return Lru(_REMEMBERED)

    @cached_property
    def states(self) -> Mapping[int, int]:
        """The inputs that a model keeps, by position -> the positions of the outputs that are their next values."""
        return {i: spec.state for i, spec in enumerate(self.inputs) if spec.state is not None}

    @cached_property
    def sources(self) -> tuple[int, ...]:
        """For each input: its place among the state (negative, from -1 down), or among what callers give."""
        kept, given = iter(range(len(self.states))), iter(range(len(self.inputs)))
        return tuple(~next(kept) if i in self.states else next(given) for i in range(len(self.inputs)))

    @cached_property
    def public(self) -> Signature:
        """What callers give and get: all but the state."""
        kept, made = self.states.keys(), set(self.states.values())
        return replace(
            self,
            inputs=tuple(spec for i, spec in enumerate(self.inputs) if i not in kept),
            outputs=tuple(spec for i, spec in enumerate(self.outputs) if i not in made),
        )

    @cached_property
    def is_static(self) -> bool:
        """Whether no input has a symbolic size."""
        return not self.symbols

    def arrange(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The arguments in the inputs' order, those left out by their defaults.

        Raises InputError for missing, unknown and doubled ones.
        """
        if len(args) == len(self.inputs) and not kwargs:
            return list(args)
        if len(args) > len(self.inputs):
            raise InputError(f"The model takes {len(self.inputs)} inputs and got {len(args)}.", fix=self._usage())
        found: dict[str, Any] = dict(zip((spec.name for spec in self.inputs), args, strict=False))
        for name, value in kwargs.items():
            if name not in self.positions:
                raise InputError(f"The model has no input `{name}`.", fix=self._usage())
            if name in found:
                raise InputError(f"Input `{name}` was given twice, by position and by name.", fix=self._usage())
            found[name] = value
        found = {**self.defaults, **found}
        if missing := [f"`{spec.name}`" for spec in self.inputs if spec.name not in found]:
            raise InputError(f"Input {', '.join(missing)} is missing.", fix=self._usage())
        return [found[spec.name] for spec in self.inputs]

    def bind(self, shapes: Shapes) -> dict[str, int]:
        """The symbols' values for inputs of these shapes. Raises InputError naming the input that does not fit."""
        entries: list[tuple[Size, int, str]] = []
        for spec, formula, shape in zip(self.inputs, self.shapes, shapes, strict=True):
            if len(formula) != len(shape):
                raise self.mismatch(spec, f"shape {list(shape)}", f"rank {len(shape)}, expected {len(formula)}")
            entries += [(f, n, f"{spec.name}.shape[{i}]") for i, (f, n) in enumerate(zip(formula, shape, strict=True))]
        try:
            env = dims.bind(entries, self.ranges)
        except dims.DimError as error:
            name = str(error).partition(".shape[")[0]
            position = self.positions.get(name)
            if position is None:
                raise InputError("The inputs' shapes do not fit.", why=str(error), fix=self._usage()) from None
            spec, shape = self.inputs[position], shapes[position]
            raise self.mismatch(spec, f"shape {list(shape)}", str(error)) from None
        self.check(env)
        return env

    def check(self, env: Mapping[str, int], before: Mapping[str, int] | None = None) -> None:
        """Check ranges, and the constraints that `env` decides and `before` did not. Raises InputError."""
        for name in sorted(env):
            if env[name] not in self.ranges[name]:
                raise InputError(
                    f"The dimension {name} = {env[name]} is outside its range {self.ranges[name]}.",
                    fix="Choose a size in range, or compile the model with a wider range for this dimension.",
                )
        for constraint in self.constraints:
            symbols = constraint.symbols
            if not symbols <= env.keys() or (before is not None and symbols <= before.keys()):
                continue
            try:
                reason = constraint.check(env)
            except dims.DimError as error:
                reason = str(error)
            if reason is not None:
                sizes = ", ".join(f"{name} = {value}" for name, value in sorted(env.items()))
                these = " ".join(f"--dim {name}={env[name]}" for name in sorted(symbols & self.symbols))
                alone = f", or compile for these alone ({these}): that may need less" if these else ""
                raise InputError(
                    "The inputs' sizes do not fit together.",
                    why=f"{reason} (with {sizes})",
                    fix=f"Choose sizes that fulfil this{alone}.",
                )

    def sizes(self, given: Mapping[str, int]) -> dict[str, int]:
        """The values of all symbols, from keyword arguments such as `batch=8`. Data-dependent ones may be given, too.

        Raises InputError.
        """
        if unknown := sorted(given.keys() - self.symbols - self.data_dependent_symbols):
            known = ", ".join(sorted(self.symbols | self.data_dependent_symbols)) or "none"
            raise InputError(f"The model has no dimension {', '.join(unknown)}.", why=f"Its dimensions: {known}.")
        if missing := sorted(self.symbols - given.keys()):
            example = ", ".join(f"{name}=..." for name in missing)
            raise InputError(f"The dimension {', '.join(missing)} has no value.", fix=f"Pass {example}.")
        env = {name: int(value) for name, value in given.items()}
        self.check(env)
        return env

    def mismatch(self, spec: InputSpec, got: str, why: str | None = None, fix: str | None = None) -> InputError:
        """The error for an input that is not what its spec says."""
        return InputError(
            f"Input `{spec.name}` does not fit: expected {describe(spec)}, got {got}.",
            why=why,
            fix=fix or self._usage(),
        )

    def _usage(self) -> str:
        return f"The model takes ({', '.join(describe_input(spec) for spec in self.inputs)})."


def describe(spec: InputSpec | OutputSpec) -> str:
    """A type for people: `f32[batch, 3]`, `ui32[2] (keys of threefry2x32)`, `i64[batch] (one of 3 names)`."""
    text = f"{spec.dtype}[{', '.join(spec.dims)}]" + ("" if spec.key is None else f" (keys of {spec.key})")
    names = spec.names if isinstance(spec, OutputSpec) else None
    return text if names is None else f"{text} (one of {len(names)} names)"


def describe_input(spec: InputSpec) -> str:
    """An input for people: `x: f32[batch, 3]`, `seed: ui64[] = 0`."""
    return f"{spec.name}: {describe(spec)}" + ("" if spec.default is None else f" = {spec.default}")


def parse_dims(texts: Sequence[str]) -> tuple[Size, ...]:
    """Sizes from their texts. Raises DimError."""
    return tuple(dims.parse(text) for text in texts)


def symbols_to_json(ranges: Ranges, names: frozenset[str]) -> dict[str, SymbolSpec]:
    """The manifest's table of symbols."""
    return {
        name: SymbolSpec(max(ranges[name].lo, 0), ranges[name].hi, ranges[name].multiple_of)
        for name in sorted(names | set(ranges))
    }


def ranges_from_json(symbols: Mapping[str, SymbolSpec], where: str) -> Ranges:
    """The ranges that `symbols_to_json` wrote. Raises ArtifactError."""
    try:
        return Ranges({name: Range(spec.low, spec.high, spec.multiple_of) for name, spec in symbols.items()})
    except dims.DimError as error:
        raise ArtifactError("The artifact's symbols are not valid.", where=where, why=str(error)) from None


def constraints_to_json(constraints: Sequence[Constraint]) -> tuple[str, ...]:
    """Constraints as texts of JSON."""
    return tuple(json.dumps(c.to_json(), sort_keys=True) for c in constraints)


def constraints_from_json(texts: Sequence[str], where: str) -> tuple[Constraint, ...]:
    """The constraints that `constraints_to_json` wrote. Raises ArtifactError."""
    try:
        return tuple(Constraint.from_json(strict_json.loads(text.encode())) for text in texts)
    except (dims.DimError, ValueError) as error:  # of JSON, of UTF-8
        raise ArtifactError("The artifact's constraints are not valid.", where=where, why=str(error)) from None
