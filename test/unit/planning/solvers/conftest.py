"""Fixtures that run the search without compiling it, for speed; `test_paths.py` compares the two."""

import os

os.environ.setdefault("RECOMPUTE_PLAN_PATH", "plain")
