"""A plan from a file, for a module that is about to be changed."""

from __future__ import annotations

from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from ...dialects.diagnostics import Refusal
from ...options.selection import Selection
from ...planning.plan_file import BadPlan, StepPlan, from_json


def read_plan(module: ModuleOp, path: str, beside: Selection) -> tuple[StepPlan, ...]:
    """Raises `Refusal` at the module for a file that cannot be read, or that holds no plan, and where budgets of
    segments say what is recomputed too."""
    if beside.segment_budgets:
        raise Refusal(module, "a plan says what is recomputed, and so do segment-budgets: give one of them")
    try:
        return from_json(Path(path).read_text())
    except OSError as error:
        raise Refusal(module, f"the plan {path} cannot be read: {error.strerror}") from error
    except (BadPlan, UnicodeDecodeError) as error:
        raise Refusal(module, f"{path}: {error}") from error
