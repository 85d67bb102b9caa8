"""Whose a line of code is: the user's, gcomp's own, or a library's. Decided by folders, never by words in a path.

A checkout, a user's project or a folder above them may be called `gcomp`, `jax` or `torch`.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from types import FrameType, TracebackType

_PYTHON = tuple({sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib")})
_INSTALLED = tuple({sysconfig.get_paths()[key] for key in ("purelib", "platlib")})


@lru_cache(256)
def _prefixes(*folders: str) -> tuple[str, ...]:
    """What the paths of files in folders begin with: as they are named, and as they are where a link is followed."""
    given = [Path(folder).absolute() for folder in folders]
    return tuple({f"{path}{os.sep}" for folder in given for path in (folder, folder.resolve())})


_OWN = _prefixes(str(Path(__file__).parent))


def is_inside(file: str, *folders: str) -> bool:
    """Whether a source file lies in one of some folders."""
    return file.startswith(_prefixes(*folders))


@lru_cache(4096)
def is_own(file: str) -> bool:
    """Whether a source file is gcomp's own."""
    return file.startswith(_OWN)


@lru_cache(4096)
def is_users(file: str) -> bool:
    """Whether a source file is the user's: neither gcomp's, nor Python's, nor an installed library's."""
    return not (is_own(file) or file.startswith("<frozen") or is_inside(file, *_PYTHON, *_INSTALLED))


def is_foreign(file: str, *libraries: str) -> bool:
    """Whether a source file is neither gcomp's, nor Python's, nor in the folders of some libraries."""
    python = is_inside(file, *_PYTHON) and not is_inside(file, *_INSTALLED)
    return not (is_own(file) or python or file.startswith("<frozen") or is_inside(file, *libraries))


def _file(frame: FrameType) -> str:
    """The file that a frame's code is from; of code that a dataclass generated, the file of the class."""
    file = frame.f_code.co_filename
    return frame.f_globals.get("__file__", file) if file == "<string>" else file


def line_of(trace: TracebackType | None, *libraries: str) -> str | None:
    """The innermost line of the user's in a traceback; where there is none, of what is neither gcomp's nor in the
    folders of `libraries`."""
    users = foreign = None
    while trace is not None:
        file = _file(trace.tb_frame)
        line = f"{file}:{trace.tb_lineno}"
        if is_users(file):
            users = line
        elif is_foreign(file, *libraries):
            foreign = line
        trace = trace.tb_next
    return users or foreign


def line_here() -> str:
    """The line of the user's code that called."""
    frame: FrameType = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and not is_users(_file(frame)):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def is_users_fault(trace: TracebackType | None) -> bool:
    """Whether what went wrong went wrong in the user's code, or in a library that it called: not in gcomp's own."""
    users = False
    while trace is not None:
        file = _file(trace.tb_frame)
        users = not is_own(file) and (users or is_users(file))
        trace = trace.tb_next
    return users


def user_level() -> int:
    """How many frames above its caller's the user's code is, for the `stacklevel` of a warning."""
    frame: FrameType = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    level = 1
    while frame.f_back is not None and not is_users(_file(frame)):
        frame, level = frame.f_back, level + 1
    return level
