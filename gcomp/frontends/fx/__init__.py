"""The torch frontend: exported programs and fx graphs to graph-level programs."""

from __future__ import annotations

from gcomp.frontends.fx.exported import export_module, import_exported

__all__ = ["export_module", "import_exported"]
