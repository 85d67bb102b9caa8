"""Hostile ONNX models: importing one ends in a program that verifies, or in one GcompError."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from gcomp.errors import VerificationError
from gcomp.frontends.onnx import import_onnx
from gcomp.testing.mutate import models, run
from tests.support.thinning import examples

DIGITS = Path(__file__).parents[2] / "examples/digits/digits.onnx"
SMALL, LARGE = examples(2000), examples(200)

TEXTS = {
    "branches": """<ir_version: 10, opset_import: ["" : 21]>
        main (float[batch, 3] x, bool c) => (float[batch, 3] y) <float[3] w = {1, 2, 3}> {
          y = If (c) <
            then_branch = t () => (float[batch, 3] a) { a = Add (x, w) },
            else_branch = e () => (float[batch, 3] b) <float[1] v = {2}> { m = Mul (x, v)  b = Relu (m) }>
        }""",
    "loops": """<ir_version: 10, opset_import: ["" : 21]>
        main (float[2, 3] x) => (float[2, 3] y, float[k, 2, 3] s) <bool t = {1}, int64 n = {3}> {
          y, s = Loop (n, t, x) <
            body = b (int64 i, bool go, float[2, 3] a) => (bool stay, float[2, 3] next, float[2, 3] each) {
              stay = Identity (go)  next = Add (a, x)  each = Neg (next) }>
        }""",
    "functions": """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        main (float[batch, 4] x) => (float[batch, 4] y) { h = local.f <alpha = 0.5> (x, x)  y = local.g (h) }
        <domain: "local", opset_import: ["" : 21, "local" : 1]> f <alpha> (a, b) => (c) {
          d = LeakyRelu <alpha: float = @alpha> (a)  c = Add (d, b) }
        <domain: "local", opset_import: ["" : 21, "local" : 1]> g (a) => (c) {
          d = local.f <alpha = 2.0> (a, a)  c = Tanh (d) }""",
    "shapes": """<ir_version: 8, opset_import: ["" : 17]>
        main (float[batch, seq, 8] x) => (float[batch, heads, seq, 4] y, int64[n] z)
        <int64[1] two = {2}, int64[1] four = {4}, int64[2] at = {0, 1}, int64[1] axis = {0},
         float[8] g = {1, 1, 1, 1, 1, 1, 1, 1}> {
          s = Shape (x)  bs = Gather <axis = 0> (s, at)  full = Concat <axis = 0> (bs, two, four)
          l = LayerNormalization <axis = -1> (x, g, g)  r = Reshape (l, full)  y = Transpose <perm = [0, 2, 1, 3]> (r)
          b = Slice (s, axis, two, axis)  z = ReduceProd <keepdims = 1> (b)
        }""",
    "images": """<ir_version: 9, opset_import: ["" : 19]>
        main (float[1, 2, 6, 6] x) => (float[1, 3, 2, 2] y, int64[1, 1, 6, 6] m)
        <float[3, 2, 1, 1] w = {1, 2, 3, 4, 5, 6}, int64[8] p = {0, 0, 1, 1, 0, 0, 1, 1},
         float[4] scales = {1, 1, 0.5, 0.5}> {
          a = Pad <mode = "reflect"> (x, p)  c = Conv <kernel_shape = [1, 1], strides = [2, 2]> (a, w)
          d = AveragePool <kernel_shape = [2, 2], ceil_mode = 1, count_include_pad = 1> (c)
          r = Resize <mode = "linear"> (c, , scales)  e = MaxPool <kernel_shape = [2, 2], strides = [1, 1]> (r)
          s = Softmax <axis = 1> (e)  f = Add (s, d)  y = Clip (f)  m = ArgMax <axis = 1> (x)
        }""",
    "numbers": """<ir_version: 9, opset_import: ["" : 20]>
        main (int32[4, 5] i, float16[5, 3] h) => (float[4, 3] y, int64[4, 2] k)
        <int64[1] two = {2}, int64[1] one = {1}, int64[2] idx = {3, -1}> {
          f = Cast <to = 1> (i)  g = CastLike (h, f)  q = MatMul (f, g)  e = Einsum <equation = "ij,jk->ik"> (f, g)
          w = Where (b, q, e)  b = Greater (q, e)  t, k = TopK <axis = -1> (w, two)  n = Mod (i, i)
          u = Gather <axis = 0> (w, idx)  v = CumSum (w, one)  x = Pow (v, w)  y = Sum (x, v, w)
        }""",
    "recurrent": """<ir_version: 8, opset_import: ["" : 14]>
        main (float[seq, 2, 3] x) => (float[seq, 1, 2, 4] y, float[1, 2, 4] h)
        <float[1] z = {0}, int64[3] a = {1, 16, 3}, int64[3] b = {1, 16, 4}> {
          w = Expand (z, a)  r = Expand (z, b)  y, h, c = LSTM <hidden_size = 4> (x, w, r)
        }""",
}


def samples(folder: Path) -> list[onnx.ModelProto]:
    """Small models with branches, loops, functions, shape arithmetic, images, and data outside of the file."""
    parsed: list[Any] = [onnx.parser.parse_model(text) for text in TEXTS.values()]
    outside = onnx.parser.parse_model(TEXTS["branches"])
    outside.graph.initializer[0].ClearField("float_data")
    outside.graph.initializer[0].data_location = onnx.TensorProto.EXTERNAL
    outside.graph.initializer[0].external_data.add(key="location", value="w.bin")
    (folder / "w.bin").write_bytes(np.arange(3, dtype=np.float32).tobytes())
    return [*parsed, outside]


def lay_traps(folder: Path) -> Path:
    """A model's folder with links, pipes and folders in it, inside a folder with a secret."""
    inside = folder / "model"
    (inside / "folder").mkdir(parents=True)
    secret = folder / "secret.bin"
    secret.write_bytes(bytes(4096))
    (inside / "link.bin").symlink_to(secret)
    os.link(secret, inside / "hard.bin")
    os.mkfifo(inside / "pipe")
    return inside


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return lay_traps(tmp_path)


def test_the_samples_import(folder: Path) -> None:
    for model in [*samples(folder), onnx.load(DIGITS)]:
        import_onnx(model, folder=folder).verify()


def imported(source: Any, folder: Path) -> str:
    """Import a model; what comes of it must be a valid program."""
    program = import_onnx(source, folder=folder)
    try:
        program.verify()
    except VerificationError as error:
        raise AssertionError("what was imported is not valid") from error
    return "imported"


def test_mutated_models_are_imported_or_refused(folder: Path) -> None:
    def use(source: Any) -> str:
        return imported(source, folder)

    small = run(models.cases(samples(folder), SMALL), use)
    large = run(models.cases([onnx.load(DIGITS)], LARGE, seed=1), use)
    for tally in (small, large):
        sys.stdout.write(f"{tally.table()}\n")
        assert not tally.failures, str(tally)
        assert {"imported", "InvalidModelError", "UnsupportedError"} <= tally.by_outcome().keys()
    assert small.cases + large.cases >= SMALL
