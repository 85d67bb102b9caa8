"""XLA: programs as export text, plans, and compile options. `lower(program)` is the way in."""

from __future__ import annotations

from gcomp.lowering.xla.lower import lower

__all__ = ["lower"]
