"""C for machines that are not this one: Debian's cross compilers build it, and qemu's user mode runs it."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

MACHINES = ("x86_64", "aarch64", "riscv64")


def tool(machine: str, name: str) -> str:
    """A compiler's or binutils' program for a machine; the test is skipped where it is not installed."""
    full = name if machine == platform.machine() else f"{machine}-linux-gnu-{name}".replace("_", "-")
    if shutil.which(full) is None:
        pytest.skip(f"SKIPPED: {full} is not installed")
    return full


def run(machine: str, program: Path, arguments: Sequence[str], folder: Path | None = None) -> str:
    """What a program prints, in a folder, run by qemu where it is for another machine; it has to end well."""
    command = [str(program), *arguments]
    if machine != platform.machine():
        emulator = f"qemu-{machine}"
        if shutil.which(emulator) is None:
            pytest.skip(f"SKIPPED: {emulator} is not installed (Debian: qemu-user)")
        command.insert(0, emulator)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def build(machine: str, sources: Sequence[Path], program: Path, *options: str) -> None:
    """Compile and link C, without a warning, and with its libraries in it."""
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread"]
    subprocess.run(
        [tool(machine, "gcc"), *flags, "-o", str(program), *map(str, sources), *options],
        check=True,
        capture_output=True,
    )


__all__ = ["MACHINES", "build", "run", "tool"]
