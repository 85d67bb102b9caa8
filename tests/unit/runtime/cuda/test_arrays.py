"""Arrays of other libraries in, and results of the same kind out."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import torch

from gcomp.errors import InputError
from gcomp.runtime.cuda import arrays, device_array
from gcomp.runtime.cuda.arrays import Kind, room
from gcomp.runtime.cuda.device_array import DeviceArray, foreign
from gcomp.runtime.cuda.executor import CudaExecutor
from gcomp.runtime.model import Model
from tests.unit.runtime.cuda.models import WEIGHT, plan_in_place, plan_of_two, recorder, rows, two
from tests.unit.runtime.cuda.recorder import Recorder, at, softmax


@pytest.fixture
def gpu() -> Recorder:
    return recorder()


@pytest.fixture
def run(gpu: Recorder) -> CudaExecutor:
    return CudaExecutor(plan_of_two(), {"w": WEIGHT}, lambda: gpu)


def placed(gpu: Recorder, array: np.ndarray[Any, Any]) -> DeviceArray:
    found = DeviceArray.empty(gpu, array.shape, array.dtype)
    at(found.address, array.nbytes, np.uint8)[:] = array.reshape(-1).view(np.uint8)
    return found


class Other:
    """An array of some other library."""

    def __init__(self, **interface: Any) -> None:
        self.__cuda_array_interface__ = {"version": 3, **interface}


def test_results_lie_in_the_memory_of_donated_arrays(gpu: Recorder) -> None:
    run, wanted = CudaExecutor(plan_in_place(), {}, lambda: gpu), softmax(rows(3) + rows(3, 1))
    x, y = placed(gpu, rows(3)), placed(gpu, rows(3, 1))
    (found,) = run([x, y])
    assert isinstance(found, DeviceArray) and found.address == x.address
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5)
    assert np.array_equal(np.asarray(y), rows(3, 1))
    held = gpu.memory_held()
    del x
    gc.collect()
    assert gpu.memory_held() == held  # the result keeps it
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5)
    del found
    gc.collect()
    assert gpu.memory_held() == held - 1152


def test_donated_arrays_of_the_host_are_never_written_to(gpu: Recorder) -> None:
    run, wanted = CudaExecutor(plan_in_place(), {}, lambda: gpu), softmax(rows(3) + rows(3, 1))
    for convert in (np.array, torch.tensor):
        x = convert(rows(3))
        np.testing.assert_allclose(run([x, convert(rows(3, 1))])[0], wanted, rtol=1e-5)
        assert np.array_equal(x, rows(3))
    x = rows(3)
    (found,) = run([x, placed(gpu, rows(3, 1))])  # the result is on the GPU, where the donated array is not
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5)
    assert np.array_equal(x, rows(3))


def test_donated_arrays_share_no_memory_and_may_be_written_to(gpu: Recorder) -> None:
    run, x = CudaExecutor(plan_in_place(), {}, lambda: gpu), placed(gpu, rows(4))
    part = Other(shape=(3, 96), typestr="<f4", data=(x.address + 384, False))
    first = Other(shape=(3, 96), typestr="<f4", data=(x.address, False))
    for other in (part, first):
        with pytest.raises(InputError, match="memory in which 'x1' lies, too"):
            run([first, other])
    with pytest.raises(InputError, match="a read-only array"):
        run([Other(shape=(3, 96), typestr="<f4", data=(x.address, True)), placed(gpu, rows(3))])
    assert np.array_equal(np.asarray(x), rows(4))


def test_arrays_on_the_gpu_stay_there(run: CudaExecutor, gpu: Recorder) -> None:
    x = placed(gpu, rows(3))
    run.prepare({"n": 3})
    gpu.log.clear()
    (y,) = run([x])
    assert isinstance(y, DeviceArray) and gpu.count("upload") == gpu.count("download") == gpu.count("copy") == 0
    np.testing.assert_allclose(np.asarray(y), two(rows(3)), rtol=1e-5)
    other = Other(shape=(3, 96), typestr="<f4", data=(x.address, True), strides=None, stream=None)
    np.testing.assert_allclose(np.asarray(run([other])[0]), two(rows(3)), rtol=1e-5)


@pytest.mark.parametrize(("stream", "waits"), [(None, 0), (1, 0), (2, 1), (77, 1)])
def test_streams_of_other_libraries_are_waited_for(
    stream: int | None, waits: int, run: CudaExecutor, gpu: Recorder
) -> None:
    x = placed(gpu, rows(3))
    run([x])
    gpu.log.clear()
    run([Other(shape=(3, 96), typestr="<f4", data=(x.address, True), stream=stream)])
    assert gpu.count("wait") == 1 + waits
    assert not waits or gpu.log[0] == ("wait", stream)


def test_results_on_the_gpu_go_with_their_owner(run: CudaExecutor, gpu: Recorder) -> None:
    x = placed(gpu, rows(3))
    (y,) = run([x])
    (z,) = run([y])
    np.testing.assert_allclose(np.asarray(z), two(two(rows(3))), rtol=1e-5)
    held = gpu.memory_held()
    del y, z
    gc.collect()
    assert gpu.memory_held() == held - 2 * 1152


@pytest.mark.parametrize(
    ("interface", "what"),
    [
        ({"typestr": "<f8"}, "dtype float64"),
        ({"strides": (8, 4)}, "strides"),
        ({"shape": (3, 90)}, "expected 96, got 90"),
    ],
)
def test_other_arrays_on_the_gpu_are_refused(
    interface: dict[str, Any], what: str, run: CudaExecutor, gpu: Recorder
) -> None:
    value = Other(**{"shape": (3, 96), "typestr": "<f4", "data": (gpu.allocate(1152), False), **interface})
    with pytest.raises(InputError) as caught:
        run([value])
    assert what in str(caught.value)


def test_strides_of_a_contiguous_array_are_no_strides(run: CudaExecutor, gpu: Recorder) -> None:
    x = placed(gpu, rows(3))
    value = Other(shape=(3, 96), typestr="<f4", data=(x.address, False), strides=(384, 4))
    np.testing.assert_allclose(np.asarray(run([value])[0]), two(rows(3)), rtol=1e-5)


@pytest.fixture
def by_dlpack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let libraries of the host take what the recorder holds: its memory is the host's."""
    monkeypatch.setattr(device_array, "CUDA", 1)


def test_arrays_go_by_dlpack(by_dlpack: None, gpu: Recorder) -> None:
    x = placed(gpu, rows(3))
    for take in (np.from_dlpack, torch.from_dlpack):
        taken = take(x)
        assert np.array_equal(np.asarray(taken), rows(3))
        assert len(device_array._held) == 1
        del taken
        gc.collect()
        assert not device_array._held
    capsule = x.__dlpack__()
    del capsule
    assert not device_array._held
    assert x.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int64", "bool", "complex64", "uint8"])
def test_arrays_come_by_dlpack(by_dlpack: None, name: str) -> None:
    class Only:
        """What has nothing but DLPack."""

        def __dlpack__(self, stream: int) -> Any:
            assert stream == 1
            return tensor.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    tensor = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
    found = foreign(Only())
    assert found is not None and found.dtype is not None
    assert (found.shape, found.address, found.contiguous) == ((2, 3), tensor.data_ptr(), True)
    assert found.dtype.name == name
    whole, tensor = tensor, tensor.T
    found = foreign(Only())
    assert found is not None and not found.contiguous
    tensor = whole[1:]
    found = foreign(Only())
    assert found is not None and found.address == tensor.data_ptr()


def test_tensors_give_tensors(run: CudaExecutor) -> None:
    x = rows(3)
    (y,) = run([torch.from_numpy(x)])
    assert isinstance(y, torch.Tensor)
    np.testing.assert_allclose(y.numpy(), two(x), rtol=1e-5)
    (y,) = run([torch.from_numpy(rows(6))[::2].requires_grad_()])
    np.testing.assert_allclose(y.numpy(), two(rows(6)[::2]), rtol=1e-5)


def test_jax_arrays_give_numpy_arrays(run: CudaExecutor) -> None:
    import jax
    import jax.numpy as jnp

    x = jnp.asarray(rows(3))
    (y,) = run([x])
    assert isinstance(y, np.ndarray)
    np.testing.assert_allclose(y, two(rows(3)), rtol=1e-5)
    with pytest.raises(InputError, match="got dtype bfloat16") as caught:
        run([x.astype(jnp.bfloat16)])
    assert "astype" in str(caught.value)
    with pytest.raises(InputError):
        jax.jit(lambda x: run([x]))(x)


def test_tensors_of_types_that_numpy_lacks_are_read_in_place(gpu: Recorder) -> None:
    held = room(gpu, Kind.TORCH, (2, 3), device_array.DTYPES["bf16"])
    assert isinstance(held.where, np.ndarray) and held.owner.dtype is torch.bfloat16
    held.where[...] = 1.5
    assert (held.owner == 1.5).all() and held.nbytes == 12


@pytest.mark.parametrize(
    ("tensor", "what"),
    [
        (torch.zeros(3, 96, dtype=torch.float64), "dtype torch.float64"),
        (torch.zeros(3, 96, device="meta"), "another device"),
        (torch.zeros(3, 96).to_sparse(), "layout torch.sparse"),
    ],
)
def test_other_tensors_are_refused(tensor: torch.Tensor, what: str, run: CudaExecutor) -> None:
    with pytest.raises(InputError) as caught:
        run([tensor])
    assert what in str(caught.value)


def test_tensors_on_the_gpu_are_bound(run: CudaExecutor, gpu: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU in torch: what stands for its tensors says that it is there."""
    stream, x = gpu.stream(), placed(gpu, rows(3))

    class Device:
        type, index = "cuda", 0

    class Fake(torch.Tensor):
        device = Device()  # type: ignore[assignment]

        def detach(self) -> Any:
            return self

        resolve_conj = resolve_neg = contiguous = detach

        def data_ptr(self) -> int:
            return x.address

    made: list[DeviceArray] = []

    def empty(shape: Any, dtype: Any, device: str) -> Any:
        assert device == "cuda:0"
        made.append(DeviceArray.empty(gpu, shape, np.dtype(np.float32)))
        return type("T", (), {"data_ptr": lambda self: made[-1].address})()

    monkeypatch.setattr(torch, "empty", empty)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: type("S", (), {"cuda_stream": stream})())
    run.prepare({"n": 3})
    gpu.log.clear()
    (y,) = run([torch.zeros(3, 96).as_subclass(Fake)])
    np.testing.assert_allclose(at(made[0].address, 288).reshape(3, 96), two(rows(3)), rtol=1e-5)
    assert y.data_ptr() == made[0].address
    assert all(entry[-1] == stream for entry in gpu.log if entry[0] in ("launch", "follow"))
    assert gpu.count("wait") == gpu.count("copy") == gpu.count("upload") == 0


def test_a_model_takes_them(gpu: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gcomp.runtime.cuda.executor.driver", lambda: gpu)
    model = Model(plan_of_two(), {"w": WEIGHT})
    assert isinstance(model(placed(gpu, rows(2)))[0], DeviceArray)
    assert isinstance(model(rows(2))[0], np.ndarray)
    other = model.instance()
    np.testing.assert_allclose(other(rows(2))[0], two(rows(2)), rtol=1e-5)
    assert other.memory(n=2) == model.memory(n=2) and gpu.count("load") == 2
    assert arrays.Kind.NUMPY < arrays.Kind.TORCH < arrays.Kind.DEVICE < arrays.Kind.TORCH_DEVICE
