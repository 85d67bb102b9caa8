"""Sample programs that are more than one op: regions, several functions, attributes that mean nothing."""

from __future__ import annotations

MODULES: dict[str, str] = {
    "stablehlo.if": """
func.func @main(%p: tensor<i1>, %x: tensor<2xf32>, %t: !stablehlo.token) -> (tensor<2xf32>, !stablehlo.token) {
  %r:2 = "stablehlo.if"(%p) ({
    %n = "stablehlo.negate"(%x) : (tensor<2xf32>) -> tensor<2xf32>
    "stablehlo.return"(%n, %t) : (tensor<2xf32>, !stablehlo.token) -> ()
  }, {
    "stablehlo.return"(%x, %t) : (tensor<2xf32>, !stablehlo.token) -> ()
  }) : (tensor<i1>) -> (tensor<2xf32>, !stablehlo.token)
  func.return %r#0, %r#1 : tensor<2xf32>, !stablehlo.token
}""",
    "stablehlo.case": """
func.func @main(%i: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %r = "stablehlo.case"(%i) ({
    "stablehlo.return"(%x) : (tensor<2xf32>) -> ()
  }, {
    %n = "stablehlo.negate"(%x) : (tensor<2xf32>) -> tensor<2xf32>
    "stablehlo.return"(%n) : (tensor<2xf32>) -> ()
  }, {
    "stablehlo.return"(%x) : (tensor<2xf32>) -> ()
  }) : (tensor<i32>) -> tensor<2xf32>
  func.return %r : tensor<2xf32>
}""",
    "stablehlo.while": """
func.func @main(%i: tensor<i32>, %x: tensor<3xf32>) -> tensor<3xf32> {
  %r:2 = "stablehlo.while"(%i, %x) ({
  ^bb0(%a: tensor<i32>, %b: tensor<3xf32>):
    %n = "stablehlo.constant"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
    %c = "stablehlo.compare"(%a, %n) <{comparison_direction = #stablehlo<comparison_direction LT>}>
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%a: tensor<i32>, %b: tensor<3xf32>):
    %s = "stablehlo.add"(%a, %a) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %m = "stablehlo.add"(%b, %x) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    "stablehlo.return"(%s, %m) : (tensor<i32>, tensor<3xf32>) -> ()
  }) : (tensor<i32>, tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>)
  func.return %r#1 : tensor<3xf32>
}""",
    "stablehlo.while nested, with an attribute": """
func.func @main(%p: tensor<i1>, %x: tensor<3xf32>) -> tensor<3xf32> {
  %r = "stablehlo.while"(%x) ({
  ^bb0(%a: tensor<3xf32>):
    "stablehlo.return"(%p) : (tensor<i1>) -> ()
  }, {
  ^bb0(%a: tensor<3xf32>):
    %q = "stablehlo.while"(%a) ({
    ^bb0(%b: tensor<3xf32>):
      "stablehlo.return"(%p) : (tensor<i1>) -> ()
    }, {
    ^bb0(%b: tensor<3xf32>):
      %s = "stablehlo.add"(%a, %b) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      "stablehlo.return"(%s) : (tensor<3xf32>) -> ()
    }) : (tensor<3xf32>) -> tensor<3xf32>
    "stablehlo.return"(%q) : (tensor<3xf32>) -> ()
  }) {note = "outer"} : (tensor<3xf32>) -> tensor<3xf32>
  func.return %r : tensor<3xf32>
}""",
    "stablehlo.while without values": """
func.func @main(%p: tensor<i1>) {
  "stablehlo.while"() ({
    "stablehlo.return"(%p) : (tensor<i1>) -> ()
  }, {
    "stablehlo.return"() : () -> ()
  }) : () -> ()
  func.return
}""",
    "stablehlo.tuple": """
func.func @main(%x: tensor<2xf32>, %t: !stablehlo.token) -> tensor<2xf32> {
  %e = "stablehlo.tuple"() : () -> tuple<>
  %r = "stablehlo.tuple"(%x, %t, %e) : (tensor<2xf32>, !stablehlo.token, tuple<>)
      -> tuple<tensor<2xf32>, !stablehlo.token, tuple<>>
  %y = "stablehlo.get_tuple_element"(%r) <{index = 0 : i32}>
      : (tuple<tensor<2xf32>, !stablehlo.token, tuple<>>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}""",
    "stablehlo.composite": """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %r = "stablehlo.composite"(%x) <{name = "my.op", decomposition = @impl}> : (tensor<2xf32>) -> tensor<2xf32>
  %s = "stablehlo.composite"(%r) <{name = "my.other.op", decomposition = @impl, version = 2 : i32,
      composite_attributes = {axis = 1 : i64, mode = "fast"}}> {note = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  func.return %s : tensor<2xf32>
}
func.func private @impl(%x: tensor<2xf32>) -> tensor<2xf32> {
  func.return %x : tensor<2xf32>
}""",
    "stablehlo.composite with regions": """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %r = "stablehlo.composite"(%x) <{name = "my.op", decomposition = @impl}> ({
  ^bb0(%a: tensor<f32>):
    "stablehlo.return"(%a) : (tensor<f32>) -> ()
  }, {
    "stablehlo.return"() : () -> ()
  }) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %r : tensor<2xf32>
}
func.func private @impl(%x: tensor<2xf32>) -> tensor<2xf32> {
  func.return %x : tensor<2xf32>
}""",
    "chlo.scan": """
func.func @main(%x: tensor<4x3xf32>, %c: tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>) {
  %r:2 = "chlo.scan"(%x, %c) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>,
      resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%a: tensor<3xf32>, %b: tensor<3xf32>):
    %s = "stablehlo.add"(%a, %b) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    "stablehlo.return"(%s, %s) : (tensor<3xf32>, tensor<3xf32>) -> ()
  }) : (tensor<4x3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>)
  func.return %r#0, %r#1 : tensor<4x3xf32>, tensor<3xf32>
}""",
    "chlo.scan in reverse": """
func.func @main(%x: tensor<4x3xf32>, %c: tensor<f32>) -> (tensor<4x3xf32>, tensor<f32>) {
  %r:2 = "chlo.scan"(%x, %c) <{dimension = 0 : i64, is_reverse = true, is_associative = false,
      operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%a: tensor<3xf32>, %b: tensor<f32>):
    "stablehlo.return"(%a, %b) : (tensor<3xf32>, tensor<f32>) -> ()
  }) {note = "a"} : (tensor<4x3xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<f32>)
  func.return %r#0, %r#1 : tensor<4x3xf32>, tensor<f32>
}""",
    "stablehlo.async_start": """
func.func @main(%x: tensor<2xf32>) -> tensor<4xf32> {
  %f = "stablehlo.async_start"(%x) ({
  ^bb0(%a: tensor<2xf32>):
    %g = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
        : (tensor<2xf32>) -> tensor<4xf32>
    "stablehlo.return"(%g) : (tensor<4xf32>) -> ()
  }) : (tensor<2xf32>) -> !stablehlo.future<tensor<4xf32>>
  %r = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<4xf32>>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}""",
    "stablehlo.async_start of a slice": """
func.func @main(%x: tensor<5xf32>, %i: tensor<i32>) -> tensor<2xf32> {
  %f = "stablehlo.async_start"(%x, %i) ({
  ^bb0(%a: tensor<5xf32>, %b: tensor<i32>):
    %s = "stablehlo.dynamic_slice"(%a, %b) <{slice_sizes = array<i64: 2>}>
        : (tensor<5xf32>, tensor<i32>) -> tensor<2xf32>
    "stablehlo.return"(%s) : (tensor<2xf32>) -> ()
  }) : (tensor<5xf32>, tensor<i32>) -> !stablehlo.future<tensor<2xf32>>
  %r = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<2xf32>>) -> tensor<2xf32>
  func.return %r : tensor<2xf32>
}""",
    "discardable attributes": """
func.func @main(%x: tensor<2xf32>, %i: tensor<i32>) -> tensor<2xf32> {
  %a = "stablehlo.add"(%x, %x) {note = "a"} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %b = "stablehlo.reshape"(%a) {note = "b", other = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  %c = "stablehlo.dynamic_slice"(%b, %i) <{slice_sizes = array<i64: 2>}> {note = [1, 2]}
      : (tensor<2xf32>, tensor<i32>) -> tensor<2xf32>
  %d = "stablehlo.optimization_barrier"(%c) {note} : (tensor<2xf32>) -> tensor<2xf32>
  %e = "chlo.erf"(%d) {note = #stablehlo<precision HIGH>} : (tensor<2xf32>) -> tensor<2xf32>
  %f = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<2xf32>}> {note = 2.5 : f32} : () -> tensor<2xf32>
  %g = "stablehlo.concatenate"(%e, %f) <{dimension = 0 : i64}> {note = @main}
      : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  %h = "stablehlo.slice"(%g) <{start_indices = array<i64: 0>, limit_indices = array<i64: 4>, strides = array<i64: 2>}>
      {note = f32} : (tensor<4xf32>) -> tensor<2xf32>
  func.return %h : tensor<2xf32>
}""",
    "sdy.sharding_constraint": """
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}p1, {}], replicated={"b":(1)2}>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>}) {
  %a = "sdy.sharding_constraint"(%x) <{sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}>
      : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = "sdy.reshard"(%a) <{sharding = #sdy.sharding<@mesh, [{"b":(2)2}, {}]>}>
      : (tensor<8x8xf32>) -> tensor<8x8xf32>
  "sdy.sharding_group"(%b) <{group_id = 3 : i64}> : (tensor<8x8xf32>) -> ()
  func.return %b : tensor<8x8xf32>
}""",
    "sdy.manual_computation": """
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<16x8xf32>) {
  %r:2 = "sdy.manual_computation"(%x) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"a"}, {?}]>]>,
      out_shardings = #sdy.sharding_per_value<[<@mesh, [{"a", "b"}, {}]>, <@mesh, [{"a", ?}, {}], replicated={"b"}>]>,
      manual_axes = #sdy<manual_axes{"a"}>}> ({
  ^bb0(%y: tensor<4x8xf32>):
    %c = "stablehlo.concatenate"(%y, %y) <{dimension = 0 : i64}> : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    "sdy.return"(%y, %c) : (tensor<4x8xf32>, tensor<8x8xf32>) -> ()
  }) : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<16x8xf32>)
  func.return %r#0, %r#1 : tensor<8x8xf32>, tensor<16x8xf32>
}""",
}
