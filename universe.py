"""What xDSL finds through the `xdsl.universe` entry point: stock `xdsl-opt` gets our dialects and passes from here."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.target import Target


def _recompute() -> Dialect:
    from .dialects.recompute import RECOMPUTE

    return RECOMPUTE


def stablehlo_dialect() -> Dialect:
    from .dialects.stablehlo import STABLEHLO

    return STABLEHLO


def _inline() -> type[ModulePass]:
    from .transforms.inline import InlinePass

    return InlinePass


def _phase() -> type[ModulePass]:
    from .transforms.phase import PhasePass

    return PhasePass


def _mark() -> type[ModulePass]:
    from .transforms.mark import MarkPass

    return MarkPass


def _clone() -> type[ModulePass]:
    from .transforms.clone import ClonePass

    return ClonePass


def _cse() -> type[ModulePass]:
    from .transforms.cse import CsePass

    return CsePass


def _lower() -> type[ModulePass]:
    from .transforms.lower import LowerPass

    return LowerPass


def _verify() -> type[ModulePass]:
    from .transforms.verify import VerifyPass

    return VerifyPass


def _pipeline() -> type[ModulePass]:
    from .transforms.recompute import RecomputePass

    return RecomputePass


def _memory_timeline() -> type[Target]:
    from .tools.targets import MemoryTimelineTarget

    return MemoryTimelineTarget


def _explain() -> type[Target]:
    from .tools.targets import ExplainTarget

    return ExplainTarget


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    "recompute-inline": _inline,
    "recompute-phase": _phase,
    "recompute-mark": _mark,
    "recompute-clone": _clone,
    "recompute-cse": _cse,
    "recompute-lower": _lower,
    "recompute-verify": _verify,
    "recompute": _pipeline,
}

TARGETS: dict[str, Callable[[], type[Target]]] = {"memory-timeline": _memory_timeline, "explain": _explain}


def _another_stablehlo() -> bool:
    """xdsl-jax names a stablehlo dialect too, and xDSL refuses two plugins with one name. Our driver loads ours."""
    try:
        distribution("xdsl-jax")
    except PackageNotFoundError:
        return False
    return True


def _dialects() -> dict[str, Callable[[], Dialect]]:
    ours: dict[str, Callable[[], Dialect]] = {"recompute": _recompute}
    return ours if _another_stablehlo() else ours | {"stablehlo": stablehlo_dialect}


UNIVERSE = Universe(all_dialects=_dialects(), all_passes=PASSES, all_targets=TARGETS)
