"""Tests compile anew, and leave nothing in the user's caches; those of the caches name a folder of their own."""

import os

from gcomp.runtime.folders import CACHE, OFF

os.environ.setdefault(CACHE, OFF)
