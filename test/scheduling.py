"""Distribution of tests for pytest-xdist: all tests of an example share a process and its results; otherwise a file.

Long tests start first, so that no process is left running alone at the end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

EXAMPLES = frozenset(
    path.name.partition(".")[0] for path in (Path(__file__).parents[1] / "examples" / "stablehlo").glob("*.mlir")
)
# By seconds. What is not listed follows, what holds most tests first.
LONG = (
    *("property/test_programs.py", "seeded_bugs/test_seeded_bugs.py", "gpt_train", "gpt", "gpt_bf16", "unet"),
    *("unit/test_with_jax.py", "unit/analysis/memory/xla/test_xla_memory.py", "mindspore_attention", "branches"),
    *("conformance/test_mindspore_whole.py", "unit/test_growth.py", "property/test_planted.py"),
    *("unit/proof/test_prove_random.py", "unit/test_run_lines.py", "filecheck/tools/console-scripts.mlir"),
)


def part_of(nodeid: str) -> str:
    """Return the name of a test's example, or its file below `test`."""
    file, _, test = nodeid.partition("::")
    match = re.search(r"\[(\w+)[\].-]", test)
    return match[1] if match is not None and match[1] in EXAMPLES else file.removeprefix("test/")


def in_order(nodeids: Sequence[str]) -> list[int]:
    """Return the positions of the tests in the order in which they should start."""
    parts = [part_of(nodeid) for nodeid in nodeids]
    size = Counter(parts)
    rank = {part: index for index, part in enumerate(LONG)}
    return sorted(
        range(len(parts)), key=lambda item: (rank.get(parts[item], len(LONG)), -size[parts[item]], parts[item])
    )
