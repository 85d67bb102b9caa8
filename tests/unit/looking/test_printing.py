"""Prints of running programs: what they write, in which order, and that nothing else notices them."""

from __future__ import annotations

import dataclasses
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation
from xdsl.rewriter import InsertPoint, Rewriter

import gcomp
from gcomp import ops
from gcomp.errors import ArtifactError, GcompError, UnsupportedError, UsageError, VerificationError
from gcomp.ir.builder import Builder
from gcomp.ir.printing import PrintOp
from gcomp.ir.program import Program
from gcomp.ir.stablehlo import CaseOp, IfOp, WhileOp
from gcomp.ir.types import is_tensor
from gcomp.lowering.llvm.lower import lowerings
from gcomp.passes.base import PassContext
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.passes.transform.thread_prints import ThreadPrints
from gcomp.reference.interpreter import Interpreter, interpret
from gcomp.reference.numpy.printing import render
from gcomp.runtime.cpu.variants import VARIANTS
from gcomp.targets.base import target_named
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.inputs import inputs_for
from gcomp.testing.generate.program import random_program
from gcomp.testing.plans import PlanRunner

LOOP = """func.func @main(%x: tensor<?x2xf32, ["n", "2"]> {gcomp.name = "x"}, %last: tensor<i32> {gcomp.name = "last"})
    -> (tensor<?x2xf32, ["n", "2"]> {gcomp.name = "y"}) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  gcomp.print "{{ {shape} {dtype} }}" %x : tensor<?x2xf32, ["n", "2"]>
  %i, %y = stablehlo.while(%at = %zero, %v = %x) : tensor<i32>, tensor<?x2xf32, ["n", "2"]>
  cond {
    %more = stablehlo.compare LT, %at, %last : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %at, %one : tensor<i32>
    %odd = stablehlo.and %at, %one : tensor<i32>
    %is = stablehlo.compare EQ, %odd, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %w = stablehlo.sine %v : tensor<?x2xf32, ["n", "2"]>
    "stablehlo.if"(%is) ({
      gcomp.print "iteration {values} mean {1.mean:.2f}" %at, %w : tensor<i32>, tensor<?x2xf32, ["n", "2"]>
      stablehlo.return
    }, {
      gcomp.print "even"
      stablehlo.return
    }) : (tensor<i1>) -> ()
    stablehlo.return %next, %w : tensor<i32>, tensor<?x2xf32, ["n", "2"]>
  }
  %narrow = stablehlo.convert %y : (tensor<?x2xf32, ["n", "2"]>) -> tensor<?x2xi4, ["n", "2"]>
  gcomp.print "end \\22{dtype}\\22 {values} {nan}" %narrow : tensor<?x2xi4, ["n", "2"]>
  return %y : tensor<?x2xf32, ["n", "2"]>
}"""
X = np.float32([[0, 1], [2, 3]])
LINES = ["{ [2, 2] f32 }", "even", "iteration 1 mean 0.42", "even", 'end "i4" [[0 0]\n [0 0]] 0']


def printed(program: Program, inputs: Any) -> tuple[list[str], list[bytes]]:
    """What the reference prints, and the outputs' bits."""
    lines: list[str] = []
    outputs = Interpreter(program, max_steps=30_000, sink=lines.append).run([np.asarray(x) for x in inputs])
    return lines, [array.tobytes() for array in outputs]


def test_formats() -> None:
    x = np.float32([1, 2.5, np.nan, np.inf, -np.inf])
    assert render("{shape} {dtype} {mean} {min} {max:.2f} {nan} {inf:03d}", [x]) == "[5] f32 1.75 1 2.50 1 002"
    assert render("{{}} {0.values:.1f} {1.values:+d} {1.mean}", [x[:2], np.int8(7)]) == "{} [1.0 2.5] +7 7"
    assert render("{mean} {max}", [np.float32([])]) == "- -"
    assert render("{mean} {max} {nan}", [np.complex64([3 + 4j, np.nan])]) == "3+4j 5 1"
    assert render("{mean} {values}", [np.asarray([True, False])]) == "0.5 [ True False]"
    for wrong in ("{", "}", "{}", "{size}", "{1.mean}", "{mean!r}", "{mean:{nan}}", "{mean:<10}"):
        with pytest.raises(ValueError):
            render(wrong, [x])


@pytest.mark.parametrize("target", ["xla:cpu", "cpu"])
def test_prints_come_in_order_through_loops_and_branches(target: str, tmp_path: Path) -> None:
    program, lines = Program.parse(LOOP), list[str]()
    assert printed(program, [X, np.int32(3)])[0] == LINES
    assert program.text() == Program.parse(program.text()).text() == Program.parse(program.text(generic=True)).text()
    model = gcomp.compile(program.clone(), target=target)
    model.save(tmp_path / "m.gcomp")
    for one in (model, gcomp.load(tmp_path / "m.gcomp")):
        lines.clear()
        with gcomp.printing_to(lines.append):
            (y,) = one(X, np.int32(3))
        assert lines == LINES and [o.name for o in one.outputs] == ["y"]
        assert np.allclose(y, np.sin(np.sin(np.sin(X))))


def test_the_program_itself_is_the_one_without_prints() -> None:
    quiet = Program.parse(LOOP)
    for op in [op for op in quiet.ops() if isinstance(op, PrintOp)]:
        Rewriter.erase_op(op)
    for op in [op for op in quiet.ops() if isinstance(op, IfOp)]:
        Rewriter.erase_op(op)
    texts = [gcomp.compile(p, target="xla:cpu").plan.texts["main.mlir"] for p in (quiet, Program.parse(LOOP))]
    assert texts[0] == texts[1] and "gcomp_print" not in texts[0]


@pytest.mark.parametrize("target", ["xla:cpu", "cpu"])
def test_standard_output_and_failing_readers(target: str, capfd: pytest.CaptureFixture[str]) -> None:
    model = gcomp.compile(LOOP, target=target)
    model(X, np.int32(1))
    assert capfd.readouterr().out.splitlines()[:2] == LINES[:2]

    def reader(line: str) -> None:
        raise RuntimeError("enough")

    with gcomp.printing_to(reader), pytest.raises(RuntimeError, match="enough"):
        model(X, np.int32(1))
    with gcomp.printing_to(lambda line: None):
        model(X, np.int32(1))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('gcomp.print "{size}" %x : tensor<4xf32>', "no field"),
        ('gcomp.print "{1.mean}" %x : tensor<4xf32>', "operand 1"),
        ('gcomp.print "{" %x : tensor<4xf32>', "write it twice"),
        ('%n = gcomp.print "a" %x : tensor<4xf32> -> tensor<4xf32>', "count"),
        (
            '%z = stablehlo.constant dense<0.0> : tensor<f32>\n%r = "stablehlo.reduce"(%x, %z) '
            "<{dimensions = array<i64: 0>}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
            'gcomp.print "a"\nstablehlo.return %a : tensor<f32>\n}) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>',
            "any order",
        ),
    ],
)
def test_wrong_prints_are_refused(line: str, why: str) -> None:
    with pytest.raises(VerificationError, match=why):
        Program.parse(f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{line}\nreturn %x : tensor<4xf32>\n}}")


def test_targets_without_prints_say_so() -> None:
    with pytest.raises(UnsupportedError, match="triton:sm_90"):
        gcomp.compile(LOOP, dims={"n": 2}, target="triton:sm_90")
    program = Program.parse(LOOP)
    from gcomp.lowering.xla import lower

    with pytest.raises(UnsupportedError, match=r"gcomp\.print"):
        lower(program)


def test_artifacts_with_other_calls_are_refused(tmp_path: Path) -> None:
    model = gcomp.compile(LOOP, target="xla:cpu")
    plan, text = model.plan, model.plan.texts["aside.mlir"]
    for old, new in (
        ("f32[{{n}},2]|", "f64[{{n}},2]|"),
        ("f32[{{n}},2]|", "f32[{{n}},200]|"),
        ("i32[];", ""),
        ("{shape}", "{size}"),
        ("api_version = 3", "api_version = 1"),
    ):
        assert old in text
        model.plan = dataclasses.replace(plan, texts={**plan.texts, "aside.mlir": text.replace(old, new, 1)})
        model.save(tmp_path / "m.gcomp")
        with pytest.raises(ArtifactError):
            gcomp.load(tmp_path / "m.gcomp")(X, np.int32(1))


def test_plans_with_other_prints_are_refused(tmp_path: Path) -> None:
    """On processors the plan says what is read for a line: it is read nowhere else."""
    model = gcomp.compile(LOOP, target="cpu")
    plan = model.plan
    (name,) = [name for name, text in plan.texts.items() if '"kind":"host"' in text]
    for old, new, why in (
        ('"dims":["n","2"],"dtype":"f32"', '"dims":["n","2"],"dtype":"f64"', "larger than its buffer"),
        ('"dims":["n","2"],"dtype":"f32"', '"dims":["n","200"],"dtype":"f32"', "larger than its buffer"),
        ('"dims":["n","2"],"dtype":"f32"', '"dims":["m","2"],"dtype":"f32"', "not known"),
        ('"dims":["n","2"],"dtype":"f32"', '"dims":["n","2"],"dtype":"f31"', "gives the host elements of"),
        ("iteration {values}", "iteration {size}", "print_line failed"),
    ):
        text = plan.texts[name]
        assert old in text
        model.plan = dataclasses.replace(plan, texts={**plan.texts, name: text.replace(old, new, 1)})
        model.save(tmp_path / "m.gcomp")
        with pytest.raises(ArtifactError, match=why):
            gcomp.load(tmp_path / "m.gcomp")(X, np.int32(3))


def test_lines_of_calls_at_the_same_time() -> None:
    """Each call writes its lines about its own values, and in its own thread."""
    model, found = gcomp.compile(LOOP, target="cpu"), dict[int, list[str]]()

    # All are there at once: a thread that begins when another has ended may have its number.
    together = threading.Barrier(3)

    def call(number: int) -> None:
        found[threading.get_ident()] = lines = [str(number)]
        together.wait()
        for _ in range(5):
            model(np.full((number, 2), 0.5, np.float32), np.int32(number))
        lines.append("done")

    workers = [threading.Thread(target=call, args=[number]) for number in (1, 2, 3)]
    with gcomp.printing_to(lambda line: found[threading.get_ident()].append(line)):
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert len(found) == 3
    for number, *lines, _ in found.values():
        x = np.full((int(number), 2), 0.5, np.float32)
        assert lines == printed(Program.parse(LOOP), [x, np.int32(number)])[0] * 5


def test_the_evaluator_of_plans_prints_what_the_machine_does() -> None:
    program, variant = Program.parse(LOOP), VARIANTS["x86-64-v3"]
    PassManager(parse_pipeline(f"inline,thread-prints,{target_named('cpu').pipeline()}")).run(program)
    lines: list[str] = []
    with gcomp.printing_to(lines.append):
        PlanRunner(program, lowerings(program, variant)).run([X, np.asarray(3, np.int32)])
    assert lines == LINES


def test_constants_and_complex_numbers_in_a_branch() -> None:
    text = """func.func @main(%x: tensor<2xcomplex<f32>> {gcomp.name = "x"}, %c: tensor<i1> {gcomp.name = "c"})
        -> (tensor<2xf32> {gcomp.name = "y"}) {
      %y = "stablehlo.if"(%c) ({
        %i = stablehlo.iota dim = 0 : tensor<2xi32>
        %big = stablehlo.constant dense<7> : tensor<2000xi32>
        %r = stablehlo.real %x : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
        gcomp.print "{values} {1.max} {{{2.values}}} {{3.values}} {3.values}" %i, %big, %x, %c
          : tensor<2xi32>, tensor<2000xi32>, tensor<2xcomplex<f32>>, tensor<i1>
        stablehlo.return %r : tensor<2xf32>
      }, {
        %r = stablehlo.imag %x : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
        stablehlo.return %r : tensor<2xf32>
      }) : (tensor<i1>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    }"""
    x = np.complex64([1 + 2j, 3 - 1j])
    expected, model = printed(Program.parse(text), [x, np.bool_(True)])[0], gcomp.compile(text, target="cpu")
    for taken in (True, False):
        lines: list[str] = []
        with gcomp.printing_to(lines.append):
            (y,) = model(x, np.bool_(taken))
        assert lines == expected * taken and np.array_equal(y, x.real if taken else x.imag)


# ---- frontends ------------------------------------------------------------------------------------------------------


def test_gcomp_ops_print() -> None:
    @gcomp.function
    def traced(x):
        ops.print("{name} is {shape}, {max:.2f}", x, name="x{}")
        if x.sum() > 1:
            ops.print("large")
        n = 0
        while n < 2:
            ops.print("n = {values}", n)
            n = n + 1
        return x + n

    for sizes in (
        (1.0, ["x{} is [2], 1.00", "large", "n = 0", "n = 1"]),
        (0.0, ["x{} is [2], 0.00", "n = 0", "n = 1"]),
    ):
        for eager in (False, True):
            lines: list[str] = []
            with gcomp.printing_to(lines.append):
                if eager:
                    with gcomp.eager():
                        traced(np.full(2, sizes[0], np.float32))
                else:
                    traced(np.full(2, sizes[0], np.float32))
            assert lines == sizes[1]


def test_graphs_print_what_they_run() -> None:
    from gcomp.graph import Graph, Session, gradients, placeholder

    with Graph() as graph:
        x = placeholder("float32", (2,))
        y = ops.exp(x)
        ops.print("exp {values}", y)
        z = ops.sin(x)
        (slope,) = gradients(y.sum(), [x])
    lines: list[str] = []
    with gcomp.printing_to(lines.append):
        Session(graph).run(z, {x: np.zeros(2, np.float32)})
        assert lines == []
        Session(graph).run([y, slope], {x: np.zeros(2, np.float32)})
    assert lines == ["exp [1. 1.]"]


@pytest.mark.parametrize("target", ["xla:cpu", "cpu"])
def test_jax_debug_print(target: str) -> None:
    import jax
    import jax.numpy as jnp

    def function(x):
        jax.debug.print("{x:.1f} {} {{}}", x, x=x.sum())
        return jax.lax.fori_loop(0, 2, lambda i, v: (jax.debug.print("{}", i), v * 2)[1], x)

    lines: list[str] = []
    model = gcomp.compile(function, np.ones(2, np.float32), target=target)
    with gcomp.printing_to(lines.append):
        model(np.float32([1, 2]))
    assert lines == ["3.0 [1. 2.] {}", "0", "1"]
    with pytest.raises(UnsupportedError, match="not one array"):
        gcomp.compile(lambda x: (jax.debug.print("{}", (x, x)), x)[1], jnp.ones(2))


def test_derivatives_do_not_print_again() -> None:
    text = """func.func @main(%x: tensor<4xf32> {gcomp.name = "x"}) -> (tensor<f32> {gcomp.name = "loss"}) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %i = stablehlo.constant dense<0> : tensor<i32>
      %two = stablehlo.constant dense<2> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %y = stablehlo.exponential %x : tensor<4xf32>
      gcomp.print "y" %y : tensor<4xf32>
      %n, %z = stablehlo.while(%at = %i, %v = %y) : tensor<i32>, tensor<4xf32>
      cond {
        %more = stablehlo.compare LT, %at, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        %next = stablehlo.add %at, %one : tensor<i32>
        %w = stablehlo.sine %v : tensor<4xf32>
        gcomp.print "iteration {values}" %at : tensor<i32>
        stablehlo.return %next, %w : tensor<i32>, tensor<4xf32>
      }
      %s = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      return %s : tensor<f32>
    }"""
    for pipeline in ("vjp{of=loss wrt=x value=true}", "jvp"):
        program = Program.parse(text)
        PassManager(parse_pipeline(pipeline)).run(program)
        inputs = [np.linspace(0, 1, 4, dtype=np.float32)] * len(program.inputs())
        assert printed(program, inputs)[0] == ["y", "iteration 0", "iteration 1"], pipeline


# ---- properties -----------------------------------------------------------------------------------------------------


def insert_prints(program: Program, rng: random.Random, count: int = 4) -> int:
    """Put prints of random values at random places; how many."""
    blocks = [b for op in program.ops() for r in op.regions for b in r.blocks if _prints_here(op, b)]
    made = 0
    for k in range(count):
        block = rng.choice(blocks)
        op = rng.choice(list(block.ops))
        values = [v for v in (*block.args, *(r for o in _before(op) for r in o.results)) if is_tensor(v.type)]
        text = f"{k}: {{shape}} {{nan}} {{mean}}" if values else f"{k}"
        printing = PrintOp.of(*rng.choices(values, k=1 if values else 0), types=(), format=StringAttr(text))
        Builder(program, InsertPoint.before(op)).insert(printing)
        made += 1
    return made


def _prints_here(op: Operation, block: Block) -> bool:
    if isinstance(op, WhileOp):
        return block is op.body.block
    return isinstance(op, IfOp | CaseOp) or op.name == "func.func"


def _before(op: Operation) -> list[Operation]:
    found: list[Operation] = []
    while (op := op.prev_op) is not None:  # type: ignore[assignment]
        found.append(op)
    return found


PASSES = (
    "dce", "cse", "canonicalize", "fold-constants", "inline", "inline-composites", "expand-chlo", "infer-shapes",
    "sink-transposes", "raise-softmax", "raise-norms", "window-to-arithmetic", "conv-channels-last",
)  # fmt: skip


@pytest.mark.parametrize("block", range(4))
def test_prints_stay_in_order_through_random_pipelines(block: int) -> None:
    """E0 passes keep every line; all keep how many there are, and their order. Outputs are those without prints."""
    seen = 0
    for seed in range(block * 20, block * 20 + 20):
        rng = random.Random(seed)
        program = random_program(Seeded(seed))
        inputs = inputs_for(program, seed)
        try:
            plain = [a.tobytes() for a in interpret(program, inputs, max_steps=20_000)]
            insert_prints(program, rng)
            lines, outputs = printed(program, inputs)
        except GcompError:
            continue
        assert outputs == plain, seed
        PassManager(parse_pipeline(",".join(rng.sample(PASSES, 5)))).run(program)
        program.verify("after the passes")
        after, _ = printed(program, inputs)
        assert [line[0] for line in after] == [line[0] for line in lines], seed
        seen += len(after)
    assert seen


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_threaded_prints_are_the_same_prints(seed: int) -> None:
    program = random_program(Seeded(seed))
    inputs = inputs_for(program, seed)
    insert_prints(program, random.Random(seed), 3)
    try:
        lines, outputs = printed(program, inputs)
    except GcompError:
        return
    PassManager(parse_pipeline("inline,inline-composites")).run(program)
    assert ThreadPrints().run(program, PassContext())
    program.verify("threaded")
    after, (*same, count) = printed(program, inputs)
    assert after == lines and same == outputs
    assert np.frombuffer(count, np.int32)[0] == len(lines)


def test_memory_passes_keep_prints_in_order() -> None:
    program = Program.parse(LOOP)
    PassManager(parse_pipeline("infer-shapes,canonicalize,fuse,order-for-memory")).run(program)
    assert printed(program, [X, np.int32(3)])[0] == LINES


def test_padded_models_do_not_print() -> None:
    with pytest.raises(UsageError, match="padded"):
        gcomp.compile(LOOP, buckets={"n": (2, 4)}, dims={"n": (1, 4)})
