"""Reading and writing IR text. Whatever the text, reading it ends in a verified module or in one `ParseError`."""

from __future__ import annotations

import io
import re

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.ir import Operation, SSAValue
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError as XdslParseError
from xdsl.utils.exceptions import VerifyException

from gcomp.errors import ParseError, VerificationError
from gcomp.ir import wellformed
from gcomp.ir.chlo import CHLO
from gcomp.ir.elements import ElementsParser
from gcomp.ir.kernel import KERNEL
from gcomp.ir.locations import where
from gcomp.ir.native import GCOMP
from gcomp.ir.sdy import SDY
from gcomp.ir.stablehlo import STABLEHLO
from gcomp.ir.walking import walk

DIALECTS = (Builtin, Func, STABLEHLO, CHLO, GCOMP, SDY, KERNEL)
"""The dialects of all levels."""

_MAX_NESTING = 128
_MAX_DIGITS = 400
_OPENING, _CLOSING = "([{<", ")]}>"
_SHAPE = re.compile(r'//[^\n]*|"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"|->|["()\[\]{}<>]')
"""Comments, whole strings, and the characters that matter outside of them."""
_OP_BEFORE = re.compile(r"([A-Za-z_]\w*(?:\.\w+)+)\s*$")
_NEAR = 200
"""Characters before an error among which the name of its op is."""


def make_context() -> Context:
    """A context with every dialect of gcomp."""
    context = Context(allow_unregistered=True)
    for dialect in DIALECTS:
        context.load_dialect(dialect)
    return context


def parse_module(text: str, source: str = "<text>") -> ModuleOp:
    """Read a module (not yet verified). Raises ParseError, with the place in `source`, for anything else."""
    _check_shape(text, source)
    try:
        module = ElementsParser(make_context(), text, source).parse_module()
    except XdslParseError as error:
        raise ParseError(f"cannot read {source}", where=_place(error, source), why=_why(error)) from None
    except (VerifyException, ValueError, RecursionError, OverflowError, MemoryError, AssertionError, LookupError,
            TypeError, NotImplementedError, AttributeError) as error:  # fmt: skip
        why = str(error) or type(error).__name__
        raise ParseError(
            f"cannot read {source}", where=source, why=why, fix="check the text near this construct"
        ) from None
    for op in module.walk():
        if op.name == "builtin.unregistered":
            name = str(getattr(op, "op_name", op)).strip('"')
            raise ParseError(f"cannot read {source}", where=source, why=f"the op {name} is not registered")
    return module


def _why(error: XdslParseError) -> str:
    """What the parser says. Of an op that gcomp does not have, it does not say the name."""
    if "builtin.unregistered" not in error.msg:
        return error.msg
    text = _text_of(error)
    # Only what is near: a search takes the square of a line's length, and lines may be megabytes long.
    name = _OP_BEFORE.search(text[max(0, error.span.start - _NEAR) : error.span.start].rpartition("\n")[2])
    if name is None:
        return error.msg
    return f"the op {name[1]} is not registered"


def _text_of(error: XdslParseError) -> str:
    """The text that was parsed."""
    content = error.span.input.content
    return content if isinstance(content, str) else content.decode("utf-8", "replace")


def _place(error: XdslParseError, source: str) -> str:
    before = _text_of(error)[: error.span.start]
    return f"{source}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


def _check_shape(text: str, source: str) -> None:
    """Refuse what would exhaust the parser: deep nesting, endless numbers, open strings, text that is not Unicode."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ParseError(f"cannot read {source}", where=source, why=f"the text is not valid Unicode: {error}") from None
    if (digits := re.search(rf"(?<![0-9A-Za-z_\"])[0-9]{{{_MAX_DIGITS},}}", text)) is not None:
        raise ParseError(f"cannot read {source}", where=source, why=f"a number has {len(digits.group())} digits")
    depth = 0
    for match in _SHAPE.finditer(text):
        token = match.group()
        if token in _OPENING:
            depth += 1
            if depth > _MAX_NESTING:
                raise _unreadable(text, source, match.start(), f"brackets nest deeper than {_MAX_NESTING}")
        elif token in _CLOSING:
            depth = max(depth - 1, 0)
        elif token == '"':
            # xDSL's lexer takes time exponential in the length of such a line.
            raise _unreadable(
                text, source, match.start(), "a string does not end on its line, or has an unknown escape"
            )


def _unreadable(text: str, source: str, place: int, why: str) -> ParseError:
    line = text.count("\n", 0, place) + 1
    return ParseError(f"cannot read {source}", where=f"{source}:{line}", why=why)


class _Printer(Printer):
    """A printer that gives no name twice: the second `x` is `x_1`, though another value asks for just that name."""

    def print_ssa_value(self, value: SSAValue) -> str:
        hint, names = value.name_hint, self.ssa_names
        if hint is None or value in self._ssa_values:
            return super().print_ssa_value(value)
        if (index := names.get(hint, 0)) > 0:
            while f"{hint}_{index}" in names:
                index += 1
            names[hint] = index
        name = super().print_ssa_value(value)
        names.setdefault(name, 1)
        return name


def print_module(module: Operation, *, generic: bool = False, locations: bool = False) -> str:
    """The text of a module."""
    stream = io.StringIO()
    printer = _Printer(stream, print_generic_format=generic, print_debuginfo=locations)
    printer.print_op(module)
    return stream.getvalue() + "\n"


def _last_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[-1]


def _reason(error: BaseException | None) -> str:
    """What did not verify, where printing it failed."""
    while error is not None and not isinstance(error, VerifyException):
        error = error.__context__
    return "an op in it has fewer operands than its form" if error is None else _last_line(error)


def verify_module(module: Operation, stage: str = "") -> None:
    """Verify a whole module. Raises VerificationError that says which op broke which constraint."""
    what = f"the program is not valid{f' {stage}' if stage else ''}"
    for op in walk(module):
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException as error:
            why = _last_line(error).removeprefix("Operation does not verify: ")
            raise VerificationError(what, where=where(op), why=why) from None
        except ValueError as error:  # xDSL's traits ask for the owner of a value that was named and never defined
            raise VerificationError(what, where=where(op), why=str(error)) from None
        except IndexError as error:  # xDSL prints what does not verify, and an op that lacks operands has no form
            raise VerificationError(what, where=where(op), why=_reason(error)) from None
    for op, why in wellformed.problems(module):
        raise VerificationError(what, where=where(op), why=why)
