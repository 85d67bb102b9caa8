"""Kernels compiled without a GPU: what comes out, the same everywhere, kept, and refused where it does not fit."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcomp.errors import UsageError
from gcomp.lowering.tiles.drafts import Draft
from gcomp.lowering.triton import cache
from gcomp.lowering.triton.aot import Compiled, Compiler, KernelError, ResourceError, compile_kernels
from gcomp.lowering.triton.process import Died, Worker
from gcomp.lowering.triton.source import Argument, Configuration, KernelSource
from gcomp.lowering.triton.targets import ARCHITECTURES, architecture
from gcomp.runtime.folders import CACHE
from tests.unit.lowering.triton.kernels import ADD, DESCRIPTOR, HEAD, PRODUCT, SOFTMAX, N, O, X, kernel

SM90 = architecture("sm_90")


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of this module's own."""
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("cache", numbered=True) / "gcomp"
        patch.setenv(CACHE, str(place))
        yield place


@pytest.fixture(scope="module")
def compiler() -> Iterator[Compiler]:
    with Compiler(1) as found:
        yield found


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_kernels_are_compiled_for_each_architecture(name: str, compiler: Compiler) -> None:
    add, softmax = compiler.compile([ADD, SOFTMAX], architecture(name))
    assert (add.source, softmax.source) == (ADD, SOFTMAX) and add.target == name
    assert add.warps == 4 and add.ctas == 1 and add.shared == 0 < softmax.shared <= 64
    assert add.scratch == add.stack == add.tensor_memory == 0
    assert add.parameters == (8, 8, 8, 4, 8, 8) and softmax.parameters == (8, 8, 8, 8)
    assert 8 <= add.registers <= 64
    assert add.binary.startswith(b"\x7fELF")


def test_scratch_memory_is_told(compiler: Compiler) -> None:
    (copy,) = compiler.compile([DESCRIPTOR], SM90)
    assert copy.scratch > 0 and copy.scratch % copy.scratch_alignment == 0
    (plain,) = compiler.compile([DESCRIPTOR], architecture("sm_80"))
    assert plain.scratch == 0


def test_comments_are_not_compiled(compiler: Compiler) -> None:
    """Equal layers of a model have kernels that differ in where they come from, and share what is compiled."""
    marked = dataclasses.replace(ADD, text=ADD.text.replace("    m = i < n\n", "    # layer 7 (Add)\n    m = i < n\n"))
    assert marked.text != ADD.text and marked == ADD and len({marked, ADD}) == 1
    first, second = (compiler.compile([source], SM90)[0] for source in (ADD, marked))
    assert first.binary == second.binary
    draft = Draft()
    arguments = {name: draft.buffer("arena", 0, 64) for name in "xyo"} | {"n": 16}
    for source in (ADD, marked):
        draft.launch(source, arguments)
    assert draft.kernels == (ADD,)


@pytest.mark.parametrize(
    ("registers", "warps", "spilled"), [(255, 4, 24), (254, 8, 24), (240, 8, 0), (40, 4, 0), (128, 16, 24), (96, 16, 0)]
)
def test_registers_spill_where_there_are_no_more(registers: int, warps: int, spilled: int) -> None:
    found = Compiled(ADD, "sm_90", b"", warps, 1, 0, 0, 0, 1, registers, 24, ())
    assert found.spilled == spilled and dataclasses.replace(found, stack=0).spilled == 0


def test_hints_reach_the_compiler(compiler: Compiler) -> None:
    def vectors(alignment: int) -> bool:
        arguments = tuple(dataclasses.replace(a, alignment=alignment) for a in ADD.arguments)
        return ".v4" in compiler.listing(dataclasses.replace(ADD, arguments=arguments), SM90)

    assert vectors(16) and not vectors(1)


def test_fused_rounding_is_off_unless_asked_for(compiler: Compiler) -> None:
    text = "def madd(x, o):\n    i = tl.arange(0, 128)\n    v = tl.load(x + i)\n    tl.store(o + i, v * v + 1.5)\n"
    assert "fma.rn" not in compiler.listing(kernel(text, X, O), SM90)
    assert "fma.rn" in compiler.listing(kernel(text, X, O, fp_fusion=True), SM90)


def test_progress_counts_each_kernel_once(compiler: Compiler) -> None:
    seen: list[tuple[int, int]] = []
    twice = dataclasses.replace(ADD, grid=(7,))
    first, _, second = compiler.compile([ADD, SOFTMAX, twice], SM90, lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]
    assert first.binary == second.binary and second.source.grid == (7,)


_PRINT = """
import hashlib, sys
from gcomp.lowering.triton.aot import compile_kernels
from gcomp.lowering.triton.targets import architecture
from tests.unit.lowering.triton.kernels import ADD, SOFTMAX
for found in compile_kernels([ADD, SOFTMAX], architecture("sm_90"), jobs=1):
    print(hashlib.sha256(found.binary).hexdigest())
"""


def test_binaries_are_the_same_everywhere(tmp_path: Path, compiler: Compiler) -> None:
    """Another folder, another seed of hashes, another home, and settings of Triton's that would change them."""
    root = Path(__file__).parents[4]
    environment = {
        **os.environ, CACHE: str(tmp_path / "cache"), "PYTHONHASHSEED": "7",
        "PYTHONPATH": os.pathsep.join([str(root), *sys.path]),
        "HOME": str(tmp_path), "TRITON_DISABLE_LINE_INFO": "0", "TRITON_DEBUG": "1", "TRITON_DEFAULT_FP_FUSION": "1",
        "DISABLE_PTXAS_OPT": "1", "DISABLE_LLVM_OPT": "1", "PTXAS_OPTIONS": "-O0", "PYTHONWARNINGS": "error",
    }  # fmt: skip
    out = subprocess.run([sys.executable, "-c", _PRINT], cwd=tmp_path, env=environment, capture_output=True, text=True)
    import hashlib

    here = [hashlib.sha256(found.binary).hexdigest() for found in compiler.compile([ADD, SOFTMAX], SM90)]
    assert out.stdout.split() == here, out.stderr


def test_files_beside_the_users_script_do_not_stand_for_pythons_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "re.py").write_text("raise SystemExit('this is not Python's')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    with Compiler(1) as compiler:
        (add,) = compiler.compile([ADD], SM90)
    assert add.binary.startswith(b"\x7fELF")


# ---- the cache ----


def test_a_kernel_is_compiled_once(folder: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = compiler.compile([ADD], SM90)

    def refuse(*_: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(Worker, "ask", refuse)
    assert compiler.compile([ADD], SM90) == [first]
    assert (folder.stat().st_mode & 0o777) == 0o700


@pytest.mark.parametrize("damage", [lambda d: d[:-1] + bytes([d[-1] ^ 1]), lambda d: d[:40], lambda d: b""])
def test_a_damaged_entry_is_compiled_again(damage, compiler: Compiler) -> None:
    (first,) = compiler.compile([SOFTMAX], SM90)
    path = cache.KERNELS.path() / cache.key(SOFTMAX, SM90)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert compiler.compile([SOFTMAX], SM90) == [first]
    assert path.read_bytes() == whole


def test_a_folder_that_others_can_write_to_is_refused(
    tmp_path: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setenv(CACHE, str(tmp_path))
    with pytest.raises(UsageError, match="not safe"):
        compiler.compile([ADD], SM90)


def test_the_oldest_entries_go(compiler: Compiler) -> None:
    compiler.compile([ADD, SOFTMAX], SM90)
    old, new = (cache.KERNELS.path() / cache.key(source, SM90) for source in (ADD, SOFTMAX))
    os.utime(old, (1, 1))
    cache.KERNELS.trim(sum(path.stat().st_size for path in cache.KERNELS.path().iterdir()))
    assert old.exists()
    cache.KERNELS.trim(new.stat().st_size)
    assert not old.exists() and new.exists()


@pytest.mark.parametrize("home", ["/proc/nothing", "relative"])
def test_without_a_home_nothing_is_kept(
    home: str, tmp_path: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CACHE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", home)
    monkeypatch.chdir(tmp_path)
    assert compiler.compile([ADD], SM90)
    cache.KERNELS.trim()
    assert not list(tmp_path.iterdir())


def test_no_more_processes_are_started_than_work() -> None:
    with Compiler(3) as compiler:
        for source in (ADD, SOFTMAX, DESCRIPTOR):
            assert compiler.listing(source, SM90, "ttir")
        assert sum(worker._process is not None for worker in compiler._workers) == 1


def test_all_that_decides_a_binary_is_in_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(**fields: object) -> KernelSource:
        return dataclasses.replace(ADD, **fields)  # type: ignore[arg-type]

    sources = [
        ADD,
        changed(name="other"),
        changed(text=ADD.text + "\n"),
        changed(arguments=ADD.arguments[1:]),
        changed(configuration=Configuration(num_stages=1)),
        changed(configuration=Configuration(fp_fusion=True)),
    ]
    keys = {cache.key(source, SM90) for source in sources}
    keys.add(cache.key(ADD, architecture("sm_80")))
    assert cache.key(changed(grid=(1, 2, 3)), SM90) in keys
    monkeypatch.setattr(cache, "triton_version", lambda: "another")
    keys.add(cache.key(ADD, SM90))
    monkeypatch.setenv("TRITON_PTXAS_PATH", "/bin/true")
    keys.add(cache.key(ADD, SM90))
    assert len(keys) == len(sources) + 3


# ---- what does not compile ----


def body(text: str) -> str:
    return f"def bad(x, o):\n    i = tl.arange(0, 16)\n    {text}\n"


@pytest.mark.parametrize(
    ("source", "where", "why"),
    [
        (kernel(body("tl.store(o + i, y)"), X, O), "line 8: tl.store(o + i, y)", "y is not defined"),
        (kernel(body("tl.store(o + tl.arange(0, 3), 1.0)"), X, O), "line 8: tl.store", "power of 2"),
        (kernel(body("tl.store(o + i, 1.0"), X, O), "line 8: tl.store(o + i, 1.0", "never closed"),
        (kernel(body("pass"), X), "kernel bad for sm_90", "parameters are ['x', 'o']"),
        (kernel(body("pass"), X, O, num_warps=3), "kernel bad for sm_90", "power of 2"),
        (
            KernelSource("bad", HEAD + "def helper(v):\n    return v + tl.arange(0, 3)\n\n\n@triton.jit\n"
                         + body("tl.store(o + i, helper(i))"), (X, O), (1,)),
            "line 7: return v + tl.arange(0, 3)", "power of 2",
        ),
    ],
)  # fmt: skip
def test_an_error_names_the_kernel_and_the_line(source: KernelSource, where: str, why: str, compiler: Compiler) -> None:
    with pytest.raises(KernelError) as caught:
        compiler.compile([source], SM90)
    assert where in str(caught.value) and why in str(caught.value)


def test_a_dtype_that_an_architecture_lacks_is_refused(compiler: Compiler) -> None:
    narrow = Argument("x", "*fp8e4nv", "in")
    source = kernel("def f(x, o):\n    i = tl.arange(0, 32)\n    tl.store(o + i, tl.load(x + i).to(tl.float32))\n",
                    narrow, O)  # fmt: skip
    assert compiler.compile([source], SM90)
    with pytest.raises(KernelError, match="does not compile") as caught:
        compiler.compile([source], architecture("sm_80"))
    assert "fp8e4nv not supported" in str(caught.value)


def test_resources_are_held_to_the_table(compiler: Compiler) -> None:
    many = dataclasses.replace(ADD, configuration=Configuration(num_warps=64))
    shared, threads, fine = compiler.attempt([PRODUCT, many, ADD], SM90)
    assert isinstance(shared, ResourceError) and "524,288 bytes of shared memory" in str(shared)
    assert "232,448" in str(shared) and "num_stages=4" in str(shared)
    assert isinstance(threads, ResourceError) and "2,048 threads" in str(threads)
    assert not isinstance(fine, KernelError)


def test_a_process_that_dies_is_an_error_and_is_replaced(compiler: Compiler) -> None:
    text = "import os\n" + HEAD + "def dead(n):\n    pass\n\n\nos.abort()\n"
    with pytest.raises(KernelError, match="does not compile") as caught:
        compiler.compile([KernelSource("dead", text, (N,), (1,))], SM90)
    assert "SIGABRT" in str(caught.value)
    assert compiler.compile([ADD], SM90)


def test_processes_are_replaced_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gcomp.lowering.triton.process.REQUESTS", 2)
    with Worker("interpret") as worker:
        pids = [
            worker.ask({"name": "p", "text": "import os\nraise ValueError(os.getpid())\n", "arguments": []})[0]["text"]
            for _ in range(4)
        ]
    assert pids[0] == pids[1] != pids[2] == pids[3]


def test_a_process_that_takes_too_long_is_ended() -> None:
    with Worker("compile", seconds=0.5) as worker, pytest.raises(Died, match=r"longer than 0\.5 s"):
        target = ["cuda", 90, 32]
        worker.ask({"name": "slow", "text": "import time\ntime.sleep(60)\n", "arguments": [], "target": target})


def test_none_is_no_work() -> None:
    assert compile_kernels([], SM90) == []
