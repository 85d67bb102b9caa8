"""torch's own test utilities."""

from __future__ import annotations

import sys
import unittest
from importlib import import_module
from types import ModuleType
from typing import Any


def internal(name: str) -> Any:
    """A module of `torch.testing._internal`."""
    # They derive a class of their own from this package's; nothing else is used of it.
    sys.modules.setdefault("expecttest", _expecttest())
    return import_module(f"torch.testing._internal.{name}")


def _expecttest() -> ModuleType:
    module: Any = ModuleType("expecttest")
    module.TestCase = unittest.TestCase
    return module
