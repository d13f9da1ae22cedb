"""One-dimensional views through which the backward pass reads four-dimensional arguments.

Inductor chooses the layout of each value. A weight or an image that both passes read may get a different layout in the
forward pass, and Inductor then saves a copy of it. A one-dimensional value has only one layout, so the exporter saves a
one-dimensional view instead:

    forward pass     %w: 8x3x5x5 ──────────────► convolution
                      │ view [600]                              flattened_argument(%w_flat) is %w
                      ▼
                     %w_flat: 600        saved instead of %w
                      │ view [8, 3, 5, 5]
                      ▼                                         restored_argument(%w_again) is %w
    backward pass    %w_again: 8x3x5x5 ────────► convolution_backward

The importer maps `%w_again` to `%w`, and imports no operation for the two views. Both have `FLAT` in their metadata.
Their target, argument and shape are also checked: any other view is imported as an operation, so that the proof
compares it.
"""

from __future__ import annotations

import torch

FLAT = "recompute_flat"
"""The metadata key of both views."""


def is_flattened(argument: torch.fx.Node) -> bool:
    """Return whether an argument may be saved as a one-dimensional view: it must be contiguous and have four dimensions
    of known sizes."""
    value = argument.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.dim() != 4:
        return False
    return all(isinstance(size, int) for size in value.shape) and value.is_contiguous()


def flattened_argument(node: torch.fx.Node) -> torch.fx.Node | None:
    """Return the argument that this view of the exporter flattens, or None for any other node."""
    if not _is_marked_view(node):
        return None
    argument, shape = node.args
    if not isinstance(argument, torch.fx.Node) or argument.op != "placeholder":
        return None
    return argument if is_flattened(argument) and shape == [argument.meta["val"].numel()] else None


def restored_argument(node: torch.fx.Node) -> torch.fx.Node | None:
    """Return the argument whose shape this view of the exporter restores, or None for any other node."""
    if not _is_marked_view(node):
        return None
    flat, shape = node.args
    argument = flattened_argument(flat) if isinstance(flat, torch.fx.Node) else None
    return argument if argument is not None and shape == list(argument.meta["val"].shape) else None


def _is_marked_view(node: torch.fx.Node) -> bool:
    return bool(node.meta.get(FLAT)) and node.target is torch.ops.aten.view.default
