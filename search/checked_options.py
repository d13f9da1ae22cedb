"""Read and check the options of a rewrite. Invalid options are refused with a diagnostic at the module."""

from __future__ import annotations

from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..options.conflicts import demand_agreement
from ..options.option_facts import EntryPoint
from ..options.recompute_options import RecomputeOptions
from ..planning.plan_file import BadPlan, StepPlan, from_json
from ..rules.costs.cost import BadCost, Cost, cost_named
from ..support.diagnostics import BadRequest
from .limits import Budget


def options_of_pass(module: ModuleOp, options: ModulePass) -> RecomputeOptions:
    """Return the options of a pass as `RecomputeOptions`. Raises `Refusal` at the module if options are invalid or
    exclude one another."""
    try:
        parsed = RecomputeOptions.of_pass(options)
        demand_agreement(parsed, EntryPoint(options.name), ("plan",) if getattr(options, "plan", "") else ())
        if parsed.budget is not None:
            Budget.of(parsed.budget, parsed.memory_model, parsed.target)
        return parsed
    except ValueError as error:
        raise BadRequest(module, str(error)) from error


def read_plan(module: ModuleOp, path: str) -> tuple[StepPlan, ...]:
    """Read a plan file. Raises `Refusal` at the module if the file cannot be read or parsed."""
    try:
        return from_json(Path(path).read_text())
    except OSError as error:
        raise BadRequest(module, f"the plan file {path} cannot be read: {error.strerror}") from error
    except (BadPlan, UnicodeDecodeError) as error:
        raise BadRequest(module, f"{path}: {error}") from error


def cost_option(module: ModuleOp, text: str) -> Cost:
    """Return the cost with this name, or from this file. Raises `Refusal` at the module if the cost is unknown."""
    try:
        return cost_named(text)
    except BadCost as error:
        raise BadRequest(module, str(error)) from error
