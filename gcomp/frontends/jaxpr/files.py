"""Exports of JAX: what `jax.export` made, as objects and as files of their serialized form.

Nothing in such a file is pickled: it is a flatbuffer of types and trees around StableHLO in MLIR's bytecode. The
native reader of bytecode is not proof against damaged files, so that it runs in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from gcomp.errors import GcompError, InvalidModelError, UnsupportedError, UsageError
from gcomp.frontends.jaxpr.avals import generator_of, type_of
from gcomp.frontends.jaxpr.jax_api import jax, tree_util
from gcomp.frontends.jaxpr.tracing import names_of, structure_of
from gcomp.ir.program import Program
from gcomp.ir.sdy import SHARDING

_SECONDS = 300
_CHILD = "from gcomp.frontends.jaxpr.files import answer; answer()"


def import_file(path: Path) -> Program:
    """The program of a file that holds `jax.export.export(...)(...).serialize()`.

    Raises InvalidModelError for damaged files, UnsupportedError for exports that gcomp does not compile.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}", why=error.strerror or str(error)) from None
    try:
        done = subprocess.run([sys.executable, "-c", _CHILD], input=data, capture_output=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise InvalidModelError(
            f"{path} is not a valid export of JAX", why=f"reading it takes more than {_SECONDS} s"
        ) from None
    if done.returncode:
        raise InvalidModelError(
            f"{path} is not a valid export of JAX",
            why=f"its reader ended with status {done.returncode}",
            fix="write it again: jax.export.export(jax.jit(f))(x).serialize()",
        )
    found = json.loads(done.stdout)
    if "refused" in found:
        raise UnsupportedError(found["refused"], where=str(path), why=found["why"], fix=found["fix"])
    if "invalid" in found:
        raise InvalidModelError(f"{path} is not a valid export of JAX", why=found["invalid"])
    return _program(found, str(path))


def import_exported(exported: Any) -> Program:
    """The program of a `jax.export.Exported`. Raises UnsupportedError."""
    return _program(_describe(exported), "<export>")


def answer() -> None:
    """In the child: what the export on standard input is, as JSON on standard output."""
    found: dict[str, Any]
    try:
        found = _describe(jax.export.deserialize(bytearray(sys.stdin.buffer.read())))
    except GcompError as error:
        found = {"refused": error.what, "why": error.why, "fix": error.fix}
    except Exception as error:  # JAX checks little of what it reads
        reason = str(error).strip().splitlines()
        found = {"invalid": f"{type(error).__name__}: {reason[0] if reason else 'no reason given'}"[:500]}
    sys.stdout.write(json.dumps(found))


def _program(found: dict[str, Any], name: str) -> Program:
    program = Program.parse(found["text"], name)
    program.argument_structure, program.result_structure = found["arguments"], found["results"]
    return program


def _describe(exported: Any) -> dict[str, Any]:
    """An export as StableHLO text whose `main` has all inputs and their names, and the trees around it."""
    _check(exported)
    return {
        "text": _text(exported),
        "arguments": structure_of(exported.in_tree),
        "results": structure_of(exported.out_tree),
    }


def _check(exported: Any) -> None:
    """Refuse exports for other machines, with effects, or with symbolic sizes."""
    if tuple(exported.platforms) != ("cpu",):
        raise UnsupportedError(
            f"the export is for {', '.join(exported.platforms)}",
            why="gcomp compiles for CPUs",
            fix="export with jax.export.export(jax.jit(f), platforms=['cpu'])",
        )
    if exported.ordered_effects or exported.unordered_effects:
        raise UnsupportedError("the export has effects", why="compiled programs have none", fix="export without them")
    if any(not isinstance(size, int) for aval in exported.in_avals for size in aval.shape):
        raise UnsupportedError(
            "the export has symbolic sizes",
            why="its StableHLO computes them at run time from the inputs; gcomp's programs have them in their types",
            fix="compile the function itself, on jax.ShapeDtypeStructs with the same symbols; or export fixed sizes",
        )


def _text(exported: Any) -> str:
    """The exported function as text, and a `main` around it that has the inputs which the function left out, too."""
    mlir, ir = import_module("jax._src.interpreters.mlir"), import_module("jaxlib.mlir.ir")
    with mlir.make_ir_context(), ir.Location.unknown():
        module = ir.Module.parse(exported.mlir_module())
        (main,) = (f for f in module.body.operations if ir.StringAttr(f.attributes["sym_name"]).value == "main")
        main.attributes["sym_name"] = ir.StringAttr.get("exported")
        main.attributes["sym_visibility"] = ir.StringAttr.get("private")
        _drop_placeholders(module.operation)
        given = dict(zip(exported.module_kept_var_idx, _placed(main, "arg_attrs"), strict=True))
        taken = _placed(main, "res_attrs")
        # Locations stand in their places: aliases of one function would be unknown in the others.
        asm = {"enable_debug_info": True, "use_local_scope": True}
        functions = [function.operation.get_asm(**asm) for function in module.body.operations]
        kept = dict(zip(exported.module_kept_var_idx, map(str, main.type.inputs), strict=True))
        inputs = [kept[i] if i in kept else str(type_of(aval)) for i, aval in enumerate(exported.in_avals)]
        results = [str(result) for result in main.type.results]
    placed = [given.get(i, "") for i in range(len(inputs))], taken
    return "\n".join(["module {", _main(exported, inputs, results, *placed), *functions, "}"])


def _placed(main: Any, attributes: str) -> list[str]:
    """What the function says of where its arguments or results lie, as attributes of theirs."""
    count = len(main.type.inputs if attributes == "arg_attrs" else main.type.results)
    entries: Any = main.attributes[attributes] if attributes in main.attributes else [()] * count
    return [f", {SHARDING} = {entry[SHARDING]}" if SHARDING in entry else "" for entry in entries]


def _drop_placeholders(module: Any) -> None:
    """Take out the shardings on the mesh without axes that JAX gives to keys."""
    for op in list(_ops_of(module)):
        if op.name == "sdy.sharding_constraint" and "@empty_mesh" in str(op.attributes["sharding"]):
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
    for op in list(_ops_of(module)):
        if op.name == "sdy.mesh" and op.attributes["sym_name"].value == "empty_mesh":
            op.erase()


def _ops_of(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from _ops_of(inner.operation)


def _main(
    exported: Any, inputs: Sequence[str], results: Sequence[str], given: Sequence[str], taken: Sequence[str]
) -> str:
    """Build `main` with all inputs, which calls @exported with those that JAX kept."""
    ports = _ports(exported.in_tree, "x", inputs, 1, exported.in_avals, given)
    arguments = ", ".join(f"%a{i}: {port}" for i, port in enumerate(ports))
    outputs = ", ".join(_ports(exported.out_tree, "r", results, 0, exported.out_avals, taken))
    types = ", ".join(results)
    kept: Sequence[int] = exported.module_kept_var_idx
    given, taken = ", ".join(f"%a{i}" for i in kept), ", ".join(inputs[i] for i in kept)
    values = ", ".join(f"%r{i}" for i in range(len(results)))
    return f"""func.func public @main({arguments}) -> ({outputs}) {{
  {values}{" = " if values else ""}func.call @exported({given}) : ({taken}) -> ({types})
  func.return {values}{" : " if values else ""}{types}
}}"""


def _ports(
    tree: Any, default: str, types: Sequence[str], skipped: int, avals: Sequence[Any], placed: Sequence[str]
) -> list[str]:
    """Types with the names of the leaves of a tree, whose outermost containers have none, their keys and places."""
    leaves, _ = tree_util.tree_flatten_with_path(tree_util.tree_unflatten(tree, range(tree.num_leaves)))
    names = names_of([path[skipped:] for path, _ in leaves], default)
    keys = ["" if (key := generator_of(aval)) is None else f', gcomp.key = "{key}"' for aval in avals]
    notes = zip(names, keys, placed, strict=True)
    return [f'{t} {{gcomp.name = "{name}"{key}{place}}}' for t, (name, key, place) in zip(types, notes, strict=True)]


__all__ = ["import_exported", "import_file"]
