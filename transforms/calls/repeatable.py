"""Mark the custom calls that may run twice according to the option `recompute{repeatable=my_kernel,other_*}`.

Example:

    stablehlo.custom_call @my_kernel(%x)    ->    stablehlo.custom_call @my_kernel(%x) {recompute.repeatable}
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from xdsl.dialects.builtin import ModuleOp, UnitAttr

from ...dialects.names import Names
from ...dialects.stablehlo.custom_call import CustomCallOp
from ...options.selection import BadSelection
from ...rules.custom_calls import is_repeatable_by_word
from ...support.diagnostics import BadRequest
from ...support.operations import every_operation


def mark_repeatable(module: ModuleOp, patterns: Sequence[str]) -> None:
    """Mark the custom calls whose targets match one of the shell-style patterns.

    Raises:
        Refusal: A pattern matches no custom call that the option may declare repeatable.
    """
    if not patterns:
        return
    calls = [op for op in every_operation(module) if isinstance(op, CustomCallOp)]
    candidates = [op for op in calls if is_repeatable_by_word(op)]
    for pattern in patterns:
        matching = [op for op in candidates if fnmatchcase(op.call_target_name.data, pattern)]
        if not matching:
            targets = sorted({op.call_target_name.data for op in candidates})
            listed = f"; custom calls that can be named: {', '.join(targets)}" if targets else ""
            expected = "no custom call without side effects, apart from those that are repeatable by default"
            reason = f"repeatable: '{pattern}' matches {expected}{listed}"
            raise BadRequest(module, reason) from BadSelection(reason)
        for op in matching:
            op.attributes[Names.REPEATABLE] = UnitAttr()
