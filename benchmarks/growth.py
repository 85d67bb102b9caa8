"""How long fusion, ordering and planning of memory take as programs grow.

    python -m benchmarks.growth [--blocks 100,500,1500,4000]

Programs of so many blocks: two products with a softmax between them, and a residual sum. Processor time of each step,
and microseconds an op.
"""

from __future__ import annotations

import argparse
import time

from rich.console import Console
from rich.table import Table

from gcomp.ir.program import Program
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline

STEPS = ("fuse", "order-for-memory", "plan-memory")
SQUARE, ROW, COLUMN = "tensor<64x64xf32>", "tensor<64xf32>", "tensor<f32>"


def block(i: int, x: str) -> tuple[list[str], str]:
    """The lines of a block that reads `x`, and its result."""
    down = f"({SQUARE}, {COLUMN}) -> {ROW}"
    dot = f"contracting_dims = [1] x [0] : ({SQUARE}, {SQUARE}) -> {SQUARE}"
    up = f"dims = [0] : ({ROW}) -> {SQUARE}"
    lines = [
        f"%scores{i} = stablehlo.dot_general {x}, %k, {dot}",
        f"%top{i} = stablehlo.reduce(%scores{i} init: %low) applies stablehlo.maximum across dimensions = [1] : {down}",
        f"%tops{i} = stablehlo.broadcast_in_dim %top{i}, {up}",
        f"%below{i} = stablehlo.subtract %scores{i}, %tops{i} : {SQUARE}",
        f"%powers{i} = stablehlo.exponential %below{i} : {SQUARE}",
        f"%sum{i} = stablehlo.reduce(%powers{i} init: %zero) applies stablehlo.add across dimensions = [1] : {down}",
        f"%sums{i} = stablehlo.broadcast_in_dim %sum{i}, {up}",
        f"%weights{i} = stablehlo.divide %powers{i}, %sums{i} : {SQUARE}",
        f"%mixed{i} = stablehlo.dot_general %weights{i}, %v, {dot}",
        f"%next{i} = stablehlo.add %mixed{i}, {x} : {SQUARE}",
    ]
    return lines, f"%next{i}"


def program(blocks: int) -> Program:
    """A program of so many blocks, one after the other."""
    value, lines = "%x", list[str]()
    for i in range(blocks):
        more, value = block(i, value)
        lines += more
    body = "\n".join(lines)
    return Program.parse(f"""func.func @main(%x: {SQUARE}, %k: {SQUARE}, %v: {SQUARE}) -> {SQUARE} {{
      %low = stablehlo.constant dense<0xFF800000> : {COLUMN}
      %zero = stablehlo.constant dense<0.0> : {COLUMN}
      {body}
      return {value} : {SQUARE}
    }}""")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", default="100,500,1500,4000", help="how many blocks, separated by commas")
    console, table = Console(), Table("ops", *STEPS, "us an op")
    for blocks in map(int, parser.parse_args().blocks.split(",")):
        current = program(blocks)
        ops, taken = sum(1 for _ in current.block.ops), list[float]()
        for name in STEPS:
            start = time.process_time()
            PassManager(parse_pipeline(name)).run(current)
            taken.append(time.process_time() - start)
        table.add_row(f"{ops:,}", *(f"{t:.2f} s" for t in taken), f"{1e6 * sum(taken) / ops:.0f}")
    console.print(table)


if __name__ == "__main__":
    main()
