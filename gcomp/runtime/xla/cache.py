"""The cache of executables on disk (`gcomp.runtime.folders`): XLA compiles a program once on a machine.

Executables are native code, which XLA itself writes and reads; Python objects are never read from a file. The key is a
hash of all that decides the code: the program's text, the options, jaxlib, the processor's features, the number of
threads, and XLA's own settings. What XLA cannot read is compiled again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping

from gcomp.runtime.folders import Cache
from gcomp.runtime.xla.client import Client, Executable
from gcomp.runtime.xla.options import thread_count

EXECUTABLES = Cache("executables", 1 << 30)

FORMAT = 1
"""Raised by one whenever an entry would be read as something else."""


def compile_cached(client: Client, text: str, options: Mapping[str, str | int]) -> Executable:
    """Compile, or take the executable from the cache where there is one. Raises GcompError."""
    name = _key(client, text, options)
    data = EXECUTABLES.load(name)
    if data is not None and (found := client.deserialize(data, options)) is not None:
        return found
    executable = client.compile(text, options)
    if (made := executable.serialize()) is not None:
        EXECUTABLES.store(name, made)
        EXECUTABLES.trim()
    return executable


def _key(client: Client, text: str, options: Mapping[str, str | int]) -> str:
    # jax.config has settings of the compiler's, which it reads from the environment, too.
    settings = sorted((k, v) for k, v in os.environ.items() if k.startswith(("XLA_", "TF_XLA_", "JAX_")))
    parts = [FORMAT, client.fingerprint(), thread_count(), sorted(options.items()), settings, text]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
