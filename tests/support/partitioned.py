"""XLA's own partitioner on virtual devices: what a program with shardings computes there, and what it sends.

    python -m tests.support.partitioned FILE.mlir OUT.npz [IN.npz]

runs in a process of its own, as devices are counted when XLA starts. The result has the outputs, and how many
collectives of each kind the partitioned text has.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.types import tensor_of

DEVICES = 8
KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
Array = np.ndarray[Any, Any]


def run_partitioned(program: Program, inputs: Sequence[Array], folder: Path) -> tuple[list[Array], Counter[str]]:
    """The outputs of a program on virtual devices, and the collectives that XLA's partitioner makes of it."""
    text, given, out = folder / "program.mlir", folder / "in.npz", folder / "out.npz"
    text.write_text(program.text(), "utf-8")
    np.savez(given, *inputs)
    command = [sys.executable, "-m", "tests.support.partitioned", str(text), str(out), str(given)]
    flags = f"--xla_force_host_platform_device_count={DEVICES}"
    done = subprocess.run(command, env=os.environ | {"XLA_FLAGS": flags}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(out) as found:
        counts = Counter({kind: int(found[kind]) for kind in KINDS})
        return [found[f"out{i}"] for i in range(len(found.files) - len(KINDS))], counts


def with_weights_as_inputs(program: Program) -> list[Array]:
    """Make an input of each weight of a program, after the others; what they are."""
    arrays: list[Array] = []
    for op in [op for op in program.block.ops if isinstance(op, WeightOp)]:
        arrays.append(np.asarray(program.weights[op.symbol]))
        op.result.replace_all_uses_with(program.add_input(f"weight {len(arrays)}", tensor_of(op.result)))
        op.detach()
        op.erase()
    return arrays


def _main(text: Path, out: Path, given: Path) -> None:
    import jax
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import _jax  # pyright: ignore[reportPrivateUsage]
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    from jaxlib.mlir import ir

    from gcomp.ir import sdy
    from gcomp.sharding import piece_of

    jax.config.update("jax_enable_x64", True)
    jax.numpy.linalg.cholesky(jax.numpy.eye(2))  # loads the factorizations that programs call
    program = Program.parse(text.read_text("utf-8"))
    meshes = sdy.meshes_of(program.module)
    ((_, mesh),) = meshes.items()
    devices = jax.devices()[: mesh.size]
    options = compiler.get_compile_options(1, mesh.size, device_assignment=np.arange(mesh.size).reshape(1, -1))
    options.executable_build_options.use_spmd_partitioning = True
    options.executable_build_options.use_shardy_partitioner = True
    with mlir.make_ir_context():
        module = ir.Module.parse(text.read_text("utf-8"))
        run = devices[0].client.compile_and_load(module, _jax.DeviceList(tuple(devices)), options)
    placed = Mesh(np.asarray(devices).reshape([a.size for a in mesh.axes]), mesh.names)
    arrays: list[Any] = []
    with np.load(given) as inputs:
        for i, said in enumerate(sdy.argument_shardings(program.main)):
            axes = [tuple(a.name for a in d.axes) or None for d in said.dimensions] if said is not None else []
            arrays.append(jax.device_put(inputs[f"arr_{i}"], NamedSharding(placed, PartitionSpec(*axes))))
    results = run.execute_sharded(arrays).disassemble_into_single_device_arrays()
    found: dict[str, Any] = {}
    for i, (port, said, parts) in enumerate(
        zip(program.outputs(), sdy.result_shardings(program.main), results, strict=True)
    ):
        shape = tuple(int(str(s)) for s in port.shape)
        whole = np.empty(shape, np.asarray(parts[0]).dtype)
        for device, part in enumerate(parts):
            at = tuple(slice(None) for _ in shape) if said is None else piece_of(shape, said, mesh, device)
            whole[at] = np.asarray(part)
        found[f"out{i}"] = whole
    partitioned = run.hlo_modules()[0].to_string()
    counts = {kind: len(re.findall(rf"\s{kind}(?:-start)?\(", partitioned)) for kind in KINDS}
    np.savez(out, **found, **counts)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
