"""What a run of the tests leaves out unless it is told `--whole`: products of which a part says nearly as much.

`make test` says how many it has deselected; `make test-whole` runs them too.
"""

from __future__ import annotations

import re

LEFT_OUT = {
    "an example that another one contains": r"unit/(analysis|planning|transforms|dialects)/.*\[(gpt|gpt_bf16)\.small",
    "a plan on paper without barriers, but for the first way": r"test_rewriting\.py.*-none\]",
    "sizes of batches and numbers of segments in between": r"test_any_size_of_batch_and_number.*\[[2-5]-",
}
KEPT = r"as it is chosen-none\]|test_choose\.py"


def is_left_out(nodeid: str) -> bool:
    return any(re.search(one, nodeid) for one in LEFT_OUT.values()) and not re.search(KEPT, nodeid)
