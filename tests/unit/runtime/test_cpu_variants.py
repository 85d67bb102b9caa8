"""Variants of processors: the best that runs is chosen, and an error says what is lacking and what to do."""

import itertools
import platform
from types import SimpleNamespace

import pytest

from gcomp.errors import UnsupportedError
from gcomp.runtime.cpu import variants
from gcomp.runtime.cpu.variants import VARIANTS, chosen, this_machine

V3 = frozenset(VARIANTS["x86-64-v3"].needs)
V4 = frozenset(VARIANTS["x86-64-v4"].needs)


@pytest.fixture
def machine(monkeypatch):
    def pretend(name, features, system="linux"):
        monkeypatch.setattr(platform, "machine", lambda: name)
        monkeypatch.setattr(variants, "features", lambda: frozenset(features))
        monkeypatch.setattr(variants, "sys", SimpleNamespace(platform=system))

    return pretend


@pytest.mark.parametrize(
    ("name", "features", "best"),
    [
        ("x86_64", V4, "x86-64-v4"),
        ("x86_64", V4 | {"avx512_vnni"}, "x86-64-v4+vnni"),
        ("x86_64", V4 | {"avx_vnni"}, "x86-64-v4"),
        ("x86_64", V3 | {"avx_vnni"}, "x86-64-v3+vnni"),
        ("x86_64", V3 | {"avx512_vnni"}, "x86-64-v3"),
        ("x86_64", V3, "x86-64-v3"),
        ("x86_64", V4 - {"avx512vl"}, "x86-64-v3"),
        ("aarch64", {"fp", "asimd"}, "aarch64"),
        ("aarch64", {"fp", "asimd", "i8mm"}, "aarch64+i8mm"),
        ("riscv64", set("imafdc"), "riscv64"),
    ],
)
def test_the_best_variant_that_runs_is_this_machines(machine, name, features, best):
    machine(name, features)
    assert this_machine() == best
    assert chosen(VARIANTS, "the model") == best


def test_of_several_variants_the_order_of_their_names_does_not_matter(machine):
    machine("x86_64", V4)
    assert chosen(["x86-64-v4", "x86-64-v3"], "m") == chosen(["x86-64-v3", "x86-64-v4"], "m") == "x86-64-v4"
    machine("x86_64", V3)
    assert chosen(["x86-64-v4", "x86-64-v3"], "m") == "x86-64-v3"


def test_an_error_says_what_is_needed_what_is_here_and_what_to_compile_for(machine):
    machine("x86_64", V4 - {"avx512bw", "avx512vl"})
    with pytest.raises(UnsupportedError) as info:
        chosen(["x86-64-v4", "aarch64"], "the model")
    assert "this processor has no avx512bw, avx512vl" in str(info.value.why)
    assert "aarch64: it needs aarch64" in str(info.value.why)
    assert "x86-64-v3" in str(info.value.where)
    assert info.value.fix == "compile for cpu:x86-64-v3 instead"


@pytest.mark.parametrize(("name", "features", "system"), [("x86_64", {"sse3"}, "linux"), ("x86_64", V4, "darwin")])
def test_a_machine_that_runs_no_variant_is_told_of_another_target(machine, name, features, system):
    machine(name, features, system)
    with pytest.raises(UnsupportedError, match="xla:cpu"):
        this_machine()


def test_later_variants_of_one_machine_need_all_that_earlier_ones_need():
    for name in {variant.machine for variant in VARIANTS.values()}:
        own = [variant for variant in VARIANTS.values() if variant.machine == name]
        for earlier, later in itertools.pairwise([variant for variant in own if "+" not in variant.name]):
            assert set(earlier.needs) < set(later.needs)
        for earlier, later in itertools.pairwise(own):
            assert earlier.bits <= later.bits


@pytest.mark.parametrize("name", [name for name in VARIANTS if "+" in name])
def test_what_is_had_beyond_a_level_is_needed_beside_it_and_comes_after_it(name):
    plain = name.partition("+")[0]
    assert set(VARIANTS[plain].needs) < set(VARIANTS[name].needs)
    assert list(VARIANTS).index(name) == list(VARIANTS).index(plain) + 1


def test_an_artifact_for_what_this_processor_lacks_says_so(machine):
    machine("x86_64", V4)
    with pytest.raises(UnsupportedError) as info:
        chosen(["x86-64-v4+vnni"], "the model")
    assert "this processor has no avx512_vnni" in str(info.value.why)
    assert info.value.fix == "compile for cpu:x86-64-v4 instead"
