"""Training steps as the users of each framework write them, and what is measured of them beside remat."""

from __future__ import annotations

import os

# Seconds are those of a rewrite, not of a cache.
os.environ.setdefault("RECOMPUTE_CACHE_DIR", "")
