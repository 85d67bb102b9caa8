"""The errors that gcomp raises on purpose.

Each says what happened, where (a file, an op's location, a member of an artifact), why it is so, and what to
do next. Only `InternalError` means a bug in gcomp; all others are caused by, and can be mended in, the input.
"""

from __future__ import annotations

from collections.abc import Iterable


class GcompError(Exception):
    """Base of every error that gcomp raises on purpose.

    `what` is one sentence; `where`, `why` and `fix` (what to do next) are None where nothing useful can be
    said.
    """

    def __init__(self, what: str, *, where: str | None = None, why: str | None = None, fix: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        details = (("where", self.where), ("why", self.why), ("fix", self.fix))
        return "\n".join([self.what, *(f"  {label}: {text}" for label, text in details if text is not None)])

    def __reduce__(self) -> tuple[object, ...]:
        # The keyword-only fields travel as state, so that errors cross process borders whole.
        return (type(self), (self.what,), {"where": self.where, "why": self.why, "fix": self.fix})


_NEAR, _LISTED = 3, 8


def suggest(name: str, known: Iterable[str]) -> str:
    """The known names that a user may have meant by another one, as a question that more may follow, or nothing."""
    from difflib import get_close_matches  # which takes as long to load as all of this package

    found = get_close_matches(name, list(known), _NEAR)
    return f"did you mean {' or '.join(map(repr, found))}? " if found else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """For `fix`: the known names that a user may have meant by another one, or else what names there are."""
    names = list(known)
    if question := suggest(name, names):
        return question.rstrip()
    more = ", ..." if len(names) > _LISTED else ""
    return f"there are: {', '.join(names[:_LISTED])}{more}" if names else "there are none"


class UnsupportedError(GcompError):
    """The input is valid, and gcomp does not (yet) handle it."""


class InvalidModelError(GcompError):
    """A model contradicts its own format or the semantics of its ops."""


class VerificationError(GcompError):
    """A program breaks a rule of the IR: a verifier, a legality table or a checked pass refused it."""


class ParseError(GcompError):
    """Text is not in the language it claims to be in."""


class ArtifactError(GcompError):
    """A compiled artifact is damaged, tampered with, of an unknown version, or cannot be written."""


class InputError(GcompError):
    """A compiled model was called with inputs that do not match its signature."""


class CheckError(GcompError):
    """A check that was compiled into a model failed: a NaN or an infinity came up, or an index was out of range."""


class IndexCheckError(CheckError, IndexError):
    """A check found an index out of range. It is an IndexError, too, as it is in NumPy and in eager torch."""


class UsageError(GcompError):
    """An API or a command was used wrongly: unknown option, unknown pass, contradicting arguments."""


class UserCodeError(GcompError):
    """Code of the user's own that gcomp called failed: a pass, a rule's condition, a function that makes a model."""


class InternalError(GcompError):
    """A bug in gcomp itself; please report it."""
