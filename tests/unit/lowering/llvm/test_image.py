"""Images: every relocation as GNU ld applies it, code that runs where it is mapped, and a refusal for all else."""

from __future__ import annotations

import ctypes
import lzma
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gcomp.errors import InternalError
from gcomp.lowering.llvm import elf, image, relocations
from gcomp.lowering.llvm.codegen import Module, compile_objects
from gcomp.lowering.llvm.image import link
from gcomp.runtime.cpu.variants import VARIANTS, Variant, runs
from tests.foreign_machines import MACHINES, tool
from tests.mapped import Mapped

OBJECTS = Path(__file__).parent / "objects"
"""For each machine one file of assembly with every relocation of the table that an assembler writes, its object by
GNU as (without relaxation), and what GNU ld makes of the object."""
SCRIPT = "SECTIONS { . = 0x10000; .all : { *(.text .text.*) *(.rodata .rodata.*) } =0 }"
HERE = next((variant for variant in VARIANTS.values() if runs(variant)), None)


def stored(name: str) -> bytes:
    return lzma.decompress((OBJECTS / f"{name}.xz").read_bytes())


def by_ld(machine: str, objects: list[bytes], folder: Path) -> bytes:
    """What GNU ld makes of objects."""
    names = [str(folder / f"{number}.o") for number in range(len(objects))]
    for path, data in zip(names, objects, strict=True):
        Path(path).write_bytes(data)
    (folder / "script").write_text(SCRIPT)
    options = ["--no-relax", "-e", "0", "-T", str(folder / "script"), "-o", str(folder / "linked")]
    subprocess.run([tool(machine, "ld"), *options, *names], check=True)
    options = ["-O", "binary", "-j", ".all", str(folder / "linked"), str(folder / "bytes")]
    subprocess.run([tool(machine, "objcopy"), *options], check=True)
    return (folder / "bytes").read_bytes()


@pytest.mark.parametrize("machine", MACHINES)
def test_relocations_are_those_of_ld(machine: str) -> None:
    assert link([stored(f"{machine}.o")]).code.rstrip(b"\0") == stored(f"{machine}.bin").rstrip(b"\0")


@pytest.mark.parametrize("machine", MACHINES)
def test_stored_objects_have_what_the_tables_have(machine: str) -> None:
    read = elf.read_object(stored(f"{machine}.o"))
    found = {r.kind for section in read.sections for r in section.relocations}
    known = {*relocations.APPLY[read.machine], *relocations.LOWS.get(read.machine, ())}
    # Of those that say the same, assemblers write one.
    same = {"x86_64": set(), "aarch64": {260, 262, 314}, "riscv64": {18, 33, 34, 37, 38, 57, 59}}[machine]
    assert known - found == same


@pytest.mark.parametrize("machine", MACHINES)
def test_stored_objects_are_those_of_the_assembly(machine: str, tmp_path: Path) -> None:
    options = ["-mno-relax", "-march=rv64gc"] if machine == "riscv64" else []
    subprocess.run(
        [tool(machine, "as"), *options, "-o", str(tmp_path / "o"), str(OBJECTS / f"{machine}.s")], check=True
    )
    made = (tmp_path / "o").read_bytes()
    assert by_ld(machine, [made], tmp_path) == stored(f"{machine}.bin")
    assert link([made]).code == link([stored(f"{machine}.o")]).code


CALLS = Module("calls", """
@table = private constant [4 x double] [double 1.0, double 2.0, double 4.0, double 8.0]
define double @chosen(i64 %i) {
  switch i64 %i, label %other [ i64 0, label %zero  i64 1, label %one  i64 2, label %two  i64 3, label %three
                                i64 4, label %four  i64 5, label %five ]
zero:
  ret double 0.5
one:
  %a = call double @other(i64 1)
  ret double %a
two:
  ret double 2.25
three:
  %b = call double @by_address(ptr @other, i64 3)
  ret double %b
four:
  ret double 4.75
five:
  ret double 5.125
other:
  ret double -1.0
}
define double @entry(i64 %i) {
  %p = getelementptr double, ptr @table, i64 %i
  %x = load double, ptr %p
  ret double %x
}
declare double @other(i64)
declare double @by_address(ptr, i64)
""")  # fmt: skip
OTHER = Module("other", """
@table = private constant [4 x float] [float 3.0, float 5.0, float 7.0, float 11.0]
define double @other(i64 %i) {
  %p = getelementptr float, ptr @table, i64 %i
  %x = load float, ptr %p
  %y = fpext float %x to double
  ret double %y
}
define double @by_address(ptr %f, i64 %i) {
  %x = call double %f(i64 %i)
  %y = fmul double %x, 1.0e2
  ret double %y
}
""")  # fmt: skip


@pytest.mark.skipif(HERE is None, reason="no variant of the processor runs here")
def test_an_image_runs_where_it_is_mapped() -> None:
    assert HERE is not None
    made = link(compile_objects([CALLS, OTHER], HERE))
    for _ in range(3):
        mapped = Mapped(made)
        chosen = mapped.function("chosen", [ctypes.c_int64], ctypes.c_double)
        assert [chosen(i) for i in range(7)] == [0.5, 5.0, 2.25, 1100.0, 4.75, 5.125, -1.0]
        entry = mapped.function("entry", [ctypes.c_int64], ctypes.c_double)
        assert [entry(i) for i in range(4)] == [1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=lambda v: v.name)
def test_an_image_is_what_ld_makes(variant: Variant, tmp_path: Path) -> None:
    objects = compile_objects([CALLS, OTHER], variant)
    made = link(objects)
    assert made.code.rstrip(b"\0") == by_ld(variant.machine, objects, tmp_path).rstrip(b"\0")
    assert made.entries.keys() == {"chosen", "entry", "other", "by_address"}
    assert made == link(objects)


REFUSED = {
    "elsewhere": ("declare void @elsewhere()\ndefine void @f() {\n call void @elsewhere()\n ret void\n}", "elsewhere"),
    "writable": ("@state = global i32 7\ndefine ptr @f() {\n ret ptr @state\n}", "state"),
    "zeros": ("@state = internal global i32 0\ndefine i32 @f() {\n %x = atomicrmw add ptr @state, i32 1 seq_cst\n"
              " ret i32 %x\n}", "state"),
    "thread-local": ("@own = thread_local global i32 0\ndefine ptr @f() {\n ret ptr @own\n}", "own"),
    "addresses": ("@pointers = constant [1 x ptr] [ptr @f]\ndefine ptr @f() {\n ret ptr @pointers\n}", "pointers"),
    "absolute": ("@far = external global i8, !absolute_symbol !0\ndefine i64 @f() {\n"
                 " ret i64 ptrtoint (ptr @far to i64)\n}\n!0 = !{i64 0, i64 256}", "far"),
}  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=lambda v: v.name)
@pytest.mark.parametrize("name", REFUSED)
def test_what_no_image_can_hold_is_refused_by_name(name: str, variant: Variant) -> None:
    text, symbol = REFUSED[name]
    with pytest.raises(InternalError, match=rf"\b{symbol}\b"):
        link(compile_objects([Module("m", text)], variant))


def test_objects_do_not_define_a_name_twice() -> None:
    objects = compile_objects([OTHER], VARIANTS["aarch64"])
    with pytest.raises(InternalError, match="Two objects of an image define"):
        link(objects * 2)


def test_objects_are_for_one_machine() -> None:
    objects = [stored("aarch64.o"), stored("riscv64.o")]
    with pytest.raises(InternalError, match="one known machine"):
        link(objects)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_distance_that_does_not_fit_is_refused(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Symbols two gigabytes and more away: no instruction reaches them."""
    read = elf.read_object(stored(f"{machine}.o"))
    for index, section in enumerate(read.sections):
        for relocation in section.relocations:
            if relocation.kind in _ANYWHERE.get(machine, ()):
                continue
            far = replace(relocation, addend=1 << 33)
            sections = list(read.sections)
            sections[index] = replace(section, relocations=(far,))
            monkeypatch.setattr(elf, "read_object", lambda data, made=sections: replace(read, sections=tuple(made)))
            with pytest.raises(InternalError):
                link([b""])


_ANYWHERE = {"x86_64": {24}, "aarch64": {277, 278, 284, 285, 286, 299}, "riscv64": set()}
"""Distances of eight bytes, and the parts of addresses within a page."""


@pytest.mark.parametrize("machine", MACHINES)
def test_a_damaged_object_is_an_internal_error(machine: str) -> None:
    data = stored(f"{machine}.o")
    for size in (0, 7, 63, 64, 200, len(data) // 2, len(data) - 1):
        with pytest.raises(InternalError):
            link([data[:size]])
    with pytest.raises(InternalError, match="hold together"):
        link([b"\x7fELF\x01" + data[5:]])


def test_an_unpaired_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """RISC-V writes a distance as an addition and a subtraction: one of them alone is an address."""
    read = elf.read_object(stored("riscv64.o"))
    sections = [
        replace(section, relocations=tuple(r for r in section.relocations if r.kind != 39)) for section in read.sections
    ]
    monkeypatch.setattr(image.elf, "read_object", lambda data: replace(read, sections=tuple(sections)))
    with pytest.raises(InternalError, match="distances, and no address"):
        link([b""])
