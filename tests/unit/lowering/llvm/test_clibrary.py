"""C libraries: their example is built by their makefile, runs on each machine, and gives the bits that Python gets."""

from __future__ import annotations

import ctypes
import itertools
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from gcomp.dims import Constraint, ConstraintKind, Range, parse
from gcomp.errors import InputError, UnsupportedError
from gcomp.ir.program import Program
from gcomp.lowering.llvm.clibrary.interface import Interface, print_interface
from gcomp.lowering.llvm.clibrary.library import library_files
from gcomp.lowering.llvm.codegen import Module, compile_image
from gcomp.lowering.llvm.lower import lower
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.runtime.checks import Check
from gcomp.runtime.cpu.variants import VARIANTS, Variant, runs
from gcomp.runtime.plan import Bucketing, HostStep, Plan
from gcomp.targets.base import target_named
from tests import foreign_machines
from tests.mapped import Mapped
from tests.support import cpu
from tests.unit.lowering.llvm.test_lower import floats

Array = np.ndarray[Any, Any]
HERE = [variant for variant in VARIANTS.values() if runs(variant)]
RUNNING = [variant for variant in VARIANTS.values() if variant.machine != platform.machine() or runs(variant)]

MODEL = """module attributes {gcomp.ranges = {n = "2..1000 step 2", m = "1..8"}} {
func.func public @main(%x: tensor<?x48xf32, ["n", "48"]>, %y: tensor<?xf32, ["m"]>)
    -> (tensor<?x20xf32, ["n", "20"]>, tensor<?xf32, ["m"]>, tensor<?xf32, ["m"]>) {
  %w = gcomp.weight @layer.w : tensor<48x20xf32>
  %b = gcomp.weight @layer.b : tensor<20xf32>
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
      (tensor<?x48xf32, ["n", "48"]>, tensor<48x20xf32>) -> tensor<?x20xf32, ["n", "20"]>
  %2 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<20xf32>) -> tensor<?x20xf32, ["n", "20"]>
  %3 = stablehlo.add %1, %2 : tensor<?x20xf32, ["n", "20"]>
  %4 = stablehlo.tanh %3 : tensor<?x20xf32, ["n", "20"]>
  %5 = stablehlo.exponential %y : tensor<?xf32, ["m"]>
  func.return %4, %5, %y : tensor<?x20xf32, ["n", "20"]>, tensor<?xf32, ["m"]>, tensor<?xf32, ["m"]>
}
}"""
WEIGHTS = {"layer.w": floats(48, 20, seed=3), "layer.b": floats(20, seed=4)}


@cache
def lowered(*variants: Variant) -> Plan:
    program = Program.parse(MODEL)
    for name, array in WEIGHTS.items():
        program.weights.add(name, array)
    PassManager(parse_pipeline(target_named("triton:sm_90").pipeline())).run(program)
    return lower(program, "cpu", variants)


def built(files: dict[str, bytes], folder: Path, variant: Variant) -> Path:
    """The example of a library, by its makefile."""
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    compiler = foreign_machines.tool(variant.machine, "gcc")
    options = [f"CROSS={compiler.removesuffix('gcc')}", "LDFLAGS=-static", "CFLAGS=-std=c11 -O1 -Wall -Wextra -Werror"]
    subprocess.run(["make", "-s", "-C", str(folder), *options], check=True)
    return folder / "example"


@pytest.mark.parametrize("variant", RUNNING, ids=lambda v: v.name)
def test_the_example_gives_the_bits_that_python_gets(variant: Variant, tmp_path: Path) -> None:
    program = built(library_files(lowered(variant), WEIGHTS, "layer"), tmp_path / "layer", variant)
    plan = lowered(HERE[0])
    for n, m, threads in ((2, 3, 1), (1000, 8, 1), (1000, 8, 3)):
        inputs = [floats(n, 48, seed=n), floats(m, seed=m)]
        paths = [tmp_path / f"input{i}" for i in range(2)]
        for path, array in zip(paths, inputs, strict=True):
            path.write_bytes(array.tobytes())
        arguments = ["-t", str(threads), str(program.parent / "layer.weights"), str(m), str(n), *map(str, paths)]
        said = foreign_machines.run(variant.machine, program, arguments, folder=tmp_path)
        wanted = [*cpu.run(plan, HERE[0].name, WEIGHTS, inputs)]
        assert said.count("bytes") == 3
        for number, array in enumerate(wanted):
            assert (tmp_path / f"output{number}.bin").read_bytes() == array.tobytes()


def test_the_files_are_the_same_every_time_and_say_nothing_of_where_they_were_made(tmp_path: Path) -> None:
    variant = VARIANTS["aarch64"]
    first, second = (library_files(lowered(variant), WEIGHTS, "layer") for _ in range(2))
    assert first == second
    assert not any(str(Path.cwd()).encode() in data for data in first.values())


def test_what_c_is_told_is_what_python_checks(tmp_path: Path) -> None:
    """Sizes in range and out of it, bytes, a wrong arena, and numbers that no input has."""
    plan = lowered(HERE[-1])
    library = shared(library_files(plan, WEIGHTS, "my model-2"), "my_model_2", tmp_path)
    signature = plan.signature
    for m in (-5, 0, 1, 2, 8, 9):
        for n in (-2, 0, 2, 3, 4, 998, 1000, 1001, 1002):
            sizes = (ctypes.c_int64 * 2)(m, n)
            problem = library.my_model_2_check(sizes)
            wrong = [name for name, value in (("m", m), ("n", n)) if value not in signature.ranges[name]]
            assert problem == {"m": 1, "n": 2}.get(next(iter(wrong), ""), 0)
            if problem:
                assert library.my_model_2_run(64, None, None, None, None, sizes) == problem
            else:
                assert [library.my_model_2_input_bytes(i, sizes) for i in (-1, 0, 1, 2)] == [-1, n * 192, m * 4, -1]
                assert [library.my_model_2_output_bytes(i, sizes) for i in (0, 1, 2, 3)] == [n * 80, m * 4, m * 4, -1]
                assert library.my_model_2_arena_bytes(sizes) >= 0
                assert library.my_model_2_run(8, None, None, None, None, sizes) == -1
    with pytest.raises(InputError):
        signature.bind(((3, 48), (4,)))


def shared(files: dict[str, bytes], word: str, folder: Path) -> Any:
    """A library in this process."""
    (folder / "object.o").write_bytes(files[f"{word}.o"])
    compiler = foreign_machines.tool(platform.machine(), "gcc")
    subprocess.run([compiler, "-shared", "-o", str(folder / "made.so"), str(folder / "object.o")], check=True)
    found: Any = ctypes.CDLL(str(folder / "made.so"))
    for name in ("check", "arena_bytes", "input_bytes", "output_bytes", "run"):
        function = getattr(found, f"{word}_{name}")
        function.restype = ctypes.c_int64
    for name in ("input_bytes", "output_bytes"):
        getattr(found, f"{word}_{name}").argtypes = [ctypes.c_int64, ctypes.c_void_p]
    getattr(found, f"{word}_run").argtypes = [ctypes.c_void_p] * 6
    return found


@pytest.mark.skipif(not HERE, reason="no code for this machine")
def test_constraints_in_c_are_those_of_python() -> None:
    formulas = [parse(text) for text in ("a", "b", "2*a - b", "a*b + 1", "floordiv(a, 3)", "4", "1", "0")]
    kinds = get_args(ConstraintKind)
    assert len(kinds) == 4
    drawn = list(itertools.product(kinds, formulas, formulas))[::3]
    assert_agree([
        Interface(f"m{n}", (("a", Range(0)), ("b", Range(0, 9))), (Constraint(*one, "here"),), 0, (), (), (), (), ())
        for n, one in enumerate(drawn)
    ])  # fmt: skip


def assert_agree(interfaces: Sequence[Interface]) -> None:
    """That each says of its constraint what Python says, for all small sizes."""
    entry = Module("entry", "define i64 @gcomp_entry(ptr %call) {\n  ret i64 0\n}")
    lines = "\n".join(map(print_interface, interfaces)).splitlines()
    declared = dict.fromkeys(line for line in lines if line.startswith("declare"))
    text = "\n".join([*declared, *(line for line in lines if line not in declared)])
    mapped = Mapped(compile_image([Module("interfaces", text), entry], HERE[-1]))
    for interface in interfaces:
        check = mapped.function(f"{interface.name}_check", [ctypes.c_void_p], ctypes.c_int64)
        (constraint,) = interface.constraints
        for a, b in itertools.product(range(10), repeat=2):
            broken = constraint.check({"a": a, "b": b}) is not None
            assert check((ctypes.c_int64 * 2)(a, b)) == (3 if broken else 0), f"{constraint} for {a}, {b}"


REFUSED = {
    "checks": ({"checks": (Check("nan", "stablehlo.add", "", "here"),)}, "checks"),
    "buckets": ({"buckets": {"n": Bucketing((2,), "length")}}, "buckets"),
    "host step": ({"steps": (HostStep("nonzero", (0,), ()),)}, "nonzero"),
    "no segment": ({"steps": ()}, "0 segments"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_call_of_machine_code_alone_is_refused(name: str) -> None:
    changes, said = REFUSED[name]
    with pytest.raises(UnsupportedError, match="cannot be a C library") as caught:
        library_files(replace(lowered(VARIANTS["aarch64"]), **changes), WEIGHTS, "m")
    assert said in str(caught.value)


def test_a_library_is_for_one_kind_of_processor() -> None:
    plan = lowered(VARIANTS["aarch64"], VARIANTS["riscv64"])
    with pytest.raises(UnsupportedError, match="code for aarch64, riscv64"):
        library_files(plan, WEIGHTS, "m")


@pytest.mark.parametrize(("compiler", "standard"), [("gcc", "c99"), ("g++", "c++11")])
def test_the_header_is_c_and_cpp(compiler: str, standard: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"SKIPPED: {compiler} is not installed")
    signature = lowered(VARIANTS["aarch64"]).signature
    named = replace(signature, inputs=tuple(replace(s, name="a*/ b /* \\\n c\u2028") for s in signature.inputs))
    text = library_files(replace(lowered(VARIANTS["aarch64"]), signature=named), WEIGHTS, "layer")["layer.h"].decode()
    assert re.search(r"0 +a\* / b / \* \\\?", text)
    source = tmp_path / f"a.{'c' if compiler == 'gcc' else 'cpp'}"
    source.write_text(f"{text}\n{text}\nint64_t (*used)(const int64_t *) = layer_check;\n", "utf-8")
    options = [f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run([compiler, *options, str(source)], check=True)
