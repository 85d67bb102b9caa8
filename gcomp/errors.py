"""The errors that gcomp raises on purpose.

Each says what happened, where (a file, an op's location, a member of an artifact), why it is so, and what to
do next. Only `InternalError` means a bug in gcomp; all others are caused by, and can be mended in, the input.
"""

from __future__ import annotations


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


class UsageError(GcompError):
    """An API or a command was used wrongly: unknown option, unknown pass, contradicting arguments."""


class InternalError(GcompError):
    """A bug in gcomp itself; please report it."""
