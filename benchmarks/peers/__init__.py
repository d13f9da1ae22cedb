"""Training steps as users of each framework write them, and their comparison with the framework's remat."""

from __future__ import annotations

import os

# Seconds are those of a rewrite, not of a cache.
os.environ.setdefault("RECOMPUTE_CACHE_DIR", "")
