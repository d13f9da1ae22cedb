"""The entry point `xdsl.universe`, through which stock `xdsl-opt` gets the dialects and passes of this project.

Each dialect and pass is imported at its first use, so that a command loads only the passes that it runs.

"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.target import Target

from .mlir_io.workarounds import install

# The class and the file of a pass follow from its name: `recompute-inline-gradient` is `InlineGradientPass` in
# `transforms/inline_gradient.py`.
_PASS_NAMES = (
    "flatten-tuples",
    "inline-composites",
    "take-marks",
    "inline",
    "merge-remat",
    "take-scopes",
    "inline-segments",
    "inline-gradient",
    "loops",
    "offload",
    "phase",
    "mark",
    "plan",
    "clone",
    "cse",
    "schedule",
    "shard-kept",
    "lower",
    "stagger",
    "outline-gradient",
    "verify",
    "strip",
)
# The passes in `rewriting/`, which call `search/` and apply its choices.
_REWRITING_PASSES = frozenset({"loops", "mark", "plan", "recompute", "schedule"})


RECOMPUTE_PASSES = (
    "recompute-take-marks",
    "recompute-inline",
    "recompute-inline-gradient",
    "recompute-inline-segments",
    "recompute-phase",
    "recompute-loops",
    "recompute-mark",
    "recompute-clone",
    "recompute-shard-kept",
    "recompute-cse",
    "recompute-lower",
    "recompute-stagger",
    "recompute-verify",
)
"""The passes whose work `recompute` does, in the same order. `recompute` also chooses among several ways to mark a
step, and restores calls; no pipeline of passes does this.
"""


def _pass(word: str) -> Callable[[], type[ModulePass]]:
    package = "rewriting" if word in _REWRITING_PASSES else "transforms"
    module = word.replace("-", "_")
    kind = f"{word.title().replace('-', '')}Pass"
    return lambda: getattr(import_module(f".{package}.{module}", __package__), kind)


def _target(name: str) -> Callable[[], type[Target]]:
    return lambda: getattr(import_module(".tools.runs.targets", __package__), name)


def _dialect(module: str, name: str) -> Callable[[], Dialect]:
    return lambda: getattr(import_module(f".dialects.{module}", __package__), name)


PASSES = {f"recompute-{word}": _pass(word) for word in _PASS_NAMES} | {"recompute": _pass("recompute")}

TARGETS = {"memory-timeline": _target("MemoryTimelineTarget"), "explain": _target("ExplainTarget")}


def _has_other_stablehlo() -> bool:
    """Return whether xdsl-jax is installed, which also defines a dialect `stablehlo`.

    xDSL rejects plugins that define the same name. The driver of this project always loads its own dialect.
    """
    try:
        distribution("xdsl-jax")
    except PackageNotFoundError:
        return False
    return True


def _dialects() -> dict[str, Callable[[], Dialect]]:
    ours = {name: _dialect(name, name.upper()) for name in ("recompute", "chlo", "sdy")}
    return ours if _has_other_stablehlo() else ours | {"stablehlo": _dialect("stablehlo", "STABLEHLO")}


# Stock tools import this file when they start. They parse and verify with xDSL alone, which needs the workarounds.
install()

UNIVERSE = Universe(all_dialects=_dialects(), all_passes=dict(PASSES), all_targets=dict(TARGETS))
