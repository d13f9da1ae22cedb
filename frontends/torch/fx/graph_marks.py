"""Read the user's marks on single operations: regions with a policy, and existing checkpoints."""

from __future__ import annotations

import torch
from torch.utils.checkpoint import CheckpointPolicy
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute

from ....dialects.mark_kind import MarkKind
from ....dialects.names import Names
from .node_locations import POLICY

_REGION_MARKS = {"recompute": MarkKind.MUST_RECOMPUTE, "save": MarkKind.MUST_SAVE}
_CHECKPOINT_MARKS = {CheckpointPolicy[kind.name]: kind for kind in MarkKind if kind is not MarkKind.OFFLOAD}


def marks_of(node: torch.fx.Node) -> dict[str, Attribute]:
    """Return the attributes that mark a forward operation as recomputed or saved, or {} if it has no mark.

    Each checkpoint becomes a segment, whose outputs are saved, as in PyTorch.
    """
    policy = (node.meta.get("custom") or {}).get(POLICY)
    if policy is not None:
        return {Names.RECOMPUTE: StringAttr(_REGION_MARKS[policy].value)}
    decision = _CHECKPOINT_MARKS.get(node.meta.get("recompute"))  # pyright: ignore[reportArgumentType]
    if decision is None:
        return {}
    marks: dict[str, Attribute] = {Names.RECOMPUTE: StringAttr(decision.value)}
    if (number := node.meta.get("ac_graph_id")) is not None:
        marks[Names.SEGMENT] = StringAttr(f"checkpoint{number}")
    return marks
