"""The process in which LLVM runs: it reads modules on its input, and answers each on its output.

LLVM ends its process when it cannot select an instruction, and that is not to be the user's. Run as a file, not as a
module, and importing nothing of gcomp, so that it starts fast; `gcomp.lowering.llvm.process` is the other side.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from typing import Any, BinaryIO

_SIZE = struct.Struct("<Q")

DONE, REFUSED = b"+", b"-"
"""How an answer begins that is an object, or says why there is none."""

OPTIONS = ("-disable-lsr", "-enable-misched=false")
"""LLVM's options. Loop strength reduction takes most of the time of kernels with many loops, and changes how fast
models run by a few hundredths, either way: the printers write addresses as they should be. Instructions are written in
the order in which they should run, too: scheduled anew before registers are given to them, a block of sums that fits
registers is read so far ahead that it no longer does, and products run at half the speed with AVX-512."""

Request = dict[str, Any]


def send(stream: BinaryIO, *parts: bytes) -> None:
    """Write one message."""
    stream.write(_SIZE.pack(sum(map(len, parts))))
    stream.writelines(parts)
    stream.flush()


def receive(stream: BinaryIO) -> bytes | None:
    """Read one message; None where the other side has closed, or ended in the middle of one."""
    head = stream.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    data = stream.read(size)
    return data if len(data) == size else None


def emit(llvm: Any, request: Request) -> bytes:
    """A module's object, or assembly. Raises RuntimeError where LLVM refuses the module."""
    triple = request["triple"]
    with llvm.Target.from_triple(triple).create_target_machine(**request["options"]) as target:
        # Sizes and alignments that a module leaves open are filled in as it is read.
        layout = f'target datalayout = "{target.target_data}"\ntarget triple = "{triple}"\n'
        text = f'source_filename = "{request["name"]}"\n{layout}{request["text"]}'
        with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
            module.verify()
            _keep_inside(module)
            if request["form"] == "assembly":
                return target.emit_assembly(module).encode()
            return target.emit_object(module)


def _keep_inside(module: Any) -> None:
    """What is not local to a module is for its image: it is reached without a table of addresses."""
    for value in (*module.functions, *module.global_variables):
        if value.linkage.name not in ("internal", "private") and not value.name.startswith("llvm."):
            value.visibility = "hidden"


def main() -> None:
    """Answer until the input ends. The argument is the folder that llvmlite lies in."""
    # What LLVM prints is no answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.path.append(sys.argv[1])
    import llvmlite.binding as binding

    llvm: Any = binding
    for option in OPTIONS:
        llvm.set_option("gcomp", option)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    while (data := receive(sys.stdin.buffer)) is not None:
        try:
            send(answers, DONE, emit(llvm, json.loads(data)))
        except RuntimeError as error:
            send(answers, REFUSED, str(error).encode())


if __name__ == "__main__":
    main()
