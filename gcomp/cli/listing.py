"""`gcomp opt --list-rules`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gcomp.ir.rules import Rule
from gcomp.passes.registry import all_passes
from gcomp.testing.prove import Proof, prove
from gcomp.testing.prove.catalog import pattern_status, rewrites_of, status_of
from gcomp.testing.prove.text import term_text


def list_rules_command(proving: bool) -> None:
    """List the rewrites of all passes with their classes and what is proved of them; prove the rules first if asked."""
    table = Table("pass", "rewrite", "class", "status", "what it does")
    refuted: list[Proof] = []
    for name, rewrite, exactness, status, law in _rows(proving, refuted):
        # Types and terms have brackets, which are markup to the table.
        table.add_row(*map(Text, (name, rewrite, exactness, status, law)))
    console = Console()
    console.print(table)
    for proof in refuted:
        console.print(Text(str(proof)))


def _rows(proving: bool, refuted: list[Proof]) -> Iterator[tuple[str, str, str, str, str]]:
    for name, cls in all_passes().items():
        rules, patterns = rewrites_of(cls)
        for rule in rules:
            law = f"{term_text(rule.lhs)} -> {term_text(rule.rhs)}"
            yield name, rule.name, rule.exactness.name, _status(rule, proving, refuted), law
        for pattern in patterns:
            law = " ".join((pattern.__doc__ or "").split("\n\n")[0].split())
            yield name, pattern.name, pattern.exactness.name, f"imperative, {pattern_status(pattern)}", law


def _status(rule: Rule, proving: bool, refuted: list[Proof]) -> str:
    if not proving:
        return status_of(rule)
    proof = prove(rule)
    if proof.counterexample is not None:
        refuted.append(proof)
    return proof.status.value
