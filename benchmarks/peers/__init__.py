"""Training steps as users of each framework write them, and a comparison with the framework's own remat."""

from __future__ import annotations

import os

# The measured seconds must be those of a rewrite, so the cache is off.
os.environ.setdefault("RECOMPUTE_CACHE_DIR", "")
