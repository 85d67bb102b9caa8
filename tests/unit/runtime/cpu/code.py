"""Machine code for the tests beside this file, from LLVM IR that is written by hand."""

from __future__ import annotations

from collections.abc import Mapping

from gcomp.lowering.llvm.codegen import Module, compile_image
from gcomp.lowering.llvm.image import Image
from gcomp.runtime.cpu.variants import VARIANTS, this_machine

LOOP = """
define i64 @gcomp_entry(ptr %call) {{
{loads}
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
{body}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret i64 0
}}
"""


def entry(slots: Mapping[str, int], body: str, count: str = "") -> str:
    """An entry that runs a body for each %i below %n. `slots` are the values and addresses that it is given."""
    loads: list[str] = []
    for name, slot in slots.items():
        loads.append(f"  %at.{name} = getelementptr i64, ptr %call, i64 {slot}")
        loads.append(f"  %{name} = load {'i64' if name == 'n' else 'ptr'}, ptr %at.{name}")
    return LOOP.format(loads="\n".join([*loads, count]), body=body)


def read(name: str, of: str) -> str:
    """A line that reads element %i of an array of f32."""
    return f"  %p.{name} = getelementptr float, ptr %{of}, i64 %i\n  %{name} = load float, ptr %p.{name}"


def write(value: str, to: str) -> str:
    """A line that writes element %i of an array of f32."""
    return f"  %q.{to} = getelementptr float, ptr %{to}, i64 %i\n  store float %{value}, ptr %q.{to}"


def image_of(entry: str) -> Image:
    """The image of an entry for this machine."""
    return compile_image([Module("entry", entry)], VARIANTS[this_machine()])
