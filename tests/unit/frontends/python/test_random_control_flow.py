"""Random Python programs: what is compiled of them gives what Python gives.

The programs nest branches and loops with jumps in all of them, on conditions that are traced and on
others that are not. The judge is Python itself, on its own integers.
"""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

from gcomp.frontends.python.function import Traceable
from gcomp.reference.interpreter import interpret

NAMES = ("a", "b", "c", "d")


class Writer:
    """Writes one function of two integers."""

    def __init__(self, seed: int) -> None:
        self._choice = random.Random(seed)
        self._counters = 0

    def function(self) -> str:
        body = self.block(2, loops=0)
        lines = ["c, d = 1, 2", *body, "return a, b, c, d"]
        return "\n".join(["def function(a, b):", *(f"    {line}" for line in lines)])

    def block(self, depth: int, loops: int) -> list[str]:
        return [line for _ in range(self._choice.randint(1, 3)) for line in self.statement(depth, loops)]

    def statement(self, depth: int, loops: int) -> list[str]:
        simple, compound = ("set", "add", "jump"), ("set", "if", "if", "while", "for")
        kind = self._choice.choice((*simple, *compound) if depth else simple)
        name = self._choice.choice(NAMES)
        if kind == "set":
            return [f"{name} = {self.expression()}"]
        if kind == "add":
            return [f"{name} += {self._choice.choice(NAMES)} % 5"]
        if kind == "if":
            return self.branches(depth, loops)
        if kind == "while":
            return self.counted_while(depth, loops)
        if kind == "for":
            self._counters += 1
            bound = self._choice.choice((f"{name} % 4", "3", f"1, {name} % 5", f"{name} % 4, 0, -1"))
            lines = [f"for i{self._counters} in range({bound}):", *self.inner(depth, loops + 1)]
            return lines + (["else:", *self.inner(depth, loops)] if self._choice.random() < 0.3 else [])
        jumps = ["return b, a, d, c"] if self._choice.random() < 0.3 else []
        jumps += ["break", "continue"] if loops else []
        return [f"if {self.condition()}:", f"    {self._choice.choice(jumps)}"] if jumps else ["a = a + 1"]

    def inner(self, depth: int, loops: int) -> list[str]:
        return [f"    {line}" for line in self.block(depth - 1, loops)]

    def branches(self, depth: int, loops: int) -> list[str]:
        lines = [f"if {self.condition()}:", *self.inner(depth, loops)]
        if self._choice.random() < 0.3:
            lines += [f"elif {self.condition()}:", *self.inner(depth, loops)]
        return lines + (["else:", *self.inner(depth, loops)] if self._choice.random() < 0.6 else [])

    def counted_while(self, depth: int, loops: int) -> list[str]:
        self._counters += 1
        counter = f"k{self._counters}"
        test = self._choice.choice((self.condition(), "True"))
        body = [f"    {counter} += 1", *self.inner(depth, loops + 1)]
        lines = [f"{counter} = 0", f"while {counter} < 4 and ({test}):", *body]
        return lines + (["else:", *self.inner(depth, loops)] if self._choice.random() < 0.2 else [])

    def expression(self) -> str:
        x, y = self._choice.choices(NAMES, k=2)
        n = self._choice.randint(-3, 7)
        return self._choice.choice(
            (f"({x} + {n}) % 97", f"({x} * {y}) % 89", f"{x} - {y}", f"{x} // 2", f"{x} if {self.condition()} else {n}",
             f"({y} - {x}) % 7", str(n), x)
        )  # fmt: skip

    def condition(self, depth: int = 1) -> str:
        x, y = self._choice.choices(NAMES, k=2)
        n = self._choice.randint(-2, 9)
        simple = (f"{x} > {n}", f"{x} % 3 == {y} % 3", f"{x} < {y}", f"0 <= {x} < {n} + 3", f"{x} != {n}", f"c >= {n}")
        if not depth or self._choice.random() < 0.6:
            return self._choice.choice(simple)
        left, right = self.condition(0), self.condition(0)
        return self._choice.choice((f"{left} and {right}", f"{left} or {right}", f"not ({left})"))


def loaded(source: str, path: Path) -> FunctionType:
    path.write_text(source, "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = module.function
    assert isinstance(function, FunctionType)
    return function


def run_compiled(function: Callable[..., object]) -> Callable[[int, int], list[int]]:
    traceable = Traceable(function, {})
    call = traceable.call((np.int64(0), np.int64(0)), {})
    traced = traceable.trace(call)

    def run(a: int, b: int) -> list[int]:
        given = [np.asarray(a), np.asarray(b)]
        results = traced.results([] if traced.program is None else interpret(traced.program, given))
        return [int(x) for x in results]

    return run


INPUTS = ((0, 0), (1, 5), (8, 3), (-4, 2), (30, -7))


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int, tmp_path: Path) -> None:
    source = Writer(seed).function()
    function = loaded(source, tmp_path / f"random_program_{seed}.py")
    run = run_compiled(function)
    for a, b in INPUTS:
        assert run(a, b) == list(function(a, b)), f"{source}\nof {a}, {b}"
