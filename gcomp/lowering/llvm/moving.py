"""memcpy, memmove and memset for images, which have no C library: LLVM may call them, and the printers do.

They move 32 bytes at a time, and the rest one by one.
"""

from __future__ import annotations

from gcomp.runtime.cpu.variants import Variant

_STEP = 32
_STRICT = ("riscv64",)
"""Machines on which LLVM takes words apart that may not be aligned: there, only aligned memory is moved in words."""

_ATTRIBUTES = 'attributes #0 = { nounwind "no-builtins" }'


def memory_functions(variant: Variant) -> str:
    """A module of LLVM IR that defines the three as C has them."""
    strict = variant.machine in _STRICT
    align = 8 if strict else 1
    return "\n".join([_copy("memcpy", strict, align), _move(strict, align), _fill(strict, align), _ATTRIBUTES])


def _bulk(strict: bool, *pointers: str) -> str:
    """How many bytes are moved in large steps."""
    lines = [f"%whole = and i64 %bytes, {-_STEP}"]
    if not strict:
        return "\n  ".join([*lines, "%bulk = add i64 %whole, 0"])
    for pointer in pointers:
        lines.append(f"%{pointer}.bits = ptrtoint ptr %{pointer} to i64")
    either = f"%{pointers[0]}.bits"
    if len(pointers) > 1:
        lines.append(f"%either = or i64 %{pointers[0]}.bits, %{pointers[1]}.bits")
        either = "%either"
    lines += [
        f"%odd = and i64 {either}, 7",
        "%aligned = icmp eq i64 %odd, 0",
        "%bulk = select i1 %aligned, i64 %whole, i64 0",
    ]
    return "\n  ".join(lines)


def _up(name: str, step: int, begin: str, end: str, body: str, then: str) -> str:
    """A loop over offsets `%NAME.at` from one to another, behind the block `%NAME.begin` that leads to it."""
    return f"""\
  br label %{name}.begin
{name}.begin:
  br label %{name}.test
{name}.test:
  %{name}.at = phi i64 [ {begin}, %{name}.begin ], [ %{name}.next, %{name}.body ]
  %{name}.more = icmp ult i64 %{name}.at, {end}
  br i1 %{name}.more, label %{name}.body, label %{then}
{name}.body:
  {body}
  %{name}.next = add i64 %{name}.at, {step}
  br label %{name}.test
"""


def _down(name: str, step: int, begin: str, end: str, body: str, then: str) -> str:
    """The same from the end: `%NAME.at` is an end less a step, down to the begin."""
    return f"""\
  br label %{name}.begin
{name}.begin:
  br label %{name}.test
{name}.test:
  %{name}.end = phi i64 [ {end}, %{name}.begin ], [ %{name}.at, %{name}.body ]
  %{name}.more = icmp ugt i64 %{name}.end, {begin}
  br i1 %{name}.more, label %{name}.body, label %{then}
{name}.body:
  %{name}.at = sub i64 %{name}.end, {step}
  {body}
  br label %{name}.test
"""


def _copy_element(name: str, type: str, align: int) -> str:
    return f"""\
%{name}.from = getelementptr i8, ptr %source, i64 %{name}.at
  %{name}.to = getelementptr i8, ptr %target, i64 %{name}.at
  %{name}.value = load {type}, ptr %{name}.from, align {align}
  store {type} %{name}.value, ptr %{name}.to, align {align}"""


def _copy(name: str, strict: bool, align: int) -> str:
    return f"""\
define ptr @{name}(ptr %target, ptr %source, i64 %bytes) #0 {{
  {_bulk(strict, "target", "source")}
{_up("words", _STEP, "0", "%bulk", _copy_element("words", "<4 x i64>", align), "rest")}rest:
{_up("bytes", 1, "%bulk", "%bytes", _copy_element("bytes", "i8", 1), "done")}done:
  ret ptr %target
}}
"""


def _move(strict: bool, align: int) -> str:
    """As memcpy where the target does not begin within the source, and from the end where it does."""
    return f"""\
define ptr @memmove(ptr %target, ptr %source, i64 %bytes) #0 {{
  %to = ptrtoint ptr %target to i64
  %from = ptrtoint ptr %source to i64
  %distance = sub i64 %to, %from
  %within = icmp ult i64 %distance, %bytes
  br i1 %within, label %backward, label %forward
forward:
  %copied = call ptr @memcpy(ptr %target, ptr %source, i64 %bytes)
  ret ptr %target
backward:
  {_bulk(strict, "target", "source")}
{_down("bytes", 1, "%bulk", "%bytes", _copy_element("bytes", "i8", 1), "rest")}rest:
{_down("words", _STEP, "0", "%bulk", _copy_element("words", "<4 x i64>", align), "done")}done:
  ret ptr %target
}}
"""


def _fill(strict: bool, align: int) -> str:
    words = f"""\
%words.to = getelementptr i8, ptr %target, i64 %words.at
  store <32 x i8> %all, ptr %words.to, align {align}"""
    rest = """\
%bytes.to = getelementptr i8, ptr %target, i64 %bytes.at
  store i8 %byte, ptr %bytes.to, align 1"""
    return f"""\
define ptr @memset(ptr %target, i32 %value, i64 %bytes) #0 {{
  %byte = trunc i32 %value to i8
  %first = insertelement <32 x i8> poison, i8 %byte, i64 0
  %all = shufflevector <32 x i8> %first, <32 x i8> poison, <32 x i32> zeroinitializer
  {_bulk(strict, "target")}
{_up("words", _STEP, "0", "%bulk", words, "rest")}rest:
{_up("bytes", 1, "%bulk", "%bytes", rest, "done")}done:
  ret ptr %target
}}
"""


__all__ = ["memory_functions"]
