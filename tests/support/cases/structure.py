"""Control flow, calls, composites, tuples and tokens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.support.cases.case import Case, Rng
from tests.support.cases.values import sample

_IF = """
func.func public @main(%p: tensor<i1>, %a: tensor<3xf32>) -> (tensor<3xf32>, tensor<i32>) {
  %r:2 = "stablehlo.if"(%p) ({
    %c = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.negate %a : tensor<3xf32>
    stablehlo.return %n, %c : tensor<3xf32>, tensor<i32>
  }, {
    %c = stablehlo.constant dense<2> : tensor<i32>
    stablehlo.return %a, %c : tensor<3xf32>, tensor<i32>
  }) : (tensor<i1>) -> (tensor<3xf32>, tensor<i32>)
  return %r#0, %r#1 : tensor<3xf32>, tensor<i32>
}"""

_CASE = """
func.func public @main(%i: tensor<i32>, %a: tensor<2xi8>) -> tensor<2xi8> {
  %r = "stablehlo.case"(%i) ({
    stablehlo.return %a : tensor<2xi8>
  }, {
    %n = stablehlo.negate %a : tensor<2xi8>
    stablehlo.return %n : tensor<2xi8>
  }, {
    %n = stablehlo.not %a : tensor<2xi8>
    stablehlo.return %n : tensor<2xi8>
  }) : (tensor<i32>) -> tensor<2xi8>
  return %r : tensor<2xi8>
}"""

_WHILE = """
func.func public @main(%n: tensor<i32>, %a: tensor<i32>, %b: tensor<i32>) -> (tensor<i32>, tensor<i32>, tensor<i32>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = "stablehlo.while"(%zero, %a, %b) ({
  ^bb0(%i: tensor<i32>, %x: tensor<i32>, %y: tensor<i32>):
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %x: tensor<i32>, %y: tensor<i32>):
    %k = stablehlo.add %i, %one : tensor<i32>
    %z = func.call @step(%x, %y) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    stablehlo.return %k, %y, %z : tensor<i32>, tensor<i32>, tensor<i32>
  }) : (tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>, tensor<i32>)
  return %r#0, %r#1, %r#2 : tensor<i32>, tensor<i32>, tensor<i32>
}
func.func private @step(%x: tensor<i32>, %y: tensor<i32>) -> tensor<i32> {
  %z = stablehlo.add %x, %y : tensor<i32>
  return %z : tensor<i32>
}"""

_COMPOSITE = """
func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {
  %r = stablehlo.composite "my.twice" %a {decomposition = @twice} : (tensor<3xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
func.func private @twice(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = stablehlo.add %x, %x : tensor<3xf32>
  return %y : tensor<3xf32>
}"""

_BARRIER = """
func.func public @main(%a: tensor<3xf32>, %b: tensor<i4>) -> (tensor<3xf32>, tensor<i4>) {
  %r:2 = stablehlo.optimization_barrier %a, %b : tensor<3xf32>, tensor<i4>
  return %r#0, %r#1 : tensor<3xf32>, tensor<i4>
}"""

_TUPLE = """
func.func public @main(%a: tensor<3xf32>, %b: tensor<i32>) -> (tensor<i32>, tensor<3xf32>) {
  %t = stablehlo.tuple %a, %b : tuple<tensor<3xf32>, tensor<i32>>
  %x = stablehlo.get_tuple_element %t[1] : (tuple<tensor<3xf32>, tensor<i32>>) -> tensor<i32>
  %y = stablehlo.get_tuple_element %t[0] : (tuple<tensor<3xf32>, tensor<i32>>) -> tensor<3xf32>
  return %x, %y : tensor<i32>, tensor<3xf32>
}"""

_TOKEN = """
func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %u = stablehlo.after_all %t, %t : !stablehlo.token
  return %a : tensor<3xf32>
}"""

_CONSTANTS = """
func.func public @main() -> (tensor<4xf32>, tensor<0x3xi8>, tensor<2x2xbf16>, tensor<3xi1>, tensor<complex<f32>>) {
  %a = stablehlo.constant dense<[0x7FC00001, 0xFF800000, -0.0, 1.5]> : tensor<4xf32>
  %b = stablehlo.constant dense<> : tensor<0x3xi8>
  %c = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xbf16>
  %d = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
  %e = stablehlo.constant dense<(1.0, -2.0)> : tensor<complex<f32>>
  return %a, %b, %c, %d, %e : tensor<4xf32>, tensor<0x3xi8>, tensor<2x2xbf16>, tensor<3xi1>, tensor<complex<f32>>
}"""


def structure(rng: Rng, full: bool) -> Iterator[Case]:
    """Every branch, indices out of bounds, loops of no and of several iterations."""
    x, bytes_ = sample(rng, "f32", (3,)), sample(rng, "i8", (2,))
    for p in (True, False):
        yield Case("stablehlo.if", str(p), _IF, (np.array(p), x), "bits")
    for i in (-(2**31), -1, 0, 1, 2, 3):
        yield Case("stablehlo.case", str(i), _CASE, (np.array(i, np.int32), bytes_), "bits")
    for n in (-1, 0, 1, 60):
        inputs = tuple(np.array(v, np.int32) for v in (n, 1, 1))
        yield Case("stablehlo.while", str(n), _WHILE, inputs, "bits")
    yield Case("stablehlo.composite", "twice", _COMPOSITE, (x,), "bits")
    yield Case("stablehlo.optimization_barrier", "two", _BARRIER, (x, sample(rng, "i4", ())), "bits")
    yield Case("stablehlo.constant", "many", _CONSTANTS, (), "bits")
    index = np.array(3, np.int32)
    yield Case("stablehlo.tuple", "two", _TUPLE, (x, index), "bits")
    yield Case("stablehlo.get_tuple_element", "two", _TUPLE, (x, index), "bits")
    yield Case("stablehlo.create_token", "one", _TOKEN, (x,), "bits", "does not have create_token")
    yield Case("stablehlo.after_all", "two", _TOKEN, (x,), "bits", "does not have create_token")
