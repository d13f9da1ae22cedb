"""These tests run the search uncompiled: the same plans, and nothing to compile. `test_paths.py` compares the two."""

import os

os.environ.setdefault("RECOMPUTE_PLAN_PATH", "plain")
