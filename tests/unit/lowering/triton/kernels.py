"""Kernels written by hand for the tests beside this file, and for those of the CUDA runtime."""

from __future__ import annotations

from gcomp import dims
from gcomp.lowering.triton.source import Argument, Configuration, KernelSource

HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"

X = Argument("x", "*fp32", "in")
Y = Argument("y", "*fp32", "in")
O = Argument("o", "*fp32", "out")
N = Argument("n", "i32", "size", 1)


def kernel(
    text: str, *arguments: Argument, grid: tuple[dims.Size, ...] = (1,), **configuration: object
) -> KernelSource:
    """A kernel from the text of its function."""
    name = text.partition("(")[0].removeprefix("def ")
    return KernelSource(name, HEAD + text, arguments, grid, Configuration(**configuration))  # type: ignore[arg-type]


ADD = kernel(
    """def add(x, y, o, n):
    i = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m, other=0.0) + tl.load(y + i, mask=m, other=0.0), mask=m)
""",
    X, Y, O, N, grid=(dims.parse("ceildiv(96*n, 1024)"),),
)  # fmt: skip
"""o = x + y, of n numbers."""

SOFTMAX = kernel(
    """def softmax(x, o):
    i = tl.arange(0, 128)
    m = i < 96
    v = tl.load(x + tl.program_id(0) * 96 + i, mask=m, other=float("-inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(o + tl.program_id(0) * 96 + i, e / tl.sum(e, 0), mask=m)
""",
    X, O, grid=(dims.symbol("n"),),
)  # fmt: skip
"""Each row of 96 numbers."""

PRODUCT = kernel(
    """def product(a, b, o):
    i = tl.arange(0, 256)
    k = tl.arange(0, 128)
    s = tl.zeros((256, 256), tl.float32)
    for t in range(0, 4096, 128):
        x = tl.load(a + i[:, None] * 4096 + k[None, :] + t)
        y = tl.load(b + (k[:, None] + t) * 256 + i[None, :])
        s = tl.dot(x, y, s)
    tl.store(o + i[:, None] * 256 + i[None, :], s)
""",
    Argument("a", "*bf16", "in"), Argument("b", "*bf16", "in"), O, num_warps=8, num_stages=4,
)  # fmt: skip
"""Tiles so large that they fit no architecture's shared memory."""

DESCRIPTOR = kernel(
    """def descriptor(x, o):
    d = tl.make_tensor_descriptor(x, shape=[64, 64], strides=[64, 1], block_shape=[32, 64])
    i = tl.arange(0, 32)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(o + tl.program_id(0) * 2048 + i, d.load([tl.program_id(0) * 32, 0]))
""",
    X, O, grid=(2,),
)  # fmt: skip
"""A copy by the tensor memory accelerator, where there is one: it needs scratch memory."""
