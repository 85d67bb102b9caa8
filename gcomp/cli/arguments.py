"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelFile = Annotated[Path, typer.Argument(help="an .onnx or .mlir file, or package.module:factory")]
Dims = Annotated[
    list[str] | None,
    typer.Option("--dim", "-d", metavar="NAME=SIZE", help="a symbolic dimension: batch=8, batch=1..64"),
]
Structures = Annotated[
    list[str] | None,
    typer.Option(
        "--structure",
        metavar="NAME=SPEC",
        help="what an ONNX input holds that is a sequence or an optional: xs=3 (three tensors), 'xs=[2,3],[n,?]' "
        "(their shapes: sizes, symbols, and ? for what the model says), x=1 or x=none (an optional)",
    ),
]
Links = Annotated[
    list[Path] | None,
    typer.Option(
        "--allow-links", metavar="DIR", help="read an ONNX model's data behind links that lead into this folder"
    ),
]
Constants = Annotated[
    list[str] | None,
    typer.Option(
        "--constant",
        metavar="NAME=FILE",
        help="fix an ONNX input for good, from an .npy file: a shape or axes, on which sizes of results depend",
    ),
]
PipelineOption = Annotated[
    str | None, typer.Option("--pipeline", "-p", metavar="PASSES", help="passes to run, as in canonicalize,cse")
]
Target = Annotated[
    str, typer.Option("--target", "-t", help="what to compile for: cpu, cpu:aarch64, triton:sm_90, xla:cpu")
]
Load = Annotated[
    list[Path] | None,
    typer.Option(
        "--load", metavar="FILE.py", help="a Python file with passes of yours, which --pipeline may name then"
    ),
]
Fetch = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="outputs to show, or values inside of the model: by name, as %3 in its text, or as model.py:12",
    ),
]
Checks = Annotated[
    str | None,
    typer.Option("--check", metavar="KINDS", help="compile checks in: nan, inf, index (out of range), as in nan,index"),
]
Inputs = Annotated[
    Path | None, typer.Option("--inputs", metavar="FILE.npz", help="inputs by name, as numpy.savez writes them")
]
Coordinator = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="run with other processes: where the first one listens")
]
Processes = Annotated[int, typer.Option(min=1, help="how many processes there are, this one included")]
ProcessId = Annotated[int, typer.Option(min=0, help="which of them this is")]
Wait = Annotated[int, typer.Option("--timeout", min=1, help="seconds to wait for the others")]
Threads = Annotated[int | None, typer.Option(min=1, help="threads to compute with (all processors; GCOMP_THREADS)")]
MeshOption = Annotated[
    str | None, typer.Option("--mesh", metavar="AXIS=N,...", help="compile for a mesh of devices, as in data=2,model=4")
]
Shardings = Annotated[
    list[str] | None,
    typer.Option(
        "--sharding", metavar="NAME=AXES", help="cut an input, output or weight along axes of the mesh, as in x=data,*"
    ),
]
Automatic = Annotated[
    bool, typer.Option("--auto", help="cut the model along --mesh as a search finds to take the least time")
]
Tuned = Annotated[
    Path | None, typer.Option(metavar="FILE.json", help="take the configurations that gcomp tune found the fastest")
]
NoNative = Annotated[
    bool, typer.Option("--no-native", help="refuse an artifact that holds machine code: it does what its maker wanted")
]
TimingOption = Annotated[bool, typer.Option("--timing", help="print a table of the time that each pass takes")]
PrintAfterChangeOption = Annotated[
    bool, typer.Option("--print-ir-after-change", help="print the program after each pass that changes it")
]
