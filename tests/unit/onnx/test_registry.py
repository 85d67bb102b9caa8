"""Importers are found in the modules of their domain, and only what a model needs of these is loaded."""

from __future__ import annotations

import subprocess
import sys

from gcomp.frontends.onnx.engine import registry

LOOKUP = """
import sys
from gcomp.frontends.onnx.engine.registry import lookup
found = lookup(sys.argv[1], sys.argv[2], 17)
print(found and found.__module__, "gcomp.frontends.onnx.operators.microsoft.fused" in sys.modules)
"""


def look_up(domain: str, operator: str) -> list[str]:
    command = [sys.executable, "-c", LOOKUP, domain, operator]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_operators_are_found_in_any_family() -> None:
    home = "gcomp.frontends.onnx.operators"
    assert look_up("", "Softmax") == [f"{home}.activation", "False"]
    assert look_up("", "SimplifiedLayerNormalization") == [f"{home}.microsoft.normalization", "True"]
    assert look_up("somebody.else", "Softmax") == ["None", "True"]


def test_a_domain_s_own_modules_have_all_versions_of_an_operator() -> None:
    registry.load_families()
    for (domain, operator), versions in registry._IMPORTERS.items():
        homes = {function.__module__.partition("operators.")[2] for _, function in versions}
        own = homes & set(registry.FAMILIES.get(domain, ()))
        assert not own or own == homes, (domain, operator)
