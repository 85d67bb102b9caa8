"""The calls that reach NVIDIA's driver, by a library built from NVIDIA's own header, and its errors."""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcomp.errors import GcompError, InternalError, UnsupportedError
from gcomp.runtime.cuda import driver as module
from gcomp.runtime.cuda.driver import CudaDriver, driver
from gcomp.runtime.cuda.executor import CudaExecutor
from tests.unit.runtime.cuda.models import WEIGHT, plan_of_two, rows, two


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in, compiled: it needs a C compiler, and `cuda.h`, which Triton brings."""
    import triton

    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    include = Path(triton.__file__).parent / "backends" / "nvidia" / "include"
    if compiler is None or not (include / "cuda.h").exists():
        pytest.skip("THE CUDA DRIVER'S CALLS ARE NOT TESTED: no C compiler, or no cuda.h in Triton's package")
    target = tmp_path_factory.mktemp("stub") / "libcuda.so.1"
    source = Path(__file__).with_name("libcuda_stub.c")
    command = [compiler, "-Wall", "-shared", "-fPIC", "-I", str(include), str(source), "-o", str(target), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def library(built: Path, tmp_path: Path) -> ctypes.CDLL:
    """The stand-in, with a log of its own."""
    copy = tmp_path / "libcuda.so.1"
    shutil.copy(built, copy)
    found = ctypes.CDLL(str(copy))
    found.stub_log.restype = ctypes.c_char_p
    return found


def log(library: Any) -> list[str]:
    return [line.strip() for line in library.stub_log().decode().splitlines()]


def test_a_model_runs_through_the_library(library: ctypes.CDLL) -> None:
    gpu = CudaDriver(library)
    assert (gpu.name, gpu.architecture) == ("Stub 40", "sm_90")
    run = CudaExecutor(plan_of_two(), {"w": WEIGHT}, lambda: gpu)
    for seed in range(3):
        x = rows(3, seed)
        np.testing.assert_allclose(run([x])[0], two(x), rtol=1e-5)
    lines = log(library)
    add = "LaunchKernelEx add grid 1 1 1 block 128 1 1 shared 0 cluster 1 policy 0 extra 0"
    softmax = "LaunchKernelEx softmax grid 3 1 1 block 128 1 1 shared 16 cluster 1 policy 0 extra 0"
    first = lines.index(add)
    assert lines[first : first + 2] == [add, softmax]
    begin = lines.index("StreamBeginCapture 2")
    assert lines[begin - 1 : begin + 9] == [
        # Non-blocking: recording does not disturb the default stream.
        "StreamCreate 1", "StreamBeginCapture 2", add, softmax, "StreamEndCapture", "StreamDestroy",
        "GraphInstantiateWithFlags 0", "GraphDestroy 1", "GraphLaunch", "MemcpyDtoHAsync 1152",
    ]  # fmt: skip
    assert lines.count("GraphLaunch") == 2 and lines.count(add) == 2
    assert not any(line.startswith("FuncSetAttribute") for line in lines)
    del run
    gc.collect()
    lines = log(library)
    assert lines.count("ModuleUnload 1") == 2 and lines.count("GraphExecDestroy 1") == 1
    assert sum(line.startswith("MemAlloc") for line in lines) == lines.count("MemFree") == 2


def test_shared_memory_and_clusters_are_asked_for(library: ctypes.CDLL) -> None:
    gpu = CudaDriver(library)
    handle = gpu.load(b"\x7fELF", "k")
    wide = gpu.function(handle, "wide", 160_000, 16)
    gpu.launch(wide, (5, 6, 7), 256, 160_000, 16, [(1, 8), (2, 4)], gpu.stream())
    lines = log(library)
    assert "FuncSetAttribute wide 8 160000" in lines and "FuncSetAttribute wide 14 1" in lines
    # The cluster's blocks stand in the first dimension; policy 1 spreads them.
    launched = "LaunchKernelEx wide grid 80 6 7 block 256 1 1 shared 160000 cluster 16 policy 1 extra 0"
    assert launched in lines
    gpu.function(handle, "narrow", 48 << 10, 8)
    assert not any("narrow 8" in line or "narrow 14" in line for line in log(library))


def test_arguments_are_packed_as_wide_as_they_are(library: ctypes.CDLL) -> None:
    gpu = CudaDriver(library)
    x, y, o = (gpu.allocate(4 * 100) for _ in range(3))
    values = np.arange(100, dtype=np.float32)
    stream = gpu.stream()
    for target in (x, y):
        gpu.upload(target, values.ctypes.data, 400, stream)
    add = gpu.function(gpu.load(b"\x7fELF", "add"), "add", 0, 1)
    gpu.fill(o, 0, 400, stream)
    gpu.launch(add, (1, 1, 1), 128, 0, 1, [(x, 8), (y, 8), (o, 8), (60, 4), (0, 8), (0, 8)], stream)
    found = np.empty(100, np.float32)
    gpu.download(found.ctypes.data, o, 400, stream)
    gpu.wait(stream)
    assert np.array_equal(found, np.where(values < 60, 2 * values, 0))


def test_time_is_measured_between_events(library: ctypes.CDLL) -> None:
    gpu = CudaDriver(library)
    first, last, stream = gpu.event(), gpu.event(), gpu.stream()
    gpu.mark(first, stream)
    gpu.mark(last, stream)
    assert gpu.milliseconds(first, last) == 2.5
    gpu.forget(first)
    assert log(library)[-3:] == ["EventSynchronize 1", "EventElapsedTime 1 1", "EventDestroy 1"]


# ---- errors ----


@pytest.mark.parametrize(
    ("function", "code", "kind", "what"),
    [
        ("cuInit", 100, UnsupportedError, "no GPU that CUDA can use"),
        ("cuInit", 803, UnsupportedError, "different versions"),
        ("cuInit", 34, UnsupportedError, "stub"),
        ("cuDeviceGet", 101, UnsupportedError, "no GPU of this number"),
        ("cuDevicePrimaryCtxRetain", 46, UnsupportedError, "exclusively"),
        ("cuModuleLoadData", 209, UnsupportedError, "compiled for another GPU"),
        ("cuModuleLoadData", 222, UnsupportedError, "newer compiler"),
        ("cuMemAlloc", 2, UnsupportedError, "1,000 of 5,000 are free"),
        ("cuLaunchKernelEx", 700, InternalError, "start it again"),
        ("cuStreamSynchronize", 719, InternalError, "cuStreamSynchronize says 719"),
        ("cuGraphInstantiateWithFlags", 1, InternalError, "cuGraphInstantiateWithFlags says 1 CUDA_ERROR an error"),
    ],
)
def test_errors_say_what_to_do(
    function: str, code: int, kind: type[GcompError], what: str, library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_FAIL", function)
    monkeypatch.setenv("STUB_CODE", str(code))
    with pytest.raises(kind) as caught:
        run = CudaExecutor(plan_of_two(), {"w": WEIGHT}, lambda: CudaDriver(library))
        for _ in range(2):
            run([rows(2)])
    assert what in str(caught.value) and caught.value.fix


def test_a_kernel_that_the_driver_does_not_take_is_named(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_FAIL", "cuModuleLoadData")
    monkeypatch.setenv("STUB_CODE", "218")
    with pytest.raises(UnsupportedError) as caught:
        CudaDriver(library).load(b"\x7fELF", "add.cubin")
    assert "add.cubin on Stub 40 (sm_90), driver for CUDA 1" in str(caught.value)


def test_an_old_driver_is_refused(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_VERSION", "11040")
    with pytest.raises(UnsupportedError, match="too old") as caught:
        CudaDriver(library)
    assert "CUDA 11.4, and gcomp needs 12.0" in str(caught.value)


def test_a_driver_without_a_function_is_too_old(library: ctypes.CDLL) -> None:
    class Old:
        def __getattr__(self, name: str) -> Any:
            if name == "cuLaunchKernelEx":
                raise AttributeError(name)
            return getattr(library, name)

    gpu = CudaDriver(Old())
    with pytest.raises(UnsupportedError, match="too old") as caught:
        gpu.launch(1, (1, 1, 1), 32, 0, 1, [], gpu.stream())
    assert "cuLaunchKernelEx" in str(caught.value)


def test_another_gpu_is_refused(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_ARCHITECTURE", "80")
    with pytest.raises(UnsupportedError, match="compiled for sm_90, and this GPU is of sm_80"):
        CudaExecutor(plan_of_two(), {"w": WEIGHT}, lambda: CudaDriver(library))([rows(1)])


@pytest.fixture
def unopened(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "LIBRARY", "libcuda-that-is-not-there.so.1")
    driver.cache_clear()
    yield
    driver.cache_clear()


def test_a_machine_without_a_driver_is_told_so(unopened: None) -> None:
    run = CudaExecutor(plan_of_two(), {"w": WEIGHT})
    with pytest.raises(UnsupportedError, match="no NVIDIA driver") as caught:
        run([rows(1)])
    assert "xla:cpu" in str(caught.value)
