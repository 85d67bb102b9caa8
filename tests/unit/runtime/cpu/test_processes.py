"""Models of machine code in processes of their own: with NumPy alone, after a fork, at exit, with many threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gcomp
from gcomp.runtime.model import Model
from gcomp.runtime.plan import Plan
from tests.unit.runtime.cpu.models import WEIGHT, plan_on_threads, plan_with_weight, rows, with_weight


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    return saved(plan_with_weight(), tmp_path)


def saved(plan: Plan, folder: Path) -> Path:
    """An artifact of a plan, whose weights are those of the models beside this file."""
    path = folder / "model.gcomp"
    Model(plan, {"w": WEIGHT} if plan.weights else {}, start=False).save(path)
    return path


def python(script: str, *arguments: object, threads: int = 2) -> str:
    """What a script prints in a process of its own, which ends well."""
    environment = {**os.environ, "GCOMP_THREADS": str(threads)}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert found.returncode == 0, found.stderr
    assert not found.stderr, found.stderr
    return found.stdout


NUMPY_ALONE = """
import sys

class Only:
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        if first not in {"gcomp", "numpy"} and first not in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"{name} is not installed here")

sys.meta_path.insert(0, Only())
import numpy as np
import gcomp

model = gcomp.load(sys.argv[1])
x = np.load(sys.argv[2])
for turn in range(3):
    (y,) = model(x)
np.save(sys.argv[3], y)
others = {"jax", "xdsl", "llvmlite", "onnx", "torch", "rich", "email", "random", "secrets"}
print(sorted({name.partition(".")[0] for name in sys.modules} & others))
"""


def test_a_process_with_numpy_alone_loads_and_calls(artifact: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", rows(5))
    assert python(NUMPY_ALONE, artifact, tmp_path / "x.npy", tmp_path / "y.npy") == "[]\n"
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), with_weight(rows(5)))


def test_a_process_with_numpy_alone_says_what_narrow_types_need(tmp_path: Path) -> None:
    program = "func.func @main(%x: tensor<2xbf16>) -> tensor<2xbf16> {\n return %x : tensor<2xbf16> }"
    gcomp.compile(program, prepare=False).save(tmp_path / "model.gcomp")
    script = NUMPY_ALONE.partition("model = ")[0] + (
        "try:\n    gcomp.load(sys.argv[1])\nexcept gcomp.GcompError as error:\n    print(error)\n"
    )
    assert "pip install ml_dtypes" in python(script, tmp_path / "model.gcomp")


FORKED = """
import os, sys, threading
import numpy as np
import gcomp

model = gcomp.load(sys.argv[1])
x = np.ones((8, 96), np.float32)
model(x)

def right():
    return all(np.array_equal(model(x * i)[0], 2 * x * i) for i in range(5))

stop = False
def work():
    while not stop:
        model(x)

others = [threading.Thread(target=work) for _ in range(2)]
for other in others:
    other.start()
children = []
for _ in range(2):
    child = os.fork()
    if not child:
        grandchild = os.fork()
        if not grandchild:
            os._exit(0 if right() else 1)
        fine = right() and os.waitpid(grandchild, 0)[1] == 0
        os._exit(0 if fine else 1)
    children.append(child)
stop = True
for other in others:
    other.join()
print([os.waitpid(child, 0)[1] for child in children], right())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_processes_that_were_forked_go_on_by_themselves(tmp_path: Path) -> None:
    assert python(FORKED, saved(plan_on_threads(), tmp_path), threads=2) == "[0, 0] True\n"


AT_EXIT = """
import sys, threading
import numpy as np
import gcomp

models = [gcomp.load(sys.argv[1]) for _ in range(3)]
x = np.ones((8, 96), np.float32)

def work():
    while True:
        for model in models:
            model(x)

for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
for model in models:
    print(np.array_equal(model(x)[0], 2 * x))
models.pop()
"""


def test_a_process_ends_while_threads_compute(tmp_path: Path) -> None:
    artifact = saved(plan_on_threads(), tmp_path)
    for _ in range(2):
        assert python(AT_EXIT, artifact, threads=3) == "True\n" * 3


MANY = """
import gc, os, sys, threading
import numpy as np
import gcomp

def threads():
    return len(os.listdir("/proc/self/task"))

x = np.ones((8, 96), np.float32)
for turn in range(10):
    model = gcomp.load(sys.argv[1], threads=4)
    model(x)
    alive = threads()
    model.set_threads(2)
    model(x)
del model
gc.collect()
print(alive, threads())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads as Linux shows them")
def test_threads_end_with_their_model(tmp_path: Path) -> None:
    before, after = map(int, python(MANY, saved(plan_on_threads(), tmp_path)).split())
    assert after <= before - 3  # the model's own; NumPy's stay


SIGNALS = """
import os, signal, sys, threading, time
import numpy as np
import gcomp

seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append(threading.current_thread() is threading.main_thread()))
model = gcomp.load(sys.argv[1])
x = np.ones((8, 96), np.float32)
for turn in range(100):
    model(x)
    os.kill(os.getpid(), signal.SIGUSR1)
print(len(seen) > 0, all(seen))
"""


def test_signals_reach_python(tmp_path: Path) -> None:
    assert python(SIGNALS, saved(plan_on_threads(), tmp_path), threads=4) == "True True\n"
