"""Several processes as one: JAX's distributed runtime joins their devices, with gloo between processors, NCCL between
GPUs.

Before it does, the processes meet: JAX's runtime ends a process that waits in vain, without a word that people can use.
So a process that does not come, comes twice, or brings another artifact, is an error in all of them, within a time.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import socket
import sys
import time
from collections.abc import Container
from importlib import import_module
from typing import Any

from gcomp.errors import UsageError
from gcomp.records import record

PARENT = "GCOMP_LAUNCHED_BY"
"""The variable of the environment that has the process id of what started a process, and which it does not outlive."""

_DIES_WITH_PARENT = 1
"""Linux' number of the option of a process to be sent a signal where its parent ends (`PR_SET_PDEATHSIG`)."""
_PAUSE = 0.1
"""Seconds between two tries to reach the first process."""
_MOST_BYTES = 4096
"""Of what processes say to each other."""


@record
class Member:
    """One of several processes: where the first one listens, how many there are, which this is, how long it waits."""

    coordinator: str
    processes: int
    number: int
    seconds: int

    def address(self) -> tuple[str, int]:
        """Host and port. Raises UsageError for what cannot be."""
        host, colon, port = self.coordinator.rpartition(":")
        if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
            raise UsageError(f"{self.coordinator!r} is not a coordinator", fix="write HOST:PORT, as in 10.0.0.1:9000")
        if not 0 <= self.number < self.processes:
            last = self.processes - 1
            raise UsageError(f"there is no process {self.number} of {self.processes}", fix=f"they are 0 to {last}")
        return host, int(port)


def join(member: Member, platform: str, devices: int, digest: str) -> None:
    """Take part, with this process's share of so many devices of a platform, and a digest that all processes share.

    Processes on one machine take its GPUs in order, as many each as their share; `CUDA_VISIBLE_DEVICES` says others.

    Raises UsageError, in all processes, where devices are not shared evenly, and where the others are not there within
    the time or have another digest.
    """
    address = member.address()
    share, rest = divmod(devices, member.processes)
    if rest or not share:
        raise UsageError(
            f"a mesh of {devices} devices is not shared by {member.processes} processes",
            why="each process has as many devices as the others",
            fix=f"start as many processes as divide {devices}",
        )
    _end_with_parent()
    (_gather if member.number == 0 else _come)(member, address, digest)
    jax: Any = import_module("jax")
    bridge: Any = import_module("jax._src.xla_bridge")
    if bridge.backends_are_initialized():
        raise UsageError("JAX runs in this process already, and joins no others", fix="join before JAX is used")
    own = None
    if platform == "cpu":
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.config.update("jax_num_cpu_devices", share)
    elif "CUDA_VISIBLE_DEVICES" not in os.environ and PARENT in os.environ:
        own = list(range(member.number * share, (member.number + 1) * share))
    jax.distributed.initialize(
        member.coordinator, member.processes, member.number, own, initialization_timeout=member.seconds,
        heartbeat_timeout_seconds=max(10, member.seconds), shutdown_timeout_seconds=member.seconds,
        cluster_detection_method="deactivate",
    )  # fmt: skip
    atexit.register(_end)


# ---- meeting -------------------------------------------------------------------------------------------------------


def _gather(member: Member, address: tuple[str, int], digest: str) -> None:
    """In process 0: wait for all others, and tell all of them whether all are well."""
    deadline = time.monotonic() + member.seconds
    came: dict[int, socket.socket] = {}
    problem: str | None = None
    try:
        server = socket.create_server(("", address[1]), backlog=member.processes)
    except OSError as error:
        raise UsageError(
            f"cannot listen at {member.coordinator}", why=error.strerror or str(error), fix="choose a free port"
        ) from None
    with server:
        while len(came) < member.processes - 1 and problem is None:
            server.settimeout(max(0.0, deadline - time.monotonic()) or 0.001)
            try:
                other, _ = server.accept()
                other.settimeout(max(1.0, deadline - time.monotonic()))
                number, count, theirs = other.recv(_MOST_BYTES).decode(errors="replace").split()
            except (TimeoutError, OSError, ValueError):
                missing = sorted({*range(1, member.processes)} - {*came})
                problem = f"process {', '.join(map(str, missing))} did not come within {member.seconds} s"
                break
            problem = _wrong(member, came, number, count, theirs, digest)
            came[int(number) if number.isdecimal() and int(number) not in came else -len(came)] = other
        for other in came.values():
            with other:
                other.sendall((problem or "welcome").encode())
    if problem is not None:
        raise _refusal(member, problem)


def _wrong(member: Member, came: Container[int], number: str, count: str, theirs: str, digest: str) -> str | None:
    """What is wrong with a process that came, if anything."""
    if not number.isdecimal() or count != str(member.processes) or not 0 < int(number) < member.processes:
        return f"process {number} of {count} came, and there are {member.processes}"
    if int(number) in came:
        return f"two processes say that they are number {number}"
    return None if theirs == digest else f"process {number} has another artifact than process 0"


def _come(member: Member, address: tuple[str, int], digest: str) -> None:
    """In the others: reach process 0, and hear from it."""
    deadline, reason = time.monotonic() + member.seconds, "nobody listens there"
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(address, max(0.1, deadline - time.monotonic())) as connection:
                connection.sendall(f"{member.number} {member.processes} {digest}".encode())
                # The first process may have begun to wait later than this one.
                connection.settimeout(member.seconds + 5)
                answer = connection.recv(_MOST_BYTES).decode(errors="replace")
            if answer == "welcome":
                return
            raise _refusal(member, answer or "the first process is gone")
        except OSError as error:
            reason = error.strerror or str(error)
            time.sleep(_PAUSE)
    raise _refusal(member, f"the first process was not there within {member.seconds} s ({reason})")


def _refusal(member: Member, why: str) -> UsageError:
    return UsageError(
        f"process {member.number} of {member.processes} does not start", where=member.coordinator, why=why,
        fix="start all processes with one file, number 0 on the coordinator's host, and let its port be reached",
    )  # fmt: skip


# ---- ending --------------------------------------------------------------------------------------------------------

_code: int | None = None


def end_at_once(code: int) -> None:
    """Let this process end by itself when it ends: others may be gone, and JAX would wait for them, and then abort."""
    global _code
    _code = code


def _end() -> None:
    if _code is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_code)


def _end_with_parent() -> None:
    """Let the system end this process where what launched it ends, however that ends."""
    parent = os.environ.get(PARENT)
    if parent is None or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != int(parent):
        raise UsageError("what launched this process is gone")


__all__ = ["PARENT", "Member", "end_at_once", "join"]
