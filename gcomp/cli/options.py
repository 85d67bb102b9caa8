"""Reading the values of options: `NAME=VALUE` pairs, sizes, arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gcomp.errors import UsageError

Array = np.ndarray[Any, Any]


def pairs(values: Sequence[str], option: str) -> dict[str, str]:
    """`["a=1", "b=2"]` as a dict. UsageError for anything else, and for a name given twice."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, rest = value.partition("=")
        if not (name and equals and rest):
            raise UsageError(f"{option} takes NAME=VALUE, not {value!r}")
        if name in found:
            raise UsageError(f"{option} names {name!r} twice")
        found[name] = rest
    return found


def dim_specs(values: Sequence[str]) -> dict[str, str]:
    """The sizes and ranges of `--dim` options."""
    return pairs(values, "--dim")


def fixed_sizes(values: Sequence[str]) -> dict[str, int]:
    """The sizes of `--dim` options that must be numbers."""
    sizes: dict[str, int] = {}
    for name, text in dim_specs(values).items():
        if not text.isdigit() or len(text) > 18:
            raise UsageError(f"--dim {name}={text} is not a size here", fix=f"write --dim {name}=8")
        sizes[name] = int(text)
    return sizes


def read_array(path: Path) -> Array:
    """The array in an .npy file. UsageError when it is not one; nothing is ever unpickled."""
    try:
        return np.load(path, allow_pickle=False)
    except OSError as error:
        raise UsageError(f"cannot read {path}", why=error.strerror or str(error)) from None
    except (ValueError, EOFError) as error:
        raise UsageError(f"{path} is not an .npy file", why=str(error)) from None
