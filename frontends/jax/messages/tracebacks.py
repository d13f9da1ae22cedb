"""Short tracebacks in the style of JAX: the user's lines and the message, without frames of this package.

    train.py:12: step(state, batch)
    Refusal: train.py:8:9: error: no plan is within the budget 1%, …

`JAX_TRACEBACK_FILTERING=off` shows all frames, including frames of JAX and of this package.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar

import jax
import xdsl

P = ParamSpec("P")
R = TypeVar("R")
_JAX: Any = jax
"""Typed as `Any`, because the types of JAX are incomplete."""
_ROOT = Path(__file__).resolve().parents[3]
_OURS = (
    "analysis", "dialects", "driver", "frontends", "interpreters", "mlir_io", "options", "rewriting", "planning",
    "proof", "reports", "rules", "search", "support", "transforms",
)  # fmt: skip
"""The directories whose frames are left out. Tests, examples and benchmarks are treated as user code."""
_PATHS = tuple(f"{path}{os.sep}" for path in (*(_ROOT / name for name in _OURS), Path(xdsl.__file__).parent))
_HIDDEN = (*_PATHS, contextlib.__file__)
_USER_ERRORS = (TypeError, ValueError, ImportError)
"""The built-in errors that this package raises for incorrect use, in addition to its own errors and those of xDSL."""


def shorten(error: BaseException) -> None:
    """Remove the frames of this package and of xDSL from the traceback of an error.

    If this package raises the error, its causes are also removed, since the message gives the reason. The tracebacks of
    internal errors stay complete.

    Call this function in the outermost function, and then `raise` without an argument: this adds no frame.
    """
    frames = list(walk_tb(error.__traceback__))
    if _JAX.config.jax_traceback_filtering == "off" or not frames:
        return
    of_package = f"{__name__.partition('.frontends.')[0]}."
    is_of_class = type(error).__module__.startswith((of_package, "xdsl."))
    if _is_hidden(frames[-1][0]):
        if not is_of_class and not isinstance(error, _USER_ERRORS):
            return
        error.__cause__, error.__suppress_context__ = None, True
    short = None
    for frame, line in reversed(frames):
        if not _is_hidden(frame):
            short = TracebackType(short, frame, frame.f_lasti, line)
    error.with_traceback(short)


def _is_hidden(frame: FrameType) -> bool:
    return os.path.abspath(frame.f_code.co_filename).startswith(_HIDDEN)


def shortened(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function of the public API, so that its errors have short tracebacks."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    return called
