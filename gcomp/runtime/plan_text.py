"""The plans of a device segment for several machines as one text, which is canonical."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from gcomp.errors import ArtifactError
from gcomp.runtime import strict_json
from gcomp.runtime.strict_json import Json, JsonError

P = TypeVar("P")


def plans_to_text(plans: Mapping[str, P], encode: Callable[[P], Json]) -> str:
    """The canonical text of plans by machine."""
    text = strict_json.dumps({name: encode(plan) for name, plan in plans.items()}).decode()
    # Two braces, which only strings of JSON hold, would begin a size in a template.
    return text.replace("{{", r"{\u007b")


def plans_from_text(
    text: str, where: str, kind: str, decode: Callable[[Json, str], P], encode: Callable[[P], Json],
    machine_of: Callable[[P], str],
) -> dict[str, P]:  # fmt: skip
    """The plans that `plans_to_text` wrote, by machine, which are all of one `kind`.

    `decode` is given where a plan is, and raises JsonError. Raises ArtifactError.
    """
    try:
        rows = strict_json.loads(text.encode())
        if not isinstance(rows, dict):
            raise JsonError("it is no table of machines")
        table = cast("dict[str, Json]", rows)
        plans = {name: decode(row, f"the plan for {name[:40]}") for name, row in table.items()}
        if plans_to_text(plans, encode) != text:
            raise JsonError("its text is not canonical")
        for name, plan in plans.items():
            if name != machine_of(plan):
                raise JsonError(f"the plan for {name[:40]!r} is for {machine_of(plan)[:40]!r}")
    except JsonError as error:
        raise ArtifactError(
            f"The plan for the {kind} is not valid.", where=where, why=str(error), fix="Compile the model again."
        ) from None
    return plans


__all__ = ["plans_from_text", "plans_to_text"]
