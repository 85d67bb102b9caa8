"""Cutting programs across devices: which dimensions of each op may be cut together, and what that costs.

`rule_of(op)` looks an op up in the table (`table`, `rows`); `rule` says what a rule is. docs/guides/sharding_search.md
shows their use.
"""

from __future__ import annotations

from gcomp.partitioning import rows as rows  # fills the table
from gcomp.partitioning.rule import LOCAL, Factor, Kind, ShardingRule
from gcomp.partitioning.table import RULES, WITHOUT, rule_of

__all__ = ["LOCAL", "RULES", "WITHOUT", "Factor", "Kind", "ShardingRule", "rule_of"]
