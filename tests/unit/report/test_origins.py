"""Where ops come from, as pages say it: names, modules and lines of all frontends."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, UnknownLoc

from gcomp.frontends.onnx.model.modules import node_modules
from gcomp.ir.locations import fuse, named_location
from gcomp.report.origins import Origin, Origins, common_scope

LINE = FileLineColLoc(StringAttr("model.py"), IntAttr(7), IntAttr(1))


def test_torch_modules_are_scopes_and_so_are_they_within_opened_composites() -> None:
    origins = Origins({})
    dot = named_location("layers.3.linear", named_location("linear", LINE))
    norm = named_location("gcomp.layer_norm", named_location("layers.3.norm", named_location("layer_norm", LINE)))
    (one,), (other,) = origins.of(dot), origins.of(norm)
    assert origins.all[one].scope == ("layers", "3", "linear") and origins.all[one].line == "model.py:7"
    assert origins.all[other].scope == ("layers", "3", "norm")
    assert common_scope([origins.all[one], origins.all[other]]) == ("layers", "3")
    assert origins.of(dot) == [one] and origins.of(fuse([norm, dot])) == [other, one] and origins.of(UnknownLoc()) == []


def test_jax_primitives_have_lines_and_no_modules() -> None:
    origins = Origins({})
    (n,) = origins.of(named_location("tanh", LINE))
    assert (origins.all[n].scope, origins.all[n].line) == ((), "model.py:7")


def test_onnx_exporters_say_modules_and_lines_in_metadata_or_names() -> None:
    def node(name: str, **metadata: str) -> onnx.NodeProto:
        made = helper.make_node("Relu", ["x"], [f"y{name}"], name=name)
        for key, value in metadata.items():
            made.metadata_props.add(key=f"pkg.torch.onnx.{key}", value=value)
        return made

    trace = 'File "/a/model.py", line 12, in forward\n  x\n  File "/a/layer.py", line 40, in forward\n  y'
    nodes = [
        node("relu", name_scopes="['', 'net', 'net.layers.1', 'relu']", stack_trace=trace),
        node("/encoder/layer.0/Relu"), node("plain"), node("odd", name_scopes="not a list"), node(""),
    ]  # fmt: skip
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    model = helper.make_model(helper.make_graph(nodes, "g", [value], []))
    found = node_modules(model)
    assert found["relu"] == ("net.layers.1", "/a/layer.py:40")
    assert found["/encoder/layer.0/Relu"] == ("encoder.layer.0", "")
    assert found["plain"] == found["odd"] == found["Relu:y"] == ("", "")
    origins = Origins(found)
    (n,) = origins.of(named_location("relu", named_location("Relu")))
    assert origins.all[n].scope == ("net", "layers", "1") and origins.all[n].line == "/a/layer.py:40"
    assert node_modules("text of a program") == {}


def test_lines_of_source_are_shown_where_the_file_is(tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text("\n".join(f"line {n}" for n in range(1, 6)))
    assert Origin("x", (), f"{file}:2").text.splitlines() == [
        "     1  line 1", ">    2  line 2", "     3  line 3", "     4  line 4",
    ]  # fmt: skip
    assert Origin("x", (), f"{file}:99").text == Origin("x", (), "gone.py:1").text == Origin("x", (), "").text == ""
