"""The private attributes of JAX and equinox on which this package depends. No other module uses private attributes. If
the installed JAX lacks an attribute, the functions raise `UnsupportedJax`, unless their docstrings say otherwise.

JAX's public API can neither replace the module of a `jax.stages.Lowered`, nor tell which arguments of a jitted function
are static.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from io import BytesIO
from typing import Any

import jax

TRIED_VERSIONS = ("0.10.2", "0.11.2", "0.12.0.1")
"""The versions of JAX with which this module was tested."""
MODULE_ATTRIBUTES = (
    ("jax._src.config", "trace_context"),
    ("jax._src.core", "trace_state_clean"),
    ("jax._src.interpreters.mlir", "make_ir_context"),
    ("jaxlib.mlir.ir", "Module.parse"),
    ("jax.interpreters.mlir", "LoweringParameters.override_lowering_rules"),
)
"""Attributes that every rewrite needs, as pairs of module and path."""
JITTED_ATTRIBUTES = ("_jit_info.static_argnums", "_jit_info.static_argnames")
"""Attributes of a result of `jax.jit` that hold its static arguments."""
LOWERED_ATTRIBUTES = ("_lowering._hlo", "_lowering._executable", "_lowering._platforms")
"""Attributes of a `jax.stages.Lowered` that hold its module, its compiled step, and its platforms."""
EXPORT_ATTRIBUTES = (
    ("jax._src.lib", "_jax.mlir.serialize_portable_artifact"),
    ("jax._src.xla_bridge", "get_backend"),
    ("jax.extend.mlir.dialects.stablehlo", "get_current_version"),
)
"""Attributes for serializing the module of a step inside another `jax.jit`, as pairs of module and path."""
DISPATCH_ATTRIBUTES = (
    ("jax._src.interpreters.pxla", "_jax.pjit"),
    ("jax._src.interpreters.pxla", "JitGlobalCppCacheKeys"),
    ("jax._src.interpreters.pxla", "cc_shard_arg"),
    ("jax._src.tree_util", "dispatch_registry"),
    ("jax._src.pjit", "_get_fastpath_data"),
    ("jax._src.stages", "Compiled.call"),
)
"""Attributes, as pairs of module and path, that make calls as fast as those of `jax.jit`. Without them, calls are
slower."""


INVALID_VALUE_ATTRIBUTES = (
    ("jax._src.api_util", "InternalFloatingPointError"),
    ("jax._src.api_util", "maybe_recursive_nan_check"),
)
"""The internal error of `jax_debug_nans` and `jax_debug_infs`, and the function of `jax.jit` that handles it."""
EQUINOX_ATTRIBUTE = "_cached"
"""The attribute of an `eqx.filter_jit` result that holds its jitted function."""
PROPAGATION_ATTRIBUTE = ("jaxlib.mlir.passmanager", "PassManager")
"""The attribute that runs MLIR passes, for reports on steps on several devices."""
PROPAGATION = "sdy-add-data-flow-edges,sdy-aggressive-propagate"
"""Shardy's passes that propagate shardings.

These passes add Shardy edges to values of loops and barriers, and change no other operations.
"""


class UnsupportedJax(RuntimeError):
    """Raised if the installed JAX lacks a private attribute that this package needs.

    The message names the attribute and the version of JAX to install.
    """

    def __init__(self, missing: str):
        tried = ", ".join(TRIED_VERSIONS)
        super().__init__(
            f"recompute.jax needs {missing}, which the installed jax {jax.__version__} does not have; recompute.jax "
            f"was tested with jax {tried}: pip install 'jax=={TRIED_VERSIONS[0]}'"
        )


@dataclass(frozen=True)
class Statics:
    """The static arguments, by index and by name. `jax.jit` derives each form from the other."""

    indices: tuple[int, ...]
    names: tuple[str, ...]


def statics_of(jitted: Any) -> Statics:
    """Return the static arguments of a result of `jax.jit`.

    Raises `UnsupportedJax` if the installed JAX lacks the private attributes.
    """
    indices, names = (_get(jitted, path) for path in JITTED_ATTRIBUTES)
    return Statics(tuple(indices), tuple(names))


def trace_context() -> Any:
    """Return, as a hashable value, the settings of JAX on which lowering depends, such as precision, x64 and mesh."""
    return _of_module(*MODULE_ATTRIBUTES[0])()


def is_under_a_trace() -> bool:
    """Return whether the caller runs inside a trace of JAX."""
    return not _of_module(*MODULE_ATTRIBUTES[1])()


def lower_with_rules(traced: jax.stages.Traced, rules: Any) -> jax.stages.Lowered:
    """Lower a step with these lowering rules, which replace JAX's own rules for the same primitives."""
    return traced.lower(_private_parameters=_with_rules(rules))


def with_lower(traced: jax.stages.Traced, lower: Callable[..., Any]) -> jax.stages.Traced:
    """Return a copy of a traced step whose method `lower` is the given function."""
    kind: Any = type(traced)
    changed: Any = object.__new__(_with_lower_of_instance(kind))
    slots = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
    for name in dict.fromkeys([*slots, *getattr(traced, "__dict__", ())]):
        if hasattr(traced, name):
            object.__setattr__(changed, name, getattr(traced, name))
    changed.lower_of_instance = lower
    return changed


@cache
def _with_lower_of_instance(kind: Any) -> Any:
    """Return a subclass of `jax.stages.Traced` whose method `lower` calls the attribute `lower_of_instance`."""

    def lower(self: Any, **keywords: Any) -> Any:
        return self.lower_of_instance(**keywords)

    return type(kind.__name__, (kind,), {"lower": lower, "__module__": kind.__module__})


def is_for_export(context: Any) -> bool:
    """Return whether a lowering rule runs for `jax.export`. `context`: the context of the rule."""
    return bool(getattr(context.module_context.lowering_parameters, "for_export", False))


@cache
def _with_rules(rules: Any) -> Any:
    _of_module(*MODULE_ATTRIBUTES[4])
    return _of_module(MODULE_ATTRIBUTES[4][0], "LoweringParameters")(override_lowering_rules=rules)


Missed = tuple[Any, Any, bool]
"""The answer to a cache miss of JAX's dispatch.

It consists of the results, the data with which C++ code handles later equal calls, and whether to discard these data.
"""


def dispatcher(name: str, function: Any, miss: Callable[..., Missed], statics: Statics) -> Any | None:
    """Return a function that dispatches calls as `jax.jit` does; None if the installed JAX offers no such function.

    The function looks up the compiled step by the tree structure, types, shardings and settings of the call.

    Args:
        name: The name of the step.
        function: The step that is jitted. `jax_debug_nans` reruns it operation by operation.
        miss: The function that handles a call that is not in the cache.
        statics: The static arguments.
    """
    try:
        pjit, keys, shard, registry, *_ = (_of_module(*place) for place in DISPATCH_ATTRIBUTES)
        return pjit(name, function, miss, list(statics.indices), list(statics.names), keys(), registry, shard)
    except (UnsupportedJax, TypeError):
        return None


def call_compiled(compiled: jax.stages.Compiled, args: Any, kwargs: Any) -> Missed:
    """Call a compiled step from the `miss` function of `dispatcher`. Return the results, and the data with which JAX's
    C++ code runs later calls, as JAX's dispatch expects them.

    The C++ code cannot run steps with effects, mutable arrays, or constants as arguments. For such steps, the data is
    None.
    """
    whole: Any = compiled
    try:
        executable, params = whole._executable, whole._params
        fastpath, call = (_of_module(*place) for place in DISPATCH_ATTRIBUTES[4:])
        needs_python = params.const_args or params.is_high or executable._mut
    except (UnsupportedJax, AttributeError):
        return compiled(*args, **kwargs), None, False
    if needs_python or getattr(executable.unsafe_call, "has_host_callbacks", True):
        return compiled(*args, **kwargs), None, False
    results, flat_results, flat_args = call(params, *args, **kwargs)
    return results, fastpath(executable, params.out_tree, flat_args, flat_results, (), (), None, ()), False


def raise_invalid_values(error: Exception, function: Any, args: Any, kwargs: Any) -> None:
    """Raise the `FloatingPointError` of `jax.jit` if the error is the internal error of `jax_debug_nans`.

    As under `jax.jit`, the step runs again operation by operation, so that the error names the first operation with an
    invalid value. Other errors are left to the caller.
    """
    try:
        kind, rerun = (_of_module(*place) for place in INVALID_VALUE_ATTRIBUTES)
    except UnsupportedJax:
        return
    if isinstance(error, kind):
        rerun(error, function, args, kwargs)


def platforms(lowered: jax.stages.Lowered) -> tuple[str, ...]:
    """Return the platforms for which a step was lowered."""
    return tuple(_get(lowered, LOWERED_ATTRIBUTES[2]))


def demand_attributes(lowered: jax.stages.Lowered) -> None:
    """Raise `UnsupportedJax` if the installed JAX lacks an attribute that a rewrite needs, before any work is done."""
    for path in LOWERED_ATTRIBUTES:
        _get(lowered, path)
    for module, path in MODULE_ATTRIBUTES:
        _of_module(module, path)


def with_module(lowered: jax.stages.Lowered, module: Any) -> jax.stages.Lowered:
    """Return a copy of `lowered` that compiles this MLIR module, with the same arguments and results.

    JAX shares one lowering among equal calls and caches the compiled step in it. The copy has no compiled step.
    """
    demand_attributes(lowered)
    changed: Any = copy.copy(lowered)
    changed._lowering = copy.copy(changed._lowering)
    changed._lowering._executable = None
    changed._lowering._hlo = module
    return changed


def propagate_shardings(module: Any) -> Any | None:
    """Propagate the shardings of an MLIR module in place with Shardy's passes. Return the module.

    Return None if the installed JAX lacks the passes, or if they fail.
    """
    try:
        manager = _of_module(*PROPAGATION_ATTRIBUTE)
        with module.context:
            manager.parse(f"builtin.module({PROPAGATION})").run(module.operation)
    except (UnsupportedJax, ValueError, RuntimeError):  # MLIR reports errors as `RuntimeError`.
        return None
    return module


def jitted_of_equinox(wrapper: Any) -> Any:
    """Return the jitted function that an `eqx.filter_jit` result calls. Raises `ImportError` if it has none."""
    if not hasattr(wrapper, EQUINOX_ATTRIBUTE):
        lacking = f"the result of eqx.filter_jit has no attribute {EQUINOX_ATTRIBUTE}, which recompute.eqx needs"
        tested = "recompute.eqx was tested with equinox 0.13"
        raise ImportError(f"{lacking}; {tested}: pip install 'equinox>=0.13,<0.14'")
    return getattr(wrapper, EQUINOX_ATTRIBUTE)


def with_jitted_of_equinox(wrapper: Any, jitted: Any) -> Any:
    """Return a copy of an `eqx.filter_jit` result that calls the given jitted function."""
    changed: Any = copy.copy(wrapper)
    object.__setattr__(changed, EQUINOX_ATTRIBUTE, jitted)  # Modules of equinox are frozen.
    return changed


def mlir_context() -> Any:
    """Return a new MLIR context with all dialects that JAX uses."""
    return _of_module(*MODULE_ATTRIBUTES[2])()


def parse_mlir(text: str) -> Any:
    """Parse and verify an MLIR module, in a new context."""
    with mlir_context():
        return _of_module(*MODULE_ATTRIBUTES[3])(text)


def portable_artifact(text: str) -> bytes:
    """Serialize a module, given as text, as `jax.export` does, including dialects other than StableHLO.

    Raises `ValueError` if MLIR cannot serialize it.
    """
    serialize, backend, version = (_of_module(*place) for place in EXPORT_ATTRIBUTES)
    try:
        return serialize(parse_mlir(text), version(), backend().serialize_with_sdy)
    except Exception as error:  # MLIR raises errors of several types.
        raise ValueError(str(error)) from error


def bytecode_of(lowered: jax.stages.Lowered) -> bytes:
    """Return the module as MLIR bytecode with locations. Equal modules have equal bytes in every process."""
    stream = BytesIO()
    _get(lowered, LOWERED_ATTRIBUTES[0]).operation.write_bytecode(stream)
    return stream.getvalue()


def module_of_bytecode(data: bytes) -> Any:
    """Read and verify a module that `bytecode_of` wrote, in a new context. Raises MLIR's errors."""
    with mlir_context():
        return _of_module(*MODULE_ATTRIBUTES[3])(data)


@cache
def _of_module(module: str, path: str) -> Any:
    try:
        return operator.attrgetter(path)(import_module(module))
    except (ImportError, AttributeError) as error:
        raise UnsupportedJax(f"{module}.{path}") from error


def _get(owner: object, path: str) -> Any:
    try:
        return operator.attrgetter(path)(owner)
    except AttributeError as error:
        raise UnsupportedJax(f"{type(owner).__name__}.{path}") from error
