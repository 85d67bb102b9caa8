"""Files of torch.export (.pt2), read so that nothing in them runs.

torch.export.load unpickles what a file says is pickled, evaluates its texts of sizes, and takes whatever attribute of
torch a node names. Here weights are raw bytes, example inputs are not read, and what the graph's JSON says is held
against short lists of names before torch's own deserializer sees it.
"""

from __future__ import annotations

import ast
import json
import re
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, cast

from gcomp.errors import GcompError, InvalidModelError, UnsupportedError, UsageError
from gcomp.frontends.fx import registry
from gcomp.frontends.fx.exported import import_exported
from gcomp.frontends.fx.torch_api import torch
from gcomp.ir.program import Program

Json = dict[str, Any]

_GRAPH_BYTES = 256 << 20
_EXPANDED = 1 << 24
"""How many elements a weight may have that its bytes do not: strides of 0 repeat them."""

_FIX = (
    "compile the module itself: gcomp.compile(module, x), or by `package.module:make_model`, a function that returns it"
)


def import_file(path: Path) -> Program:
    """The program of a file that torch.export.save wrote.

    Raises UnsupportedError where only running code of the file would tell what it is, InvalidModelError where the
    file is not what it says.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return import_exported(_read(_Archive(path, archive)))
    except GcompError:
        raise
    except OSError as error:
        raise UsageError(f"cannot read {path}", why=error.strerror or str(error)) from None
    except Exception as error:  # of zipfile, json, and torch's deserializer, which checks little itself
        reason = str(error).strip().splitlines()
        raise InvalidModelError(
            f"{path} is not a valid exported program",
            why=f"{type(error).__name__}: {reason[-1] if reason else 'no reason given'}"[:500],
            fix="write it again with torch.export.save",
        ) from error


class _Archive:
    """The members of the archive, by their names below its one folder."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path, self._archive = path, archive
        self._members = {info.filename.partition("/")[2] or info.filename: info for info in archive.infolist()}
        self.names = frozenset(self._members)

    def bytes_of(self, name: str, limit: int | None = None) -> bytearray:
        """A member's data, which is stored as it is: nothing grows when it is read."""
        info = self._members.get(name)
        if info is None:
            raise self.invalid(f"it has no part {name}")
        if info.compress_type != zipfile.ZIP_STORED or info.file_size > (limit or self.path.stat().st_size):
            raise self.invalid(f"its part {name} is compressed or too large")
        return bytearray(self._archive.read(info))

    def json_of(self, name: str) -> Json:
        """A member that holds a JSON object."""
        found = json.loads(self.bytes_of(name, _GRAPH_BYTES).decode("utf-8"))
        if not isinstance(found, dict):
            raise self.invalid(f"its part {name} is not an object")
        return cast(Json, found)

    def invalid(self, why: str) -> InvalidModelError:
        """The error for a file that is not what `torch.export.save` writes."""
        return InvalidModelError(
            f"{self.path} is not a valid exported program", why=why, fix="write it again with torch.export.save"
        )

    def refuse(self, what: str, why: str) -> NoReturn:
        """Say that only code would tell."""
        raise UnsupportedError(f"gcomp does not read {what}", where=str(self.path), why=why, fix=_FIX)


def _read(archive: _Archive) -> Any:
    """The exported program, by torch's own deserializer, of what was checked."""
    if "serialized_exported_program.json" in archive.names:
        archive.refuse("files of torch 2.7 and older", "their weights are pickled, and unpickling runs code")
    models = sorted(n for n in archive.names if re.fullmatch(r"models/[^/]+\.json", n))
    if len(models) != 1:
        raise archive.invalid(f"it holds {len(models)} exported programs, and one is expected")
    name = models[0].removeprefix("models/").removesuffix(".json")
    serde, schema = import_module("torch._export.serde.serialize"), import_module("torch._export.serde.schema")
    document = _sanitize(archive, archive.json_of(models[0]))
    weights = _tensors(archive, serde, "weights", name)
    constants = _tensors(archive, serde, "constants", name)
    serialized = serde._dict_to_dataclass(schema.ExportedProgram, document)
    return serde.ExportedProgramDeserializer().deserialize(serialized, weights, constants, None)


# ---- weights --------------------------------------------------------------------------------------------------------


def _tensors(archive: _Archive, serde: Any, kind: str, name: str) -> dict[str, Any]:
    """The tensors of a folder of raw bytes."""
    if f"data/{kind}/{name}.pt" in archive.names:
        archive.refuse(f"its {kind}", "they are pickled, and unpickling runs code")
    payloads = archive.json_of(f"data/{kind}/{name}_{kind}_config.json").get("config", {})
    found: dict[str, Any] = {}
    for key, payload in cast("dict[str, Json]", payloads).items():
        if payload.get("use_pickle", True) or payload.get("tensor_meta") is None:
            archive.refuse(f"{key}, one of its {kind}", "it is pickled, and unpickling runs code")
        found[key] = _tensor(archive, serde, f"data/{kind}/{payload['path_name']}", payload["tensor_meta"])
        if payload.get("is_param"):
            found[key] = torch.nn.Parameter(found[key], requires_grad=False)
    return found


def _tensor(archive: _Archive, serde: Any, name: str, meta: Json) -> Any:
    """A tensor of the bytes of a member: of them all in order, or a view by sizes and strides."""
    dtype = serde._SERIALIZE_TO_TORCH_DTYPE[meta["dtype"]]
    if meta["device"]["type"] != "cpu":
        archive.refuse(f"weights on {meta['device']['type']}", "gcomp compiles for CPUs: export the model there")
    sizes, strides = ([int(n["as_int"]) for n in meta[key]] for key in ("sizes", "strides"))
    data = archive.bytes_of(name)
    storage = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
    count = 1
    for size in sizes:
        count *= size
    if count > storage.numel() + _EXPANDED:
        raise archive.invalid(f"its part {name} has {storage.numel()} elements, and {count} are wanted")
    return storage.as_strided(sizes, strides, int(meta["storage_offset"]["as_int"]))


# ---- the graph ------------------------------------------------------------------------------------------------------

_OPERATORS = re.compile(r"torch\.ops\.(aten|prims)\.(\w+)\.(\w+)", re.ASCII)
_HIGHER_ORDER = re.compile(r"torch\.ops\.higher_order\.(\w+)", re.ASCII)
_OF_NUMBERS = frozenset(
    [f"_operator.{name}" for name in (
        "add", "and_", "eq", "floordiv", "ge", "getitem", "gt", "le", "lt", "mod", "mul", "ne", "neg", "or_", "pos",
        "pow", "sub", "truediv",
    )]
    + [f"torch.sym_{name}" for name in ("float", "int", "ite", "max", "min", "not", "sqrt")]
    + ["math.trunc"]
)  # fmt: skip
"""What a node may call that is no operator of ATen: functions of sizes."""
_METADATA = ("stack_trace", "nn_module_stack")
"""What is kept of a node's metadata; torch looks names up for others."""


def _sanitize(archive: _Archive, document: Json) -> Json:
    """The JSON of a program without what is not needed; refused where it names what is not known to be harmless."""
    graph = document["graph_module"]
    graph["metadata"], graph["treespec_namedtuple_fields"] = {}, {}
    graph["module_call_graph"] = [entry for entry in graph["module_call_graph"] if entry["fqn"] == ""]
    for entry in graph["module_call_graph"]:
        for name in ("in_spec", "out_spec"):
            entry["signature"][name] = _plain_structure(archive, entry["signature"][name])
    document |= {"guards_code": [], "verifiers": ["TRAINING"]}
    if odd := [name for name in document["range_constraints"] if not _SYMBOL.fullmatch(name)]:
        archive.refuse(f"the symbol {odd[0][:100]!r}", "torch does not name symbols like this")
    for node in _objects(document):
        if "expr_str" in node:
            _check_expression(archive, node["expr_str"])
        for name in ("target", "as_operator"):
            if name in node:
                _check_target(archive, node[name])
        if node.get("custom_obj_values") or "as_custom_obj" in node or "custom_obj" in node:
            archive.refuse("objects of its own classes", "they are pickled, and unpickling runs code")
        if isinstance(node.get("metadata"), dict):
            node["metadata"] = {key: str(node["metadata"][key]) for key in _METADATA if key in node["metadata"]}
    return document


def _objects(value: Any) -> Iterator[Json]:
    """Every object in a JSON value."""
    pending = [value]
    while pending:
        found = pending.pop()
        if isinstance(found, dict):
            yield cast(Json, found)
            pending.extend(cast(Json, found).values())
        elif isinstance(found, list):
            pending.extend(cast("list[Any]", found))


def _check_target(archive: _Archive, target: Any) -> None:
    """Refuse what a node calls unless it is an operator of ATen, a graph's, or a function of sizes."""
    text = str(target)
    if text in _OF_NUMBERS:
        return
    if found := _HIGHER_ORDER.fullmatch(text):
        if registry.is_known(f"higher_order::{found[1]}"):
            return
    elif found := _OPERATORS.fullmatch(text):
        namespace, packet, overload = found.groups()
        operator = getattr(getattr(getattr(torch.ops, namespace), packet, None), overload, None)
        if isinstance(operator, torch._ops.OpOverload) and packet != "from_file":
            return
    archive.refuse(f"the call of {text[:100]!r}", "it is no operator of ATen, and calling others may run any code")


_SIZES = frozenset((
    "Add", "Mul", "Pow", "PowByNatural", "FloorDiv", "CleanDiv", "CeilDiv", "Mod", "PythonMod", "Max", "Min", "Integer",
    "Symbol", "Eq", "Equality", "Ne", "Unequality", "Le", "LessThan", "Lt", "StrictLessThan", "Ge", "GreaterThan", "Gt",
    "StrictGreaterThan", "And", "Or", "Not", "IntTrueDiv", "FloatTrueDiv", "ToFloat", "TruncToInt", "CeilToInt",
    "FloorToInt", "RoundToInt", "Float", "Rational", "Where", "Identity",
))  # fmt: skip
"""The functions that texts of sizes are made of."""
_SYMBOL = re.compile(r"[a-z_]+[0-9]{1,5}", re.ASCII)
_GREATEST_POWER, _LONGEST = 8, 10_000


def _check_expression(archive: _Archive, text: Any) -> None:
    """Refuse a size whose text is more than functions of symbols and numbers: sympy evaluates it as Python."""
    pending: list[Any] = [ast.parse(str(text), mode="eval").body] if len(str(text)) <= _LONGEST else [None]
    while pending:
        match pending.pop():
            case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str(name))], keywords=words) if (
                _SYMBOL.fullmatch(name) and all(isinstance(word.value, ast.Constant) for word in words)
            ):
                pass
            case ast.Call(func=ast.Name(id="Pow" | "PowByNatural"), args=[base, power], keywords=[]) if _small(power):
                # A power of a power would grow as fast as it is short.
                pending.append(None if "'Pow" in ast.dump(base) else base)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _SIZES and "Pow" not in name:
                pending.extend(args)
            case ast.Constant(value=int() | float() as number) if abs(number) < 2**63:
                pass
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                pending.append(operand)
            case _:
                why = "it is no arithmetic of symbols, and evaluating others may run any code"
                archive.refuse(f"the size {str(text)[:100]!r}", why)


def _small(exponent: ast.expr) -> bool:
    """Whether an exponent is a small number: others let sizes grow without limit."""
    match exponent:
        case ast.Call(func=ast.Name(id="Integer"), args=[inner], keywords=[]):
            return _small(inner)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _small(operand)
        case ast.Constant(value=int(number)):
            return number <= _GREATEST_POWER
        case _:
            return False


def _plain_structure(archive: _Archive, text: Any) -> str:
    """A pytree's text of tuples, lists and dicts only; classes with named fields become dicts of those."""
    protocol, tree = json.loads(str(text))
    if protocol != 1:
        archive.refuse("its inputs and outputs", f"they are structured by protocol {protocol}")
    return json.dumps([1, _plain(archive, tree)])


def _plain(archive: _Archive, tree: Json) -> Json:
    kind, children = tree["type"], [_plain(archive, child) for child in tree["children_spec"]]
    if kind is None:
        return {"type": None, "context": None, "children_spec": []}
    context = json.loads(tree["context"]) if isinstance(tree["context"], str) else None
    if kind in ("builtins.tuple", "builtins.list"):
        return {"type": kind, "context": "null", "children_spec": children}
    if isinstance(context, list) and len(cast("list[Any]", context)) == len(children):
        keys = cast("list[Any]", context)
        if all(type(key) in (str, int) for key in keys):
            return {"type": "builtins.dict", "context": json.dumps(keys), "children_spec": children}
    archive.refuse(f"a {str(kind)[:100]} among its inputs or outputs", "only its own class knows how to make one")


__all__ = ["import_file"]
