"""Machine code for the tests beside this file: LLVM IR of functions that call nothing, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from llvmlite import binding

from gcomp.runtime.cpu.variants import VARIANTS, this_machine

THREADS = {
    "start": "define i64 @start(ptr %pool, i64 %threads, ptr %create, ptr %join, ptr %call) { ret i64 1 }",
    "stop": "define void @stop(ptr %pool) { ret void }",
}
"""A pool of the caller alone."""

LOOP = """
define i64 @entry(ptr %call) {{
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


@cache
def compiled(text: str) -> bytes:
    """The code of a module of one function."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    variant = VARIANTS[this_machine()]
    target = binding.Target.from_triple(variant.triple)
    options = {"cpu": variant.cpu, "features": variant.features, "reloc": "pic", "codemodel": "small"}
    machine = target.create_target_machine(opt=1, **options)
    data = machine.emit_object(binding.parse_assembly(text))
    return next(s.data() for s in binding.ObjectFileRef.from_data(data).sections() if s.name() == b".text")


def image_of(functions: Mapping[str, str]) -> tuple[bytes, dict[str, int]]:
    """An image of functions, and where each begins."""
    code, entries = b"", dict[str, int]()
    for name, text in functions.items():
        entries[name] = len(code)
        code += compiled(text)
        code += bytes(-len(code) % 64)
    return code, entries
