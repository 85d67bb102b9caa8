"""The process in which Triton runs: it reads requests on its input, and answers each on its output.

Run as a file, not as a module, and importing nothing of gcomp, so that it starts fast and owes nothing to what the
parent holds. A message is a count of bytes and JSON, then for each blob that the JSON announces its bytes. Triton reads
its environment when it is imported, so the parent sets that: `gcomp.lowering.triton.process`.
"""

from __future__ import annotations

import json
import linecache
import os
import re
import struct
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

_SIZE = struct.Struct("<Q")

Header = dict[str, Any]
Answer = tuple[Header, list[bytes]]


def send(stream: BinaryIO, header: Header, blobs: Sequence[bytes | memoryview]) -> None:
    """Write one message."""
    text = json.dumps({"header": header, "blobs": [len(blob) for blob in blobs]}).encode()
    for part in (_SIZE.pack(len(text)), text, *blobs):
        stream.write(part)
    stream.flush()


def receive(stream: BinaryIO) -> Answer | None:
    """Read one message; None where the other side has closed, or ended in the middle of one."""
    head = stream.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    text = stream.read(size)
    if len(text) < size:
        return None
    message = json.loads(text)
    blobs = [stream.read(length) for length in message["blobs"]]
    if [len(blob) for blob in blobs] != message["blobs"]:
        return None
    return message["header"], blobs


def kernel_of(name: str, text: str) -> Any:
    """The `@triton.jit` function in a text. Triton asks `inspect` for its source, and gets it from the line cache."""
    file = f"<kernel {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope: Header = {"__name__": "kernel"}
    exec(compile(text, file, "exec"), scope)  # noqa: S102 - the text is what gcomp has printed
    return scope[name]


def compile_kernel(request: Header, _: Sequence[bytes]) -> Answer:
    """The binary of a kernel, and what Triton says of it."""
    triton: Any = import_module("triton")
    target = import_module("triton.backends.compiler").GPUTarget(*request["target"])
    function = kernel_of(request["name"], request["text"])
    arguments = request["arguments"]
    if list(function.arg_names) != [argument["name"] for argument in arguments]:
        raise ValueError(f"the function's parameters are {list(function.arg_names)}")
    source = triton.compiler.ASTSource(
        fn=function,
        signature={argument["name"]: argument["type"] for argument in arguments},
        constexprs={},
        attrs={(i,): [["tt.divisibility", a["alignment"]]] for i, a in enumerate(arguments) if a["alignment"] > 1},
    )
    compiled = triton.compile(source, target=target, options=request["options"])
    known = compiled.metadata._asdict()
    facts = {key: known[key] for key in request["facts"] if key in known}
    texts: list[Any] = [compiled.asm[stage] for stage in request["stages"]]
    return facts, [text if isinstance(text, bytes) else text.encode() for text in texts]


def interpret_kernel(request: Header, blobs: Sequence[bytes]) -> Answer:
    """The buffers of a kernel after Triton's interpreter has run it on them."""
    import ctypes

    _stand_in()
    function = kernel_of(request["name"], request["text"])
    buffers = [bytearray(blob) for blob in blobs]
    addresses = [ctypes.addressof(ctypes.c_char.from_buffer(buffer)) for buffer in buffers]
    values: list[Any] = []
    place: int | None
    for argument in request["arguments"]:
        place = argument["buffer"]
        value = argument["value"] if place is None else addresses[place] + argument["offset"]
        values.append(_value(argument["type"], value, pointer=place is not None))
    function[tuple(request["grid"])](*values)
    return {}, [bytes(buffer) for buffer in buffers]


@cache
def _stand_in() -> None:
    """Mend the interpreter, once: the file beside this one says how."""
    place = Path(__file__).with_name("standins.py")
    scope: Header = {"__name__": "standins"}
    exec(compile(place.read_text("utf-8"), str(place), "exec"), scope)  # noqa: S102 - a file of gcomp
    scope["install"]()


def _value(name: str, value: int, *, pointer: bool) -> Any:
    """An argument as the interpreter's own value: it guesses the types of plain integers."""
    np, tl = import_module("numpy"), import_module("triton.language")
    handle = import_module("triton.runtime.interpreter").TensorHandle
    kind = tl.str_to_ty(name, None)
    dtype = np.dtype("uint64") if pointer else np.dtype(name.replace("i", "int").replace("u", "uint"))
    return tl.tensor(handle(np.array([value], dtype), kind), kind)


def describe(error: BaseException, name: str) -> Header:
    """An error as data: its type, its text, and the line of the kernel that it is about, counted from 1."""
    kind, text, line = type(error).__name__, str(error), None
    cause: BaseException | None = error
    while cause is not None:
        frames = traceback.extract_tb(cause.__traceback__)
        line = next((f.lineno for f in reversed(frames) if f.filename == f"<kernel {name}>"), line)
        if isinstance(cause, SyntaxError):
            line = cause.lineno
        node: Any = getattr(cause, "node", None)
        if hasattr(node, "lineno"):
            # Triton's own errors hold a node of the function's syntax tree, whose lines begin where the function does.
            line = node.lineno + _first_line(name, cause) - 1
            text = str(getattr(cause, "error_message", None) or text)
        elif type(error).__name__ == "InterpreterError":
            kind, text = type(cause).__name__, str(cause)
        cause = cause.__cause__ or cause.__context__
    return {"error": kind, "text": text, "line": line}


def _first_line(name: str, error: Any) -> int:
    """The line of the file at which the source that an error speaks of begins."""
    whole = "".join(linecache.getlines(f"<kernel {name}>"))
    source = getattr(error, "src", None) or ""
    at = whole.find(source)
    if not source or at < 0:
        found = re.search(rf"^def {re.escape(name)}\b", whole, re.MULTILINE)
        at = found.start() if found else 0
    return whole.count("\n", 0, at) + 1


MODES: dict[str, Callable[[Header, Sequence[bytes]], Answer]] = {
    "compile": compile_kernel,
    "interpret": interpret_kernel,
}


def main() -> None:
    """Answer requests until there are no more."""
    # What Triton and LLVM print must not end up between answers.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    work = MODES[sys.argv[1]]
    while (message := receive(sys.stdin.buffer)) is not None:
        request, blobs = message
        try:
            answer = work(request, blobs)
        except Exception as error:
            answer = describe(error, request["name"]), list[bytes]()
        send(out, *answer)


if __name__ == "__main__":
    main()
