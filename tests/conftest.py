"""Tests compile anew, and leave nothing in the user's caches; those of the caches name a folder of their own."""

import gc
import os

from hypothesis import HealthCheck, settings

from gcomp.runtime.folders import CACHE, OFF

os.environ.setdefault(CACHE, OFF)
# Until all is collected: looking for cycles among what is being imported took a fifth of the time.
gc.disable()

# No test measures time, and the machine may have other work.
settings.register_profile("gcomp", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gcomp")


def pytest_collection_finish() -> None:
    """Tests make many objects that form cycles, beside all that a worker has collected: a tenth of the time went into
    looking at that again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
