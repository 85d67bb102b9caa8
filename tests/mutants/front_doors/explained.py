"""What is known of mutants that lived: why they are no mistakes, or what shows that they are.

A change is known by its module and the line before and after it, spaces apart, so that it is found wherever the line
moves to, and is a new one when the line is another. Those of `tests.mutants.equivalent` count too.
"""

from __future__ import annotations

from tests.mutants.equivalent import squeezed, why_equivalent

SAME, LESS, MISSED = "same", "less", "missed"
"""The change makes no difference; it makes the compiler do less (or more) than it could, with the same answers; it is a
mistake, and the text is a witness: what shows it."""

KNOWN: tuple[tuple[str, str, str, str, str], ...] = (
    ("lowering.xla.legality", 'if op.name == "stablehlo.reduce" and two[0] and not all(two):',
     'if op.name == "stablehlo.reduce" or two[0] and not all(two):', MISSED,
     "every program with a reduction is refused; the door counts it under `not supported`, and goes on"),
    ("lowering.triton.hsaco", "if 0x90 <= head < 0xA0 or head in (0xDC, 0xDD):",
     "if 0x90 <= head < 0xA0 and head in (0xDC, 0xDD):", MISSED,
     "no array of MessagePack is read any more: `_unpack(bytes([0x90]), 0)` raises; no door reads code objects"),
    ("frontends.jaxpr.sorting",
     "sorted_ = b.emit_all(hlo.SortOp, ctx[0], indices, regions=[before], dimension=axis, is_stable=True)",
     "sorted_ = b.emit_all(hlo.SortOp, ctx[0], indices, regions=[before], dimension=axis, is_stable=False)", MISSED,
     "`lax.approx_max_k([1, 1, 1], 3)`: the program allows any order of indices; the reference sorts stably whatever "
     "`is_stable` says, so that no input shows it there"),
    ("frontends.fx.movement", "if isinstance(bound, int) and bound >= _END:",
     "if not isinstance(bound, int) and bound >= _END:", MISSED,
     "`x[:y.shape[0]]` exported with a symbol for that size ends in a TypeError; the door for torch makes no symbols"),
    ("lowering.tiles.expanding.trigonometry", "bounds += [size.of(INF)] * (2 * step - 1 - len(bounds))",
     "bounds += [size.of(INF)] * (2 + step - 1 - len(bounds))", MISSED,
     "of the 18 bounds for f64, those from the 17th on select the factor of a lesser one: sines of numbers from 2**955 "
     "on; f32 has three, where both are the same"),
    ("memory.greedy", "return int(starts[fits[room[fits].argmin()] if tightest else fits[0]])",
     "return int(starts[fits[room[fits].argmin()] if tightest else fits[ -1]])", LESS,
     "of the gaps that a buffer fits in, the last is taken in place of the first: places stay valid, arenas may grow"),
    ("autodiff.programs", "for op in reads:", "for op in []:", MISSED,
     "weights that called functions read are not refused, or get no gradient; programs of the door have no weights"),
    ("decompositions.real", "inverse = b.subtract(b.full_like(bits, 2 * _BIAS), exponent)",
     "inverse = b.subtract(b.full_like(bits, 2 + _BIAS), exponent)", MISSED,
     "complex quotients alone scale so (`pairs.functions.quotient`), and one became NaN with the new door; the doors "
     "of the folder were decompose and expand-chlo then, complex-to-pairs is a third since"),
    ("lowering.tiles.expanding.coefficients", "2.4801587289489743e-05, -2.755731435448511e-07,",
     "2.4801587289489743e-05, -2.755731435448511e-07, -0.9999999979124277,", MISSED,
     "sines and cosines in f64 are wrong; the doors for tiles expand no functions, and machine code was held to the "
     "same wrong expansion: it is held to the reference since"),
    ("lowering.xla.products",
     "size == gap and stride == gap - 1 and gap > 1 and (*pair,) == (0, 0) and apart == 1",
     "size == gap and stride == gap + 1 and gap > 1 and (*pair,) == (0, 0) and apart == 1", MISSED,
     "a convolution with kernels of 3, the input dilated by 3 and strides of 2 ends XLA's process; no program has one"),
    ("memory.cpsat", "WORKERS = 1", "WORKERS = 0", MISSED,
     "the solver runs on all processors: places are valid, and others at each run; no door compares two runs"),
    ("frontends.onnx.operators.loop_known", "return False", "return True", MISSED,
     "a Loop of three known turns over an input, `x + x`, ends in InvalidModelError: it is taken for one of constants; "
     "of the nodes that the door makes, none is a Loop, and trips of the suite's are inputs"),
    ("lowering.triton.estimates", "PIECES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)",
     "PIECES = (2, 3, 5, 6, 8, 12, 16, 24, 32, 48, 64)", LESS,
     "into how many pieces sums may be split when settings are estimated: another schedule, as right"),
    ("runtime.cpu.executor", "for segment in self.segments:", "for segment in []:", MISSED,
     "`model.memory()` of any model says 0 bytes; the doors look at results, and at no report of memory"),
    ("frontends.jaxpr.linalg", "_check_subset(ctx, shape[-2] if shape[-2] == ctx.out_aval().shape[-1] else shape[-1])",
     "_check_subset(ctx, shape[- 1] if shape[-2] == ctx.out_aval().shape[-1] else shape[-1])", MISSED,
     "`lax.linalg.svd` of [2, 3] with `subset_by_index=(0, 2)`, which is all, is refused; no function has a subset"),
    ("lowering.triton.printing", "return index > 0", "return index >= 0", SAME,
     "asked of constant positions alone; the first operand is a buffer, or what describes one"),
    ("pairs.transforms", "factor = max((k for k in range(2, math.isqrt(n) + 1) if n % k == 0), default=1)",
     "factor = max((k for k in range(2, math.isqrt(n) + 1) if n % k == 0), default= 0)", SAME,
     "a length without factors is asked only whether its factor is more than 1"),
    ("frontends.onnx.model.values", "if flat.itemsize not in (1, 2, 4, 8):",
     "if flat.itemsize not in (1, 2, 4, 7):", LESS,
     "an initializer of 8 bytes an element that repeats one is kept as all its elements in place of the one"),
    ("analysis.indexing.contraction", "for k, j in pairs.items():", "for k, j in []:", MISSED,
     "ragged_dot ends in a StopIteration; no program of the door had one (they have since, and find it)"),
    ("autodiff.products", "copies = b.broadcast(x, shape, range(1, len(shape)))",
     "copies = b.broadcast(x, shape, range( 0, len(shape)))", MISSED,
     "the gradient of a ragged_dot ends in a ValueError; no program of the door had one (they have since)"),
    ("frontends.jaxpr.elementwise",
     "if not is_complex(dtype_text(x.type)) or op not in (hlo.MaximumOp, hlo.MinimumOp):",
     "if  is_complex(dtype_text(x.type)) or op not in (hlo.MaximumOp, hlo.MinimumOp):", MISSED,
     "`lax.max` of complex numbers; no function of the door had one (they have since, and find it)"),
    ("lowering.triton.printing", "if min(*static_shape(op.lhs), *static_shape(op.rhs)) < 16:",
     "if not min(*static_shape(op.lhs), *static_shape(op.rhs)) < 16:", MISSED,
     "every product of tiles of 16 and more is refused; the doors counted it under `not supported`, and went on "
     "(kernels of one op may not be refused since: found)"),
    ("padding.programs", "while True:", "while False:", LESS,
     "functions that nothing calls any more stay in the program"),
    ("autodiff.trips", "if depth == 0:", "if depth != 0:", MISSED,
     "the gradient of every loop is refused, as one that nothing bounds; the door counted it under `not supported` "
     "(one op alone may not be refused since: found)"),
    ("lowering.triton.estimates", "rate = machine.contraction if narrow else machine.wide_contraction",
     "rate = machine.contraction if not narrow else machine.wide_contraction", LESS,
     "the time by which settings are ranked: other schedules, as right"),
    ("autodiff.windows", 'if any(pair != (0, 0) for i, pair in enumerate(w["padding"]) if i != axis):',
     'if any(pair == (0, 0) for i, pair in enumerate(w["padding"]) if i != axis):', MISSED,
     "the gradient of a running product over [n, m] that is padded along the other dimension ends in an error; few "
     "programs had such windows (more have since)"),
    ("lowering.xla.survey", 'if op.name == "stablehlo.reduce":', 'if op.name != "stablehlo.reduce":', LESS,
     "counts reductions to a number, for which XLA takes a faster library: the same values"),
    ("frontends.jaxpr.jax_api", 'column = f":{frame.start_column}" if frame.start_column else ""',
     'column = f":{frame.start_column}" if not frame.start_column else ""', LESS,
     "the column in the text of a location; programs are the same"),
    ("analysis.indexing.simplify", "atom = as_atom(_term(monomial, 1))", "atom = as_atom(_term(monomial, 0))", LESS,
     "of quotients, less is known to be at least 0: maps keep functions that could go"),
    ("lowering.llvm.clibrary.containers",
     'b"\\x7fELF", 2, 1, 1, 0, 0, 1, machine, 1, 0, 0, len(body), flags, _HEADER.size, 0, 0, SECTION_ENTRY.size,',
     'b"\\x7fELF", 2, 1, 1, 0, 1, 1, machine, 1, 0, 0, len(body), flags, _HEADER.size, 0, 0, SECTION_ENTRY.size,', SAME,
     "the version of an ABI that the header does not name: linkers do not look at it"),
    ("frontends.onnx.engine.shortening",
     "long = dict.fromkeys(s for v in tensors for s in _sizes(v) if isinstance(s, Dim) and len(str(s)) > _LONG)",
     "long = dict.fromkeys(s for v in tensors for s in _sizes(v) if isinstance(s, Dim) or len(str(s)) > _LONG)", LESS,
     "once a formula does not fit, short ones get symbols too, which the plan binds to the same values"),
    ("targets.cpu", "return code_texts(program, VARIANTS[self.variants[0]])",
     "return code_texts(program, VARIANTS[self.variants[ 1]])", MISSED,
     "`gcomp report` of a model for one kind of processor ends in an IndexError; the doors look at no report"),
    ("padding.contraction", 'grouped = op.value("feature_group_count") > 1 or op.value("batch_group_count") > 1',
     'grouped = op.value("feature_group_count") > 0 or op.value("batch_group_count") > 1', MISSED,
     "every convolution with padded features is refused, as one with groups; the door counts it under `not supported`"),
    ("memory.search", "self.shaken += 1", "self.shaken += 2", LESS,
     "every other order is searched: places are valid, and arenas may grow"),
    ("memory.search", "self.short_steps = 2.0 * len(layout.size)", "self.short_steps = 3.0 * len(layout.size)", LESS,
     "how long a short search is"),
    ("frontends.fx.files",
     "if info.compress_type != zipfile.ZIP_STORED or info.file_size > (limit or self.path.stat().st_size):",
     "if info.compress_type != zipfile.ZIP_STORED and info.file_size > (limit or self.path.stat().st_size):", MISSED,
     "a part that is compressed, or one that is too large, is read; the door makes programs, and no broken files"),
    ("lowering.tiles.expanding.exponentials", "size = abs(x).at_most(25.0)", "size = abs(x).at_most( 26.0)", SAME,
     "the hyperbolic tangent of 20 is 1 in f64 already"),
    ("frontends.onnx.model.reading", "while cause.__cause__ is not None:", "while cause.__cause__ is None:", MISSED,
     "an error of a library underneath ends in an AttributeError; the door makes models that can be read"),
    ("padding.lengths", 'return "i32" if greatest is not None and greatest < _I32 else "i64"',
     'return "i32" if greatest is not None or greatest < _I32 else "i64"', MISSED,
     "a size without a bound ends in a TypeError; the sizes of the door have bounds"),
    ("decompositions.special", "series = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, start=1)]",
     "series = [b / (2 * k * (2 * k + 1)) for k, b in enumerate(_BERNOULLI, start=1)]", MISSED,
     "polygamma of orders above 20 in f64 is wrong; programs have few, of small orders"),
    ("runtime.cpu.calls", "if (got := [(result.shape, result.dtype) for result in results]) != types:",
     "if (got := [(result.shape, result.dtype) for result in results]) == types:", MISSED,
     "a factorization in a loop or branch is refused when it is called; programs of the door have none there"),
    ("frontends.jaxpr.devices", "return ctx[0]", "return ctx[ -1]", SAME, "the op has one operand"),
    ("lowering.triton.estimates",
     'if launch.kind_name not in ("matmul", "convolution") or space_of(launch) is None:',
     'if launch.kind_name not in ("matmul", "convolution") or space_of(launch) is not None:', LESS,
     "the time by which settings are ranked: other schedules, as right"),
    ("decompositions.scan", "front = [axis, *(i for i in range(rank) if i != axis)]",
     "front = [axis, *(i for i in range(rank) if i == axis)]", MISSED,
     "the gradient of a chlo.scan of a matrix ends in a VerifyException; no pass of the folder's doors uses the file; "
     "derivatives and padding do (the door of derivatives is its first since: found)"),
)  # fmt: skip
"""Module without `gcomp.`, line before, line after, which of the three, and why or by what."""


def explanation(module: str, before: str, after: str) -> tuple[str, str] | None:
    """Which of the three a change is, and why; None where nobody knows yet."""
    known = _KNOWN.get((module.removeprefix("gcomp."), squeezed(before), squeezed(after)))
    if known is None and (why := why_equivalent(module, before, after)) is not None:
        return SAME, why
    return known


_KNOWN = {(module, squeezed(a), squeezed(b)): (which, why) for module, a, b, which, why in KNOWN}
