"""`recompute.eqx`: compile training steps as `equinox.filter_jit` does, with less memory.

    @recompute.eqx.filter_jit(donate="all")     # instead of eqx.filter_jit
    def train_step(model, state, x, y):
        loss, gradients = eqx.filter_value_and_grad(loss_of)(model, x, y)
        updates, state = optimizer.update(gradients, state)
        return eqx.apply_updates(model, updates), state, loss

`eqx.filter_jit` partitions its arguments, jits a function of the arrays with everything else static, and combines the
results into modules. Here, `recompute.jax.jit` replaces the inner `jax.jit`. All other code is equinox's own. While the
step is traced, its modules are named scopes (`module_scopes.py`), so that reports show their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, ParamSpec, TypeVar, cast, overload

import jax
import numpy as np
from jax.extend import source_info_util
from typing_extensions import Unpack

from .annotations.module_scopes import module_scopes
from .explain_step import explain
from .internals import private
from .jitted import Jitted
from .keywords.jit_options import JitOptions, demand_known, options_of
from .keywords.keywords import JitKeywords
from .lowering.argument_hint import demand_keywords
from .messages.tracebacks import shorten, shortened
from .module_step import Lowering, ModuleStep
from .reports.step_report import Report

try:
    import equinox
except ImportError as error:
    raise ImportError("recompute.eqx needs equinox: pip install 'equinox>=0.13'") from error

__all__ = ["EqxJitted", "explain", "filter_jit"]

source_info_util.register_exclusion(__file__)
P = ParamSpec("P")
R = TypeVar("R")
_EQX: Any = equinox
_TREE: Any = jax.tree
"""Typed as `Any`, because the types of the library are incomplete."""
EQUINOX_KEYWORDS = frozenset({"donate"})
"""Keywords of `eqx.filter_jit` that `jax.jit` lacks."""
JAX_ONLY_KEYWORDS = frozenset(
    {"static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "in_shardings", "out_shardings"}
)
"""Keywords of `jax.jit` that `eqx.filter_jit` lacks, because it partitions the arguments itself."""
DONATES_ALL = "it donates all arrays among the arguments, also the batch, so the caller must not use them again"
LIBRARY_PREFIX, LAYERS_PREFIX = "equinox.", "equinox.nn."
"""Prefixes of Python modules: all modules of equinox, and the modules that define layers. The other modules of equinox
define transformations. A call to a transformation is not a layer.
"""


class EqxJitted(ModuleStep[P, R]):
    """The result of `recompute.eqx.filter_jit`: it is called like the function, with modules as arguments and
    results."""

    CALLER: ClassVar[str] = "recompute.eqx.filter_jit"
    PACKAGE: ClassVar[str] = "recompute.eqx"

    def __init__(self, function: Callable[P, R], options: JitOptions, of_equinox: Mapping[str, Any]):
        wrapper = _EQX.filter_jit(_Scoped(function), **options.jit, **of_equinox)
        jitted = private.jitted_of_equinox(wrapper)
        super().__init__(function, Jitted[..., Any](function, options, jitted, self.PACKAGE))
        self._eqx = private.with_jitted_of_equinox(wrapper, self._inner)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the step. Warns `NothingSaved` if the plain step runs.

        Raises the errors of `eqx.filter_jit` and of `recompute.jax.jit`.
        """
        try:
            return cast(R, self._eqx(*args, **kwargs))
        except Exception as error:
            shorten(error)
            if isinstance(error, TypeError):
                demand_keywords(self._inner.__name__, self.__wrapped__, kwargs)  # Equinox names only the keyword.
            raise

    @shortened
    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Lower the step. The attribute `lowered` of equinox's result is a `recompute.jax.Lowered`."""
        demand_keywords(self._inner.__name__, self.__wrapped__, kwargs)
        return self._eqx.lower(*args, **kwargs)

    def call_with_arrays(self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call `method` with the arguments that equinox's `lower` passes to the inner step. Shapes are treated as
        arrays."""

        def of_inner(donated: Any, others: Any, static: Any) -> Any:
            return method(*_TREE.map(_shape_of, (donated, others)), static)

        args, kwargs = _TREE.map(_stand_in, (args, dict(kwargs)))
        return private.with_jitted_of_equinox(self._eqx, Lowering(of_inner)).lower(*args, **kwargs).lowered

    def reworded_report(self, report: Report) -> Report:
        donation = report.donation
        if donation is None:
            return report
        return replace(report, donation=replace(donation, option='donate="all"', caution=DONATES_ALL))


class _Scoped(_EQX.Module):
    """A wrapper around a function or module, which runs modules in named scopes while it is traced.

    It is a pytree, so that its arrays are traced like the arrays of a jitted method or module.
    """

    function: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with module_scopes(_EQX.Module, _is_layer, self.function):
            return self.function(*args, **kwargs)

    @property
    def __wrapped__(self) -> Any:
        """The wrapped function, whose name and signature equinox reads."""
        return self.function


def _is_layer(kind: type[Any]) -> bool:
    """Return whether a class is a layer of a model rather than one of equinox's transformations."""
    return not f"{kind.__module__}.".startswith(LIBRARY_PREFIX) or kind.__module__.startswith(LAYERS_PREFIX)


class _StandIn(np.ndarray[Any, Any]):
    """An array that replaces a `jax.ShapeDtypeStruct`, which equinox would treat as a static argument."""

    shape_of_argument: Any


def _stand_in(leaf: Any) -> Any:
    """Return an array in place of a `jax.ShapeDtypeStruct`; return any other leaf unchanged."""
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    array = np.zeros(()).view(_StandIn)
    array.shape_of_argument = leaf
    return array


def _shape_of(leaf: Any) -> Any:
    """Return the `jax.ShapeDtypeStruct` that a `_StandIn` replaces; return any other leaf unchanged."""
    return leaf.shape_of_argument if isinstance(leaf, _StandIn) else leaf


@overload
def filter_jit(fun: Callable[P, R], /, *, donate: str = ..., **keywords: Unpack[JitKeywords]) -> EqxJitted[P, R]: ...
@overload
def filter_jit(
    *, donate: str = ..., **keywords: Unpack[JitKeywords]
) -> Callable[[Callable[P, R]], EqxJitted[P, R]]: ...
@shortened
def filter_jit(*fun: Any, **keywords: Any) -> Any:
    """Wrap a training step, including gradient and update, as `eqx.filter_jit` does, so that it needs less memory.

    Args:
        fun: The step. All arrays among its arguments are traced; everything else is static. Without `fun`, `filter_jit`
            is a decorator.
        donate: As in `eqx.filter_jit`: `"all"`, `"all-except-first"`, `"warn"`, `"warn-except-first"` or `"none"`.
        segments, policy, budget, ...: As in `recompute.jax.jit`.
        compiler_options, ...: The keywords of `jax.jit` that `eqx.filter_jit` accepts.

    Returns:
        A function like the result of `eqx.filter_jit`, with `report` and `explain`.

    Raises:
        TypeError, ValueError: For invalid keywords, before anything is compiled.
        ImportError: If the installed equinox lacks an attribute that this package uses.

    Example:
        >>> step = recompute.eqx.filter_jit(train_step, donate="all")  # doctest: +SKIP
    """
    if len(fun) > 1:
        raise TypeError(f"recompute.eqx.filter_jit takes one function, not {len(fun)} positional arguments")
    _demand_no_jax_only(keywords)
    demand_known(keywords, EqxJitted.CALLER, EQUINOX_KEYWORDS)
    of_equinox = {name: keywords.pop(name) for name in EQUINOX_KEYWORDS & keywords.keys()}
    wrap: Any = partial(EqxJitted, options=options_of(keywords, EqxJitted.CALLER), of_equinox=of_equinox)
    return wrap(fun[0]) if fun else wrap


def _demand_no_jax_only(keywords: Mapping[str, Any]) -> None:
    """Raise `TypeError` for a keyword of `jax.jit` that `eqx.filter_jit` lacks."""
    for name in sorted(JAX_ONLY_KEYWORDS & keywords.keys()):
        remedy = "it traces all arrays and treats every other argument as static"
        if name.startswith("donate"):
            remedy = 'use donate="all" or donate="all-except-first" instead'
        elif name.endswith("shardings"):
            remedy = "use eqx.filter_shard to put the arguments on devices"
        raise TypeError(f"{EqxJitted.CALLER}: eqx.filter_jit does not accept the option {name}; {remedy}")
