"""Files of torch.export: what is read, and that nothing in them runs."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

import gcomp  # noqa: E402
from gcomp.errors import GcompError, InternalError, InvalidModelError, UnsupportedError, UsageError  # noqa: E402

nn: Any = torch.nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("scale", torch.arange(12.0).reshape(4, 3).t()[:, 1])
        self.register_buffer("kept", torch.tensor([1, 2, 3], dtype=torch.int64), persistent=False)

    def forward(self, x: Any) -> Any:
        y = self.linear(x) * self.scale + self.kept + torch.tensor([0.5, 1.0, 2.0])
        rows = x.shape[0]
        return {"y": y, "flat": (y.reshape(3 * rows), torch.cond(y.sum() > 0, lambda y: y + 1, lambda y: -y, (y,)))}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    torch.manual_seed(0)
    net, path = Net().eval(), tmp_path_factory.mktemp("pt2") / "net.pt2"
    shapes = {"x": {0: torch.export.Dim("rows", min=2, max=50)}}
    torch.export.save(torch.export.export(net, (torch.randn(5, 4),), dynamic_shapes=shapes), path)
    return net, path


def test_files_give_what_the_module_gives(saved: tuple[Any, Path]) -> None:
    net, path = saved
    model = gcomp.compile(path)
    for rows in (2, 7):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(model(x), net(x), rtol=1e-5, atol=1e-5)
    with pytest.raises(GcompError, match="outside its range"):
        model(torch.randn(51, 4))


def test_the_command_line_takes_files(saved: tuple[Any, Path], tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from gcomp.cli.app import app

    result = CliRunner().invoke(app, ["compile", str(saved[1]), "-o", str(tmp_path / "net.gcomp")])
    assert result.exit_code == 0, result.output
    x = torch.randn(3, 4)
    torch.testing.assert_close(gcomp.load(tmp_path / "net.gcomp")(x)["y"], saved[0](x)["y"], rtol=1e-5, atol=1e-5)


# ---- hostile files --------------------------------------------------------------------------------------------------

Parts = dict[str, bytes]


def parts_of(path: Path) -> Parts:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(parts: Parts, path: Path, kind: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


class Bomb:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return (Path.touch, (self.mark,))


def changed(parts: Parts, change: Callable[[Any], object]) -> Parts:
    """The parts with the graph's JSON changed."""
    name = next(n for n in parts if n.endswith("models/model.json"))
    document = json.loads(parts[name])
    change(document)
    return {**parts, name: json.dumps(document).encode()}


def nodes(document: Any) -> Any:
    return document["graph_module"]["graph"]["nodes"]


def a_size(document: Any, text: str) -> None:
    values = document["graph_module"]["graph"]["tensor_values"]
    values["x"]["sizes"][0]["as_expr"]["expr_str"] = text


def spec(document: Any, tree: Any) -> None:
    document["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] = json.dumps([1, tree])


def metadata(document: Any) -> None:
    nodes(document)[0]["metadata"]["source_fn_stack"] = "a,torch.hub.load"


def enumerated(mark: Path) -> Any:
    context = json.dumps([{"__enum__": True, "fqn": "antigravity:X", "name": "X"}])
    leaf = {"type": None, "context": None, "children_spec": []}
    return {"type": "builtins.dict", "context": context, "children_spec": [leaf]}


TOUCH = "__import__('pathlib').Path({!r}).touch()"
CHANGES: dict[str, Callable[[Any, Path], object]] = {
    "code for a size": lambda d, mark: a_size(d, TOUCH.format(str(mark))),
    "code within a size": lambda d, mark: a_size(d, f"Add(Integer(1), {TOUCH.format(str(mark))})"),
    "an attribute of a size": lambda d, mark: a_size(d, "Symbol('s1').__class__"),
    "a name for a size": lambda d, mark: a_size(d, "open"),
    "a huge power": lambda d, mark: a_size(d, "Pow(Integer(9), Pow(Integer(9), Integer(8)))"),
    "powers of powers": lambda d, mark: a_size(d, "Pow(" * 9 + "Integer(9)" + ", Integer(8))" * 9),
    "a huge size": lambda d, mark: a_size(d, "Add(" + "Integer(1), " * 5000 + "Integer(1))"),
    "a deep size": lambda d, mark: a_size(d, "-" * 3000 + "1"),
    "a function of torch": lambda d, mark: nodes(d)[0].update(target="torch.hub.load"),
    "a method of torch.ops": lambda d, mark: nodes(d)[0].update(target="torch.ops.load_library"),
    "a namespace of others": lambda d, mark: nodes(d)[0].update(target="torch.ops.mylib.f.default"),
    "no overload": lambda d, mark: nodes(d)[0].update(target="torch.ops.aten.__class__.mro"),
    "a Python function": lambda d, mark: nodes(d)[0].update(target="_operator.call"),
    "an extension": lambda d, mark: nodes(d)[0].update(target="#x:y"),
    "an enumeration": lambda d, mark: spec(d, enumerated(mark)),
    "an unknown tree": lambda d, mark: spec(d, {"type": "x.Y", "context": "1", "children_spec": []}),
    "another tree": lambda d, mark: spec(d, {"type": "builtins.tuple", "context": "null", "children_spec": []}),
    "many symbols": lambda d, mark: d["range_constraints"].update({"u99999999999": {"min_val": 0, "max_val": None}}),
    "no graph": lambda d, mark: d.pop("graph_module"),
    "no nodes": lambda d, mark: nodes(d).clear(),
    "an argument that is nowhere": lambda d, mark: nodes(d)[0]["inputs"][0]["arg"].update(as_tensor={"name": "no"}),
    "another schema": lambda d, mark: d["schema_version"].update(major=99),
    "another type": lambda d, mark: d.update(graph_module=[1, 2]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_hostile_graphs_are_refused_and_nothing_runs(name: str, saved: tuple[Any, Path], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    parts = changed(parts_of(saved[1]), lambda document: CHANGES[name](document, mark))
    with pytest.raises(GcompError) as caught:
        gcomp.import_model(written(parts, tmp_path / "bad.pt2"))
    assert not isinstance(caught.value, InternalError) and caught.value.why
    assert not mark.exists()


def test_metadata_that_names_functions_is_left_out(saved: tuple[Any, Path], tmp_path: Path) -> None:
    program = gcomp.import_model(written(changed(parts_of(saved[1]), metadata), tmp_path / "odd.pt2"))
    assert "linear" in program.text(locations=True)


def pickled(mark: Path) -> bytes:
    buffer = io.BytesIO()
    torch.save(Bomb(mark), buffer)
    return buffer.getvalue()


def test_pickled_parts_are_refused_with_the_way_out(saved: tuple[Any, Path], tmp_path: Path) -> None:
    parts, mark = parts_of(saved[1]), tmp_path / "mark"
    name = next(n for n in parts if n.endswith("model_weights_config.json"))
    config = json.loads(parts[name])
    config["config"]["linear.weight"]["use_pickle"] = True
    hostile = {**parts, name: json.dumps(config).encode()}
    hostile[next(n for n in parts if n.endswith("weights/weight_0"))] = pickled(mark)
    with pytest.raises(UnsupportedError, match=r"pickled[\s\S]*make_model"):
        gcomp.import_model(written(hostile, tmp_path / "weights.pt2"))
    legacy = {**parts, name.replace("model_weights_config.json", "model.pt"): pickle.dumps(Bomb(mark))}
    with pytest.raises(UnsupportedError, match="pickled"):
        gcomp.import_model(written(legacy, tmp_path / "legacy.pt2"))
    old = {"serialized_exported_program.json": b"{}", "serialized_state_dict.pt": pickled(mark)}
    with pytest.raises(UnsupportedError, match=r"torch 2\.7"):
        gcomp.import_model(written(old, tmp_path / "old.pt2"))
    assert not mark.exists()


def test_example_inputs_are_not_unpickled(saved: tuple[Any, Path], tmp_path: Path) -> None:
    parts, mark = parts_of(saved[1]), tmp_path / "mark"
    parts[next(n for n in parts if "sample_inputs" in n)] = pickled(mark)
    gcomp.import_model(written(parts, tmp_path / "examples.pt2"))
    assert not mark.exists()


def test_weights_stay_within_their_bytes(saved: tuple[Any, Path], tmp_path: Path) -> None:
    parts = parts_of(saved[1])
    name = next(n for n in parts if n.endswith("model_weights_config.json"))
    for sizes, strides in (((1 << 40, 4), (0, 0)), ((300, 4), (4, 1)), ((-3, 4), (4, 1))):
        config = json.loads(parts[name])
        meta = config["config"]["linear.weight"]["tensor_meta"]
        meta["sizes"], meta["strides"] = [{"as_int": n} for n in sizes], [{"as_int": n} for n in strides]
        with pytest.raises(InvalidModelError):
            gcomp.import_model(written({**parts, name: json.dumps(config).encode()}, tmp_path / "big.pt2"))


def test_files_that_are_no_archives(saved: tuple[Any, Path], tmp_path: Path) -> None:
    whole = saved[1].read_bytes()
    bad = tmp_path / "bad.pt2"
    for data in (b"", b"PK\x03\x04", whole[: len(whole) // 2], b"\x80\x04K\x01.", whole[:-30] + bytes(30)):
        bad.write_bytes(data)
        with pytest.raises(InvalidModelError, match=r"bad\.pt2"):
            gcomp.import_model(bad)
    with pytest.raises(InvalidModelError, match="compressed"):
        gcomp.import_model(written(parts_of(saved[1]), bad, zipfile.ZIP_DEFLATED))
    with pytest.raises(UsageError, match="cannot read"):
        gcomp.import_model(tmp_path / "none.pt2")
