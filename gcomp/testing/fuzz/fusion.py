"""Fusion: which ops become which kernels, held to what is counted anew of the result.

What fusion decides cannot be seen in what programs compute. So its decisions are held to laws: groups make what others
read, in an order; a kernel's bytes and work are those that a count over its ops gives; what the steps say that they
save is what the whole saves; and no two kernels stay apart that may be one and would save time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from gcomp.analysis.fusion.decide import WORTHLESS, Decisions, decide, unfused_reasons
from gcomp.analysis.fusion.groups import Group
from gcomp.analysis.machines import Machine, machine_named
from gcomp.analysis.work import Nominal, flops_per_element
from gcomp.errors import UnsupportedError, VerificationError
from gcomp.ir.program import Program
from gcomp.ir.roles import Role, role_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.fusion.fuse import blocks_to_cut
from gcomp.passes.pipelines import TO_FUSION
from gcomp.passes.registry import parse_pipeline
from gcomp.testing.fuzz.door import ProgramDoor, Seen, Wrong
from gcomp.testing.generate.around import around, topic_of
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.inputs import inputs_for
from gcomp.testing.generate.program import seeded_program

Array = np.ndarray[Any, Any]

MACHINES = ("sm_90", "cpu")
_RANDOM = 3
"""Every so many-th program is any; the others are around any op in its turn, and around what reduces and moves."""
STEPS = ("reduce", "softmax", "norm", "broadcast", "dot", "matmul", "binary", "transpose", "reshape", "slice",
         "concatenate", "wider-reduce", "convolution", "select", "reduce-window", "sort", "cumulative")  # fmt: skip
_MOST_OPS = (64, 64, 64, 3, 8)
_CLOSE = 1e-9
"""Seconds are sums: in another order they differ by rounding."""


class Fusion(ProgramDoor):
    """Decisions of fusion."""

    name: ClassVar[str] = "fusion"
    summary: ClassVar[str] = "which ops become which kernels, beside what is counted of the result"
    components: ClassVar[str] = "laws of fusion"

    def expected(self) -> Sequence[str]:
        return [*LAWS]

    def program(self, number: int, size: int) -> Program:
        turn, kind = divmod(number, _RANDOM)
        if kind == 0:
            return seeded_program(number, size)
        return around(turn, Seeded(number), 6, steps=() if kind == 1 else STEPS)

    def topic(self, number: int) -> str:
        turn, kind = divmod(number, _RANDOM)
        return "random" if kind == 0 else topic_of(turn, () if kind == 1 else STEPS)

    def inputs(self, number: int, program: Program) -> list[Array]:
        """Any: a program is made small on a run of it."""
        return inputs_for(program, number, "whole")

    def transform(self, program: Program, number: int) -> object:
        return [*_decide_blocks(program, number)]

    def judge(self, program: Program, inputs: Sequence[Array], number: int, seen: Seen) -> Wrong | None:
        try:
            for block, decisions, most in _decide_blocks(program.clone(), number):
                for name, law in LAWS.items():
                    if found := law(block, decisions, most):
                        return Wrong("law", f"{name}: {found}", name, name)
                    seen.components[name] += 1
        except (UnsupportedError, VerificationError):
            raise
        except Exception as error:  # whatever the search makes of it
            return Wrong("crash", f"{type(error).__name__}: {error}", type(error).__name__)
        return None

    def singles(self, program: Program, inputs: Sequence[Array]) -> Iterator[tuple[Operation, Program, list[Array]]]:
        return iter(())  # one op alone is one kernel


@cache
def _steps() -> Sequence[Pass]:
    return parse_pipeline(TO_FUSION)


@cache
def _machine(name: str) -> Machine:
    return machine_named(name)


def _decide_blocks(program: Program, number: int) -> Iterator[tuple[Block, Decisions, int]]:
    """What is decided of each block of a program that is ready for it, and how many ops a kernel may have."""
    for step in _steps():
        step.run(program, PassContext())
    choices = Seeded(number)
    machine, most = _machine(choices.chosen(MACHINES)), choices.chosen(_MOST_OPS)
    for block in blocks_to_cut(program):
        yield block, decide(block, Nominal(program.ranges), machine, max_ops=most), most


# ---- laws -----------------------------------------------------------------------------------------------------------


def _in_order(block: Block, decisions: Decisions, most: int) -> str:
    """Each group comes after those whose results it reads, which write them."""
    flow, groups = decisions.flow, decisions.groups
    written: set[SSAValue] = set(block.args)
    done: set[int] = set()
    for group in groups.ordered():
        inside = {v for i in group.members for v in flow.ops[i].results}
        for i in group.members:
            for value in flow.reads[i]:
                maker = flow.producer.get(value)
                if value not in inside and maker is not None and value not in written:
                    return f"{flow.ops[i].name} reads {flow.ops[maker].name}, which no group before it writes"
        wanted = group.members if group.fixed else groups.outputs(group.members, (group,))
        written.update(v for i in wanted for v in flow.ops[i].results)
        done.update(group.members)
    last = block.last_op
    missing = [v for v in (() if last is None else last.operands) if v in flow.producer and v not in written]
    if missing:
        return f"{flow.ops[flow.producer[missing[0]]].name} is returned, and no group writes it"
    return ""


def _small_enough(block: Block, decisions: Decisions, most: int) -> str:
    """Check that no fused group exceeds the op limit, or holds side effects or control flow."""
    for group in decisions.groups.ordered():
        ops = [decisions.flow.ops[i] for i in group.members]
        merged = [
            v for v in decisions.verdicts if v.fused and v.step != "copies" and set(v.first) <= set(group.members)
        ]
        if merged and len(ops) - group.spare > most:
            return f"a kernel has {len(ops)} ops, and may have {most}"
        if len(ops) > 1 and (odd := next((op for op in ops if role_of(op) in _ALONE), None)):
            return f"{odd.name} shares a kernel"
        if not group.fixed and ops[-1].regions and role_of(ops[-1]) in _ALONE:
            return f"{ops[-1].name} is a kernel"
    return ""


_ALONE = frozenset({Role.CONTROL, Role.EFFECT, Role.SOURCE, Role.LIBRARY, Role.HOST})


def _describe_cost(block: Block, decisions: Decisions, most: int) -> str:
    """The bytes and the work of a kernel, as its ops have them: exactly where all go element by element."""
    flow, nominal = decisions.flow, decisions.flow.nominal
    for group in decisions.kernels():
        kernel, ops = decisions.kernel(group), [flow.ops[i] for i in group.members]
        outputs = [v for i in _written_ops(decisions, group) for v in flow.ops[i].results]
        written = sum(nominal.bytes(v) for v in outputs)
        if kernel.written_bytes != written:
            return f"a kernel of {_names(ops)} writes {written} bytes, and says {kernel.written_bytes}"
        inside = {v for op in ops for v in op.results}
        read = [v for v in dict.fromkeys(v for op in ops for v in op.operands) if v not in inside]
        if not 0 <= kernel.read_bytes <= _PASSES * sum(map(nominal.bytes, read)):
            return f"a kernel of {_names(ops)} reads more than its inputs: {kernel.read_bytes} bytes"
        if all(role_of(op) is Role.ELEMENTWISE and _is_alike(op) for op in ops):
            work = sum(nominal.elements(op.results[0]) * flops_per_element(op) for op in ops)
            if (kernel.read_bytes, kernel.flops) != (sum(map(nominal.bytes, read)), work):
                return f"a kernel of {_names(ops)} says {kernel.read_bytes} bytes read and {kernel.flops} operations"
        if kernel.seconds < max(kernel.moved_bytes / decisions.machine.bandwidth, decisions.machine.launch):
            return f"a kernel of {_names(ops)} takes {kernel.seconds} s, less than its bytes do"
    return ""


_PASSES = 3
"""Kernels go over what they read so often at most: a maximum, a sum, what needs both."""


def _written_ops(decisions: Decisions, group: Group) -> list[int]:
    """The ops of a group that write to memory: returned, or read in a group that does not compute them itself."""
    flow, groups = decisions.flow, decisions.groups
    others = [g for g in groups.ordered() if g is not group]
    found: list[int] = []
    for i in group.members:
        read = any(i not in g.members and any(u in g.members for u in flow.users[i]) for g in others)
        if groups.home.get(i) is group and (i in flow.returned or read):
            found.append(i)
    return found


def _is_alike(op: Operation) -> bool:
    return all(v.type == op.results[0].type for v in op.operands) and len(op.results) == 1


def _names(ops: Sequence[Operation]) -> str:
    return " + ".join(op.name for op in ops[:6])


def _saves_what_it_says(block: Block, decisions: Decisions, most: int) -> str:
    """What the kernels take, and what the steps say that they saved, are what single ops take."""
    alone = decide(block, decisions.flow.nominal, decisions.machine, max_ops=most, allow=lambda _: False)
    before, after = (sum(d.kernel(g).seconds for g in d.kernels()) for d in (alone, decisions))
    saved = sum(v.gain for v in decisions.verdicts if v.fused)
    if abs(before - after - saved) > _CLOSE * before:
        return f"ops take {before} s, kernels {after} s, and {saved} s is said to be saved"
    if any(v.gain <= 0 for v in decisions.verdicts if v.fused):
        return "a step that saves nothing was taken"
    return ""


def _nothing_left(block: Block, decisions: Decisions, most: int) -> str:
    """No two kernels stay apart, one of which reads the other, that may be one and would save time."""
    for verdict in unfused_reasons(decisions, max_ops=most):
        if verdict.reason == WORTHLESS and verdict.gain > 0:
            ops = [decisions.flow.ops[i] for i in (*verdict.first, *verdict.second)]
            return f"{_names(ops)} would save {verdict.gain} s as one kernel, and are two"
    return ""


LAWS: Mapping[str, Callable[[Block, Decisions, int], str]] = {
    "groups are in order": _in_order, "kernels are small enough": _small_enough, "costs are counted": _describe_cost,
    "gains add up": _saves_what_it_says, "nothing is left to merge": _nothing_left,
}  # fmt: skip
"""The laws by name: what is wrong, empty for nothing."""


__all__ = ["Fusion"]
