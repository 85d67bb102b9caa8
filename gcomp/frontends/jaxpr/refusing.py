"""What cannot be imported, found before anything is: primitives without importer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from gcomp.errors import UnsupportedError
from gcomp.frontends.jaxpr import registry
from gcomp.frontends.jaxpr.jax_api import core, definition_of, place_of


def check_supported(jaxpr: Any) -> None:
    """One UnsupportedError for all that a closed jaxpr uses and gcomp does not import, with the lines that use it."""
    refused: dict[str, list[str]] = {}
    reasons: dict[str, str] = {}
    pending = [jaxpr.jaxpr]
    while pending:
        for eqn in pending.pop().eqns:
            if (found := _refusal(eqn)) is None:
                pending += jaxprs_in(eqn)
                continue
            name, reasons[name] = found
            refused.setdefault(name, []).append(_place(eqn, jaxpr.jaxpr))
    if refused:
        raise unsupported_error(refused, reasons)


def unsupported_error(places: Mapping[str, Sequence[str]], reasons: Mapping[str, str]) -> UnsupportedError:
    """The error for primitives that are not imported."""
    lines = [f"{name}: {', '.join(dict.fromkeys(found))}" for name, found in sorted(places.items())]
    said = [f"{name}: {reasons[name]}" for name in sorted(places) if reasons.get(name)]
    return UnsupportedError(
        "gcomp does not import these primitives:\n    " + "\n    ".join(lines),
        why="; ".join(said) or "they have no importer",
        fix="compute them outside of the compiled function",
    )


def _refusal(eqn: Any) -> tuple[str, str] | None:
    """What is refused of an equation, and why; None where it is imported."""
    name = eqn.primitive.name
    if registry.lookup(name) is None:
        return name, registry.REFUSED.get(name, "")
    return None


def _sequence(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, tuple | list) else (value,)


def _place(eqn: Any, whole: Any) -> str:
    """The user's line of an equation; where there is none, the function that is traced, which is then all there is."""
    found = (place_of(eqn.source_info), *map(definition_of, (*jaxprs_in(eqn), whole)))
    return next((place for place in found if place is not None), "an unknown line")


def jaxprs_in(eqn: Any) -> Iterator[Any]:
    """The open jaxprs that an equation's parameters hold."""
    for value in eqn.params.values():
        for one in _sequence(value):
            if isinstance(one, core.ClosedJaxpr):
                yield one.jaxpr
            elif isinstance(one, core.Jaxpr):
                yield one
