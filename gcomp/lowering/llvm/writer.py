"""Text of one LLVM function: instructions, loops, and memory on the stack. What is computed twice is computed once."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from gcomp.dtypes import stored_width

Index = int | str
"""A position while a kernel runs: a number known when it is printed, or the name of an i64."""


@dataclass(eq=False)
class Space:
    """Memory on the stack."""

    name: str
    bytes: int


class Writer:
    """Writes a function's body."""

    def __init__(self) -> None:
        self._lines: list[str | list[str]] = []
        """Lines, and before each loop those that it needs and that are the same in all its iterations."""
        self.declared: dict[str, None] = {}
        """Declarations of intrinsics that are called."""
        self.label = "entry"
        """The block that is being written."""
        self._spaces: list[Space] = []
        self._free: list[Space] = []
        self._count = 0
        self._scopes: list[dict[str, str]] = [{}]
        """What has run: values by their instructions, for the code around and each loop inside of it."""
        self._before: list[list[str]] = []
        """The lines before each loop that is being written."""
        self._depths: dict[str, int] = {}
        """How many loops are around what computes a value."""
        self._sums: dict[str, tuple[str, int]] = {}
        """Of a position, or an address, that is another one and a number: both."""

    # ---- instructions ----

    def fresh(self, prefix: str = "") -> str:
        """A new name, without a sigil."""
        self._count += 1
        return f"{prefix or 'v'}{self._count}"

    def emit(self, line: str) -> None:
        """Write an instruction that has no result, such as a store or a branch."""
        self._lines.append(f"  {line}")

    def value(self, code: str) -> str:
        """The value of an instruction that reads memory."""
        name = f"%{self.fresh()}"
        self.emit(f"{name} = {code}")
        self._depths[name] = len(self._before)
        return name

    def pure(self, code: str) -> str:
        """The value of an instruction that depends on its operands alone: computed once, before loops that do not
        change it."""
        for scope in reversed(self._scopes):
            if code in scope:
                return scope[code]
        depth, innermost = 0, len(self._before)
        if innermost:
            for name in _NAME.findall(code):
                depth = max(depth, self._depths.get(name, 0))
                if depth == innermost:
                    break
        if depth == innermost:
            found = self.value(code)
        else:
            found = f"%{self.fresh()}"
            self._before[depth].append(f"  {found} = {code}")
            self._depths[found] = depth
        self._scopes[depth][code] = found
        return found

    def call(self, name: str, result: str, arguments: Sequence[tuple[str, str]]) -> str:
        """The value of an intrinsic without effects."""
        self.declare(name, result, [type for type, _ in arguments])
        return self.pure(f"call {result} @{name}({', '.join(f'{type} {value}' for type, value in arguments)})")

    def keep_order(self) -> None:
        """Nothing that follows is read from memory earlier than what is written here: what is read far ahead of its use
        takes registers."""
        self.emit('call void asm sideeffect "", "~{memory}"()')

    def declare(self, name: str, result: str, arguments: Sequence[str]) -> None:
        """Say that a function is called."""
        self.declared[f"declare {result} @{name}({', '.join(arguments)})"] = None

    # ---- control ----

    def start(self, label: str) -> None:
        """Begin a block."""
        self._lines.append(f"{label}:")
        self.label = label

    def mark(self) -> str:
        """A mark that is known as long as what is written here has run before what is written."""
        scope = self._scopes[-1]
        return scope.setdefault("mark", self.fresh("mark"))

    def knows(self, mark: str) -> bool:
        """Whether what was written where a mark was made has run."""
        return any(scope.get("mark") == mark for scope in self._scopes)

    def ahead(self) -> list[str]:
        """A place before code that may run often or not at all, for what is the same whenever it runs."""
        lines: list[str] = []
        self._lines.append(lines)
        return lines

    @contextmanager
    def scope(self, before: list[str]) -> Generator[None]:
        """What is computed inside is not known outside: the code inside may not run. `before` is made by `ahead`."""
        self._scopes.append({})
        self._before.append(before)
        try:
            yield
        finally:
            self._scopes.pop()
            self._before.pop()

    def loop(
        self, lower: str, upper: str, step: int, carried: Sequence[tuple[str, str]],
        body: Callable[[str, Sequence[str]], Sequence[str]], type: str = "i64",
    ) -> list[str]:  # fmt: skip
        """`for index in range(lower, upper, step)`: `body` takes the index and the carried values (type, value).

        The carried values after the loop. `upper - lower + step` must not overflow.
        """
        before, head, inside, after = self.label, *(self.fresh(name) for name in ("head", "body", "after"))
        index, names = f"%{self.fresh('i')}", [f"%{self.fresh('c')}" for _ in carried]
        ahead = self.ahead()
        self.emit(f"br label %{head}")
        self.start(head)
        place = len(self._lines)
        test = self.value(f"icmp slt {type} {index}, {upper}")
        self.emit(f"br i1 {test}, label %{inside}, label %{after}")
        self.start(inside)
        with self.scope(ahead):
            self._depths.update(dict.fromkeys((index, *names), len(self._before)))
            results = body(index, names)
            following = self.value(f"add nsw {type} {index}, {step}")
        end = self.label
        self.emit(f"br label %{head}")
        phis = [f"  {index} = phi {type} [ {lower}, %{before} ], [ {following}, %{end} ]"]
        for name, (kind, value), result in zip(names, carried, results, strict=True):
            phis.append(f"  {name} = phi {kind} [ {value}, %{before} ], [ {result}, %{end} ]")
        self._lines[place:place] = phis
        self.start(after)
        self._depths.update(dict.fromkeys(names, len(self._before)))
        return names

    # ---- positions ----

    def add(self, a: Index, b: Index) -> Index:
        """a + b. Numbers are added last: what differs by a number from another position is it and a number."""
        (first, one), (second, other) = self._parts(a), self._parts(b)
        if first and second:
            first = self.pure(f"add nsw i64 {first}, {second}")
        found, number = first or second, one + other
        return (
            number if not found else found if not number else self._sum(f"add nsw i64 {found}, {number}", found, number)
        )

    def multiply(self, a: Index, factor: int) -> Index:
        """a * factor."""
        found, number = self._parts(a)
        if not found or factor == 0:
            return number * factor
        return self.add(found if factor == 1 else self.pure(f"mul nsw i64 {found}, {factor}"), number * factor)

    def place(self, address: str, index: Index, bytes: int = 1) -> str:
        """The address of element `index`, of so many bytes each, which lie before each other where that is negative.
        Numbers are added last, since processors add them for nothing when they read or write."""
        (first, one), (found, other) = self._sums.get(address, (address, 0)), self._parts(index)
        if found:
            found = self.pure(f"sub i64 0, {found}") if bytes < 0 else found
            first = self.pure(f"getelementptr [{abs(bytes)} x i8], ptr {first}, i64 {found}")
        number = one + other * bytes
        return first if not number else self._sum(f"getelementptr i8, ptr {first}, i64 {number}", first, number)

    def _parts(self, index: Index) -> tuple[str, int]:
        """A position as another one, or none, and a number."""
        return ("", index) if isinstance(index, int) else self._sums.get(index, (index, 0))

    def _sum(self, code: str, base: str, number: int) -> str:
        """What an instruction computes, which is a value and a number."""
        found = self.pure(code)
        self._sums[found] = base, number
        return found

    def divide(self, a: Index, divisor: int) -> Index:
        """a // divisor, of a that is not negative."""
        if isinstance(a, int):
            return a // divisor
        if divisor & (divisor - 1):
            return self.pure(f"udiv i64 {a}, {divisor}")
        return a if divisor == 1 else self.pure(f"lshr i64 {a}, {divisor.bit_length() - 1}")

    def rest(self, a: Index, divisor: int) -> Index:
        """a % divisor, of a that is not negative."""
        if isinstance(a, int):
            return a % divisor
        if divisor & (divisor - 1):
            return self.pure(f"urem i64 {a}, {divisor}")
        return 0 if divisor == 1 else self.pure(f"and i64 {a}, {divisor - 1}")

    # ---- the stack ----

    def space(self, bytes: int) -> Space:
        """Memory on the stack, aligned to 64 bytes."""
        for space in self._free:
            if space.bytes == bytes:
                self._free.remove(space)
                return space
        space = Space(f"%{self.fresh('space')}", bytes)
        self._spaces.append(space)
        return space

    def release(self, kept: set[Space]) -> None:
        """All memory but this may be used anew."""
        self._free = [space for space in self._spaces if space not in kept]

    @property
    def spaces(self) -> Sequence[Space]:
        """All memory on the stack."""
        return self._spaces

    def text(self, name: str, parameters: str, first: Sequence[str]) -> str:
        """The function; `first` are lines that come before all others."""
        stack = [f"  {space.name} = alloca [{space.bytes} x i8], align 64" for space in self._spaces]
        head = f"define void @{name}({parameters}) #0 {{"
        return "\n".join([head, "entry:", *stack, *first, *self.lines(), "  ret void", "}"])

    def lines(self) -> list[str]:
        """What was written, in order."""
        return [line for found in self._lines for line in ([found] if isinstance(found, str) else found)]


_NAME = re.compile(r"%[\w.]+")


# ---- types --------------------------------------------------------------------------------------------------------

_FLOATS = {"f32": "float", "f64": "double"}


@cache
def scalar_type(dtype: str) -> str:
    """LLVM's type of an element; narrow floats are their bits."""
    return _FLOATS.get(dtype, f"i{_bits(dtype)}")


def _bits(dtype: str) -> int:
    """Floats of fewer than 8 bits are held by bytes."""
    return 1 if dtype == "i1" else stored_width(dtype)


@cache
def type_of(dtype: str, count: int) -> str:
    """LLVM's type of so many lanes."""
    return vector(scalar_type(dtype), count)


@cache
def vector(type: str, count: int) -> str:
    """A vector of a type; one lane is a scalar."""
    return type if count == 1 else f"<{count} x {type}>"


@cache
def suffix(dtype: str, count: int) -> str:
    """How intrinsics name a type."""
    scalar = {"f32": "f32", "f64": "f64"}.get(dtype, f"i{_bits(dtype)}")
    return scalar if count == 1 else f"v{count}{scalar}"


def stored_type(dtype: str) -> str:
    """LLVM's type of an element in memory: truth values are bytes."""
    return "i8" if dtype == "i1" else scalar_type(dtype)


def stored_bytes(dtype: str) -> int:
    """The bytes of an element in memory."""
    return stored_width(dtype) // 8
