"""`gcomp opt --list-rules`."""

from __future__ import annotations

from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

from gcomp import owners
from gcomp.errors import GcompError, UsageError
from gcomp.ir.rules import Rule
from gcomp.passes.registry import all_passes, parse_pipeline
from gcomp.testing.prove import Proof, prove
from gcomp.testing.prove.catalog import pattern_status, rewrites_of, status_of
from gcomp.testing.prove.text import term_text


def list_rules_command(proving: bool, pipeline: str | None = None) -> None:
    """List the rewrites of all passes, or of those of a pipeline, with their classes and what is proved of them.

    If asked, the rules are proved first; each proof of the passes that are named is said, else those that are refuted.
    """
    named = all_passes() if pipeline is None else {step.name: type(step) for step in parse_pipeline(pipeline)}
    table = Table("pass", "rewrite", "class", "status", "what it does")
    said: list[Proof] = []
    listed: set[int] = set()
    for name, cls in named.items():
        rules, patterns = rewrites_of(cls)
        rules = [rule for rule in rules if id(rule) not in listed]
        listed.update(map(id, rules))
        for rule in track(rules, name, console=Console(stderr=True), transient=True) if proving else rules:
            status = status_of(rule)
            if proving:
                proof = _proof(rule, name)
                status = proof.status.value
                if pipeline is not None or proof.counterexample is not None:
                    said.append(proof)
            law = f"{term_text(rule.lhs)} -> {term_text(rule.rhs)}"
            _add(table, name, rule.name, rule.exactness.name, status, law)
        for pattern in patterns:
            law = " ".join((pattern.__doc__ or "").split("\n\n")[0].split())
            _add(table, name, pattern.name, pattern.exactness.name, f"imperative, {pattern_status(pattern)}", law)
    console = Console()
    console.print(table)
    for proof in said:
        console.print(Text(str(proof)))


def _proof(rule: Rule, name: str) -> Proof:
    """The proof of a rule. UsageError for an error that the user's own code raises in it."""
    try:
        return prove(rule)
    except GcompError:
        raise
    except Exception as error:
        line = owners.line_of(error.__traceback__)
        if line is None:
            raise
        what = f"the rule {rule.name} of the pass {name} raises an error"
        raise UsageError(what, where=line, why=f"{type(error).__name__}: {error}") from error


def _add(table: Table, *cells: str) -> None:
    """Add a row: types and terms have brackets, which are markup to the table."""
    table.add_row(*map(Text, cells))
