"""The code that `recompute.nnx.jit` and `recompute.eqx.filter_jit` share: steps whose arguments are modules.

The framework splits modules into arrays, and `recompute.jax.jit` replaces the `jax.jit` inside the framework.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import update_wrapper
from types import MethodType
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar

from ...driver.rewrites.rewritten import Explanations
from ...support.progress import progress
from .jitted import Jitted
from .lowering.argument_hint import demand_keywords
from .lowering.lowered import Lowered
from .messages.tracebacks import shortened
from .reports.step_report import Report

P = ParamSpec("P")
R = TypeVar("R")


class ModuleStep(ABC, Generic[P, R]):
    """A jitted step that is called like its function, with modules of a framework as arguments.

    Attributes:
        CALLER: The public name of the function that makes such steps.
        PACKAGE: The package that progress lines name.
    """

    CALLER: ClassVar[str]
    PACKAGE: ClassVar[str]
    __name__: str
    __wrapped__: Callable[P, R]

    def __init__(self, function: Callable[P, R], inner: Jitted[..., Any]):
        """Wrap a function. `inner`: the step on arrays, which the framework calls."""
        self._inner = inner
        update_wrapper(self, function, updated=())

    @abstractmethod
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the step."""

    @abstractmethod
    def call_with_arrays(self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call a method of the inner step with the arguments of this step, after replacing each module with its arrays.

        Args:
            method: A method of the inner step, such as `lower_quietly`.
            args, kwargs: The arguments of this step; the modules among them are left unchanged.

        Returns:
            The result of the method.
        """

    def reworded_report(self, report: Report) -> Report:
        """Return the report on the inner step, with its advice reworded to name the options of this step."""
        return report

    @property
    def inner(self) -> Jitted[..., Any]:
        """The inner step, which takes and returns arrays instead of modules."""
        return self._inner

    def __repr__(self) -> str:
        return repr(self._inner).replace("recompute.jax.jit", self.CALLER)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    @shortened
    def report(self, *args: Any, **kwargs: Any) -> Report:
        """Return the report on a call, as `report` of a `recompute.jax.jit` step does. Modules stay unchanged."""
        demand_keywords(self._inner.__name__, self.__wrapped__, kwargs)
        with progress(f"{self.PACKAGE}: {self._inner.__name__}"):
            lowered: Lowered = self.call_with_arrays(self._inner.lower_quietly, args, kwargs)
            return self.reworded_report(lowered.comparison)

    @shortened
    def explain(self, *args: Any, **kwargs: Any) -> Explanations:
        """Return the explanations of a call, as `explain` of a `recompute.jax.jit` step does. Modules stay
        unchanged."""
        demand_keywords(self._inner.__name__, self.__wrapped__, kwargs)
        return self.call_with_arrays(self._inner.explain, args, kwargs)

    def clear_cache(self) -> None:
        """Delete the compiled steps."""
        self._inner.clear_cache()


@dataclass(frozen=True)
class Lowering:
    """A substitute for a jitted function. Its method `lower` is the given function."""

    lower: Callable[..., Any]
