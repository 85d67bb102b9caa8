"""Objects: the same bytes for the same text, kept on disk, several at once, and a file for what LLVM refuses."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gcomp.errors import InternalError, UnsupportedError
from gcomp.lowering.llvm import codegen
from gcomp.lowering.llvm.codegen import Compilation, Module, assembly, compile_image, compile_objects
from gcomp.lowering.llvm.emitter import Request
from gcomp.lowering.llvm.process import Children, Died
from gcomp.runtime.cpu.variants import VARIANTS

V3, V4 = VARIANTS["x86-64-v3"], VARIANTS["x86-64-v4"]
ADD = """
define void @NAME(ptr %p) {
  %x = load <16 x float>, ptr %p
  %y = call <16 x float> @llvm.fma.v16f32(<16 x float> %x, <16 x float> %x, <16 x float> %x)
  store <16 x float> %y, ptr %p
  ret void
}
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GCOMP_CACHE_DIR", str(tmp_path))
    return tmp_path


def modules(count: int) -> list[Module]:
    return [Module(f"m{i}", ADD.replace("NAME", f"add{i}")) for i in range(count)]


def test_bytes_do_not_depend_on_what_else_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    together = compile_objects(modules(9), V3)
    monkeypatch.setenv("GCOMP_CACHE_DIR", "off")
    assert [compile_objects([module], V3)[0] for module in modules(9)] == together
    assert compile_image(modules(3), V3) == compile_image(modules(3), V3)


def test_an_object_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile_objects(modules(3), V3)
    monkeypatch.setattr(codegen, "_emit", lambda *_, **__: pytest.fail("it is compiled again"))
    assert compile_objects(modules(3), V3) == first
    with pytest.raises(pytest.fail.Exception):
        compile_objects(modules(3), V4)
    with pytest.raises(pytest.fail.Exception):
        compile_objects(modules(4), V3)


def test_what_is_begun_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules are compiled while others are written, each once however often it is asked for."""
    made: list[str] = []
    emit = codegen._emit
    monkeypatch.setattr(codegen, "_emit", lambda m, *a, **k: made.append(m.name) or emit(m, *a, **k))
    first, second = modules(2)
    with Compilation(V3) as compilation:
        compilation.begin(second)
        compilation.begin(second)
        found = compilation.objects([first, second, first])
    assert sorted(made) == ["m0", "m1"]
    assert found == compile_objects([first, second, first], V3)
    assert sorted(made) == ["m0", "m1"]


def test_the_variant_decides_which_instructions_there_are() -> None:
    (module,) = modules(1)
    assert "zmm" in assembly(module, V4)
    assert "ymm" in assembly(module, V3) and "zmm" not in assembly(module, V3)
    assert re.search(r"fmla\s+v\d+\.4s", assembly(module, VARIANTS["aarch64"]))
    assert "fmadd.s" in assembly(module, VARIANTS["riscv64"])


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=lambda v: v.name)
def test_large_frames_call_nothing(variant) -> None:
    """No probes of the stack, which would be functions from elsewhere."""
    text = """
define void @f(ptr %p) {
  %big = alloca [200000 x i8]
  store volatile i8 1, ptr %big
  call void @g(ptr %big)
  ret void
}
define void @g(ptr %p) noinline {
  ret void
}"""
    assert "f" in compile_image([Module("m", text)], variant).entries


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("define void @f() {\n  %x = add i32 1, 2.0\n  ret void\n}", "floating point constant|integer"),
        ("define i32 @f() {\n  %x = add i32 %y, 1\n  %y = add i32 %x, 1\n  ret i32 0\n}", "dominate"),
    ],
)  # fmt: skip
def test_what_llvm_refuses_is_written_to_a_file(
    text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codegen.tempfile, "tempdir", str(tmp_path))
    with pytest.raises(InternalError, match="refuses the code of wrong") as caught:
        compile_objects([*modules(1), Module("wrong", text, lambda: "tile.kernel @f\n")], V3)
    assert caught.value.why is not None and re.search(why, caught.value.why)
    assert caught.value.where is not None
    written = Path(caught.value.where).read_text("utf-8")
    assert "; tile.kernel @f\n" in written and text in written and "x86-64-v3" in written


def test_without_llvm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    codegen.llvmlite_version.cache_clear()
    try:
        monkeypatch.setattr(importlib.metadata, "version", missing)
        with pytest.raises(UnsupportedError, match="llvmlite") as caught:
            compile_objects(modules(1), V3)
        assert caught.value.fix is not None and "pip install" in caught.value.fix
        monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.99.1")
        with pytest.raises(UnsupportedError, match=r"0\.99\.1"):
            compile_objects(modules(1), V3)
    finally:
        codegen.llvmlite_version.cache_clear()


def test_what_is_kept_needs_no_llvm() -> None:
    """LLVM takes a while to load."""
    compile_objects(modules(2), V3)
    program = (
        "import sys\nfrom tests.unit.lowering.llvm.test_codegen import *\ncompile_objects(modules(2), V3)\n"
        "assert 'llvmlite' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ}, cwd=Path(__file__).parents[4])


def test_a_failure_of_llvm_ends_no_process_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM aborts when a machine has no instruction for an intrinsic."""
    monkeypatch.setattr(codegen.tempfile, "tempdir", str(tmp_path))
    text = "define void @f() {\n  call void @llvm.riscv.pause()\n  ret void\n}\ndeclare void @llvm.riscv.pause()"
    for variant in (VARIANTS["riscv64"], V3):
        with pytest.raises(InternalError, match="fails at the code of wrong") as caught:
            compile_objects([*modules(1), Module("wrong", text, lambda: "tile.kernel @f\n")], variant)
        assert caught.value.why is not None and "Cannot select" in caught.value.why
        assert caught.value.where is not None and text in Path(caught.value.where).read_text("utf-8")
    assert len(compile_objects(modules(3), V3)) == 3


def test_where_llvm_fails_at_fast_code_it_makes_slower_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at a remainder of constants beside masked integers, with AVX2: an assertion on bits of constants."""
    ask, given = codegen.CHILDREN.ask, modules(1)[0]

    def fails_at_fast_code(request: Request) -> bytes:
        if request["options"]["opt"]:
            raise Died("it ended with SIGABRT: an assertion")
        return ask(request)

    monkeypatch.setattr(codegen.CHILDREN, "ask", fails_at_fast_code)
    with pytest.warns(UserWarning, match="fails at the fast code of m0, which is slower now: it ended with SIGABRT"):
        assert compile_image([given], V3).entries["add0"] >= 0
    monkeypatch.setattr(codegen.CHILDREN, "ask", lambda request: raise_late())
    with pytest.raises(InternalError, match="fails at the code of m1"):
        compile_objects([modules(2)[1]], V3)


def raise_late() -> bytes:
    raise Died("it took longer than 600 s", late=True)


def test_what_takes_too_long_is_ended() -> None:
    children = Children()
    with pytest.raises(Died, match="longer than"):
        children.ask({"name": "m", "text": "", "triple": V3.triple, "options": {}, "form": "object"}, 0.001)
    children.close()


def test_a_fork_has_children_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCOMP_CACHE_DIR", "off")
    objects = compile_objects(modules(2), V3)
    if (child := os.fork()) == 0:
        os._exit(0 if compile_objects(modules(2), V3) == objects else 1)
    assert compile_objects(modules(2), V3) == objects
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
