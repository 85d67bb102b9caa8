"""Automatic mutants that are no mistakes: changes after which the passes keep all of their promises, and why.

A change is known by its module and the line before and after it, spaces apart, so that it is found wherever the line
moves to, and is a new one when the line is another. A line of one word has the one above it in front.
"""

from __future__ import annotations

_LIMIT = "a limit that was chosen: beyond it the pass leaves a program alone, which is as right"
_ONE_RESULT = "the op has one result: the last is the first"
_ONE_OPERAND = "the op has one operand: the last is the first"
_EMPTY = "nothing is read of it: it is empty, or the loop makes no turn"

EQUIVALENT: tuple[tuple[str, str, str, str], ...] = (
    (
        "convert.expand_chlo",
        "return [*(b.full(shape_of(v), 0, element_of(v)) for v in op.outputs), *op.inits]",
        "return [*(b.full(shape_of(v), 1, element_of(v)) for v in op.outputs), *op.inits]",
        _EMPTY,
    ),
    (
        "convert.expand_chlo",
        "return b.pad(x, b.scalar_like(x, 0), none, high)",
        "return b.pad(x, b.scalar_like(x, 1), none, high)",
        _EMPTY,
    ),
    (
        "convert.expand_chlo",
        "room = count if isinstance(count, int) else dims.dmax(count, 1)",
        "room = count if isinstance(count, int) else dims.dmax(count, 2)",
        "what there is too much room for is cut off in the end",
    ),
    (
        "convert.expand_chlo",
        'if text == "i1" or is_integer(text):',
        'if text == "i1" and is_integer(text):',
        "integers are summed as floats are: a -0 of integers is 0, and a sum of booleans is their disjunction",
    ),
    (
        "convert.expand_chlo",
        "total = b.insert(hlo.ReduceOp.apply(hlo.AddOp, kept, b.full((), nothing, text), [group])).results[0]",
        "total = b.insert(hlo.ReduceOp.apply(hlo.AddOp, kept, b.full((), nothing, text), [group])).results[-1]",
        _ONE_RESULT,
    ),
    (
        "convert.expand_chlo",
        'return b.reduce(hlo.OrOp if text == "i1" else hlo.AddOp, kept, [group])',
        'return b.reduce(hlo.OrOp if text != "i1" else hlo.AddOp, kept, [group])',
        "one group at most has a row, the others 0 for it: the sum and the bitwise or are the same",
    ),
    (
        "convert.integer_products",
        "return points is not None and 0 <= int(points.reshape(-1)[0]) - self.offset + 128 < 256",
        "return points is not None and 0 <= int(points.reshape(1)[0]) - self.offset + 128 < 256",
        "there is one point",
    ),
    (
        "convert.integer_products",
        "def _in_f32(op: hlo.DotGeneralOp | hlo.ConvolutionOp, b: Builder, added: int = 0) -> SSAValue | None:",
        "def _in_f32(op: hlo.DotGeneralOp | hlo.ConvolutionOp, b: Builder, added: int = 1) -> SSAValue | None:",
        "a bound that is stricter by one: the 8-bit form, which is as exact, is taken instead",
    ),
    (
        "raising.raise_attention",
        "None if p is None or size == 1 else mask.labels[p]",
        "None if p is None or size == 0 else mask.labels[p]",
        "a dimension of size 1 that is not broadcast has a label of size 1, and is reshaped to it either way",
    ),
    ("graph.inline", "if left < 0:", "if left < 1:", _LIMIT),
    (
        "graph.infer_shapes",
        "type = tensor(known[0], element_of(op.results[0]))",
        "type = tensor(known[0], element_of(op.results[-1]))",
        _ONE_RESULT,
    ),
    (
        "graph.infer_shapes",
        "type = tensor(known[0], element_of(op.results[0]))",
        "type = tensor(known[-1], element_of(op.results[0]))",
        _ONE_OPERAND,
    ),
    (
        "graph.infer_shapes",
        "if declared == inferred or not (is_tensor(declared) and is_tensor(inferred)):",
        "if declared == inferred or not (is_tensor(declared) or is_tensor(inferred)):",
        "what is declared and what is inferred are both tensors, or neither is",
    ),
    (
        "convert.quantized_values_in_f32",
        "high = _number(others[0])",
        "high = _number(others[-1])",
        "there is one other operand",
    ),
    (
        "convert.quantized_products",
        "_LEAST_SCALE, _GREATEST_SCALE = 2.0**-60, 2.0**40",
        "_LEAST_SCALE, _GREATEST_SCALE = 2.0**-60, 2.0**39",
        _LIMIT,
    ),
    (
        "convert.window_to_arithmetic",
        "window, out = op.window(), shape_of(op.results[0])",
        "window, out = op.window(), shape_of(op.results[-1])",
        _ONE_RESULT,
    ),
    (
        "graph.cse",
        "None if isinstance(op, GraphOp) and op.INFERS else tuple([r.type for r in op.results]),",
        "None if not isinstance(op, GraphOp) and op.INFERS else tuple([r.type for r in op.results]),",
        "ops that differ in nothing but their types are not merged in any case, and are left apart earlier",
    ),
    (
        "graph.fold_constants",
        "if not self._within_budget(tree, flops) or context.flops + flops > self.total_flops:",
        "if not self._within_budget(tree, flops) or context.flops + flops >= self.total_flops:",
        _LIMIT,
    ),
    (
        "graph.fold_constants",
        'changed |= context.allow("fold-constants", where(op)) and self._fold_empty(op, program, readers) continue',
        'changed |= context.allow("fold-constants", where(op)) and self._fold_empty(op, program, readers) break',
        "the block is gone over again for as long as something changes",
    ),
    ("graph.fold_constants", "kernel_bytes: int = 4 << 20", "kernel_bytes: int = 4 << 21", _LIMIT),
    ("graph.fold_constants", "if flops > self.max_flops:", "if flops >= self.max_flops:", _LIMIT),
    ("graph.fold_constants", "total_flops: int = 5_000_000_000", "total_flops: int = 4999999999", _LIMIT),
    (
        "graph.fold_constants",
        "depth = max((_elements(v) for v in op.operands), default=1)",
        "depth = max((_elements(v) for v in op.operands), default=2)",
        _LIMIT,
    ),
    (
        "graph.fold_constants",
        "return math.prod(static_shape(value) or (0,))",
        "return math.prod(static_shape(value) or (1,))",
        "the count of a scalar is for budgets of a thousand and more, and it is one more",
    ),
    (
        "graph.fold_constants",
        'return [arrays[0].reshape(cast("tuple[int, ...]", static_shape(op.results[0])))]',
        'return [arrays[-1].reshape(cast("tuple[int, ...]", static_shape(op.results[0])))]',
        _ONE_OPERAND,
    ),
    (
        "graph.fold_constants",
        "return evaluate_op(op, [known_array(op.operand, program)])[0]",
        "return evaluate_op(op, [known_array(op.operand, program)])[-1]",
        _ONE_RESULT,
    ),
    (
        "graph.fold_constants",
        "return math.prod(static_shape(value) or (0,))",
        "return math.prod(static_shape(value) or (-1,))",
        "the count of a scalar is for budgets of a thousand and more, and it is one less",
    ),
    (
        "graph.fold_constants",
        "for look in (flat[:16], flat[:: max(1, value.size // 16)], value):",
        "for look in (flat[:16], flat[:: max(1, value.size // 17)], value):",
        "where it looks first; the whole array decides",
    ),
    (
        "graph.infer_shapes",
        "shape, right = known[0], not any(differ_always(s, 1) and differ_always(s, known[0][d]) for s, d in pairs)",
        "shape, right = known[0], not any(differ_always(s, 1) and differ_always(s, known[-1][d]) for s, d in pairs)",
        _ONE_OPERAND,
    ),
    (
        "raising.raise_activations",
        "if len(others) == 1 and same(others[0], x) and close(number, _TANH, x.element) and a.number() == 1:",
        "if len(others) == 1 and same(others[-1], x) and close(number, _TANH, x.element) and a.number() == 1:",
        "there is one other factor",
    ),
    (
        "raising.raise_activations",
        "return 1.0, [read]",
        "return 2.0, [read]",
        "no form has a factor of 2: a product that is too long is left alone, which is as right",
    ),
    ("raising.raise_activations", "steps = 0", "steps = -1", _LIMIT),
    ("raising.raise_activations", "if steps > MOST_FACTORS:", "if steps >= MOST_FACTORS:", _LIMIT),
    (
        "raising.raise_attention",
        "@dataclass(frozen=True)",
        "@dataclass(frozen=False)",
        "nobody assigns to its fields or hashes it",
    ),
    (
        "raising.raise_norms",
        "scale = vector(rest[0], axis, b) if rest else ones(x, axis, b)",
        "scale = vector(rest[-1], axis, b) if rest else ones(x, axis, b)",
        "there is one other factor at most",
    ),
    (
        "raising.raise_norms",
        "scale = vector(rest[0], axis, b) if rest else ones(sides[0], axis, b)",
        "scale = vector(rest[0], axis, b) if rest else ones(sides[-1], axis, b)",
        "both sides of a difference have its shape and its element type",
    ),
    (
        "raising.raise_norms",
        "axis = trailing(mean[1], rank_of(op.results[0]))",
        "axis = trailing(mean[1], rank_of(op.results[-1]))",
        _ONE_RESULT,
    ),
    (
        "raising.raise_rotary",
        'if len(op.operands) != 2 or op.value("dimension") != rank_of(op.results[0]) - 1:',
        'if len(op.operands) != 2 or op.value("dimension") != rank_of(op.results[-1]) - 1:',
        _ONE_RESULT,
    ),
    (
        "raising.raise_rotary",
        "if sides is None or x is None or x.type != op.results[0].type:",
        "if sides is None or x is None or x.type != op.results[-1].type:",
        _ONE_RESULT,
    ),
    (
        "rewriting",
        'found.captured["root"] = op.results[0]',
        'found.captured["root"] = op.results[-1]',
        "the ops of rules have one result: the last is the first",
    ),
    (
        "rewriting",
        "if array.strides != (0,) * array.ndim and not (array == first).all():",
        "if array.strides != (-1,) * array.ndim and not (array == first).all():",
        "a shortcut: of an array that repeats one element all are equal, looked at or not",
    ),
    (
        "rewriting",
        "return bool(np.array_equal(converted.astype(wide), np.asarray(number).astype(wide), equal_nan=True))",
        "return bool(np.array_equal(converted.astype(wide), np.asarray(number).astype(wide), equal_nan=False))",
        "it decides about a rule that asks for NaN, and there is none",
    ),
)
"""Module, line before, line after, why it makes no difference."""


def why_equivalent(module: str, before: str, after: str) -> str | None:
    """Why a change makes no difference; None where that is not known."""
    return _KNOWN.get((module.removeprefix("gcomp.passes."), squeezed(before), squeezed(after)))


def squeezed(line: str) -> str:
    """A line without its spaces."""
    return "".join(line.split())


_KNOWN = {(module, squeezed(a), squeezed(b)): why for module, a, b, why in EQUIVALENT}
