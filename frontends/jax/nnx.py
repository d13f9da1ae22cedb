"""`recompute.nnx`: compile training steps as `flax.nnx.jit` does, with less memory.

    @recompute.nnx.jit(donate_argnames=("model", "optimizer"))     # instead of nnx.jit
    def train_step(model, optimizer, x, y):
        loss, gradients = nnx.value_and_grad(loss_of)(model, x, y)
        optimizer.update(model, gradients)
        return loss

`nnx.jit` splits its arguments into a graph and arrays, jits a function of the arrays, and writes the new arrays back
into the modules. Here, `recompute.jax.jit` replaces the inner `jax.jit`. All other code is flax's own: updates in
place, streams of random numbers, shared variables, shardings and donation. While the step is traced, its modules are
named scopes (`module_scopes.py`), so that reports show their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from importlib.metadata import version
from typing import Any, ClassVar, ParamSpec, TypeVar, cast, overload

from jax.extend import source_info_util
from typing_extensions import Unpack

from .annotations.module_scopes import module_scopes
from .explain_step import explain
from .jitted import Jitted
from .keywords.jit_options import JitOptions, demand_known, options_of
from .keywords.keywords import JitKeywords
from .messages.tracebacks import shorten, shortened
from .module_step import Lowering, ModuleStep

try:
    from flax import nnx
except ImportError as error:
    raise ImportError("recompute.nnx needs flax: pip install 'flax>=0.12'") from error

__all__ = ["NnxJitted", "explain", "jit"]

source_info_util.register_exclusion(__file__)
P = ParamSpec("P")
R = TypeVar("R")
_NNX: Any = nnx
"""Typed as `Any`, because the types of the library are incomplete."""
FLAX_KEYWORDS = frozenset({"graph", "graph_updates"})
"""Keywords of `nnx.jit` that `jax.jit` lacks."""


class NnxJitted(ModuleStep[P, R]):
    """The result of `recompute.nnx.jit`: it is called like the function, and updates modules among its arguments."""

    CALLER: ClassVar[str] = "recompute.nnx.jit"
    PACKAGE: ClassVar[str] = "recompute.nnx"

    def __init__(self, function: Callable[P, R], options: JitOptions, of_flax: Mapping[str, Any]):
        _demand_no_compiler_options(options)
        self._flax: Any = _NNX.jit(_with_scopes(function), **options.jit, **of_flax)
        if not hasattr(self._flax, "jitted_fn"):
            raise ImportError(
                f"recompute.nnx needs nnx.jit(…).jitted_fn, which flax {version('flax')} lacks; "
                "recompute.nnx was tested with flax 0.12: pip install 'flax>=0.12,<0.13'"
            )
        super().__init__(function, Jitted[..., Any](function, options, self._flax.jitted_fn, self.PACKAGE))
        self._flax.jitted_fn = self._inner

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the step. Warns `NothingSaved` if the plain step runs.

        Raises the errors of `nnx.jit` and of `recompute.jax.jit`.
        """
        try:
            return cast(R, self._flax(*args, **kwargs))
        except Exception as error:
            shorten(error)
            raise

    @shortened
    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Lower the step. The attribute `lowered` of flax's result is a `recompute.jax.Lowered`."""
        return self._flax.lower(*args, **kwargs)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate shapes as `nnx.jit` does."""
        return self._flax.eval_shape(*args, **kwargs)

    def call_with_arrays(self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call `method` with the arguments that flax's `lower` passes to the inner step."""
        self._flax.jitted_fn = Lowering(method)
        try:
            return self._flax.lower(*args, **kwargs).lowered
        finally:
            self._flax.jitted_fn = self._inner


def _with_scopes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the function so that its modules run in named scopes while it is traced."""
    if not callable(function) or isinstance(getattr(function, "__self__", None), _NNX.Module):
        return function  # `nnx.jit` raises the error.

    @wraps(function)
    def scoped(*args: Any, **kwargs: Any) -> Any:
        with module_scopes(_NNX.Module):
            return function(*args, **kwargs)

    return scoped


def _demand_no_compiler_options(options: JitOptions) -> None:
    """Raise `TypeError` for a keyword of `jax.jit` that `nnx.jit` lacks."""
    if "compiler_options" in options.jit:
        raise TypeError(
            "recompute.nnx.jit: nnx.jit does not accept the option compiler_options; set XLA_FLAGS instead, or call "
            "nnx.split and use recompute.jax.jit"
        )


@overload
def jit(fn: Callable[P, R], /, **keywords: Unpack[JitKeywords]) -> NnxJitted[P, R]: ...
@overload
def jit(**keywords: Unpack[JitKeywords]) -> Callable[[Callable[P, R]], NnxJitted[P, R]]: ...
@shortened
def jit(*fn: Any, **keywords: Any) -> Any:
    """Wrap a training step, including gradient and update, as `nnx.jit` does, so that it needs less memory.

    Args:
        fn: The step. It updates modules, optimizers, metrics and random-number streams among its arguments in place.
            Without `fn`, `jit` is a decorator.
        segments, policy, budget, ...: As in `recompute.jax.jit`.
        donate_argnums, in_shardings, graph, ...: The keywords of `nnx.jit`.

    Returns:
        A function like the result of `nnx.jit`, with `report` and `explain`.

    Raises:
        TypeError, ValueError: For invalid keywords, before anything is compiled.
        ImportError: If the installed flax lacks an attribute that this package uses.

    Example:
        >>> step = recompute.nnx.jit(train_step, donate_argnames=("model", "optimizer"))  # doctest: +SKIP
    """
    if len(fn) > 1:
        raise TypeError(f"recompute.nnx.jit takes one function, not {len(fn)} positional arguments")
    demand_known(keywords, "recompute.nnx.jit", FLAX_KEYWORDS)
    of_flax = {name: keywords.pop(name) for name in FLAX_KEYWORDS & keywords.keys()}
    wrap: Any = partial(NnxJitted, options=options_of(keywords, NnxJitted.CALLER), of_flax=of_flax)
    return wrap(fn[0]) if fn else wrap
