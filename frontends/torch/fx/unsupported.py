"""The exception for graphs that this frontend cannot represent."""

from __future__ import annotations

import torch


class Unsupported(Exception):
    """Raised for a node that cannot be imported or exported. The message gives the reason."""

    def __init__(self, node: torch.fx.Node | str, reason: str):
        self.node, self.reason = str(node), reason
        target = "" if isinstance(node, str) else f" ({node.target})"
        super().__init__(f"{node}{target}: {reason}")
