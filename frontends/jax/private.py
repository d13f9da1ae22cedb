"""Every private attribute of JAX that is used here, and nowhere else.

Public API has no way to give a `jax.stages.Lowered` another module, or to ask what a jitted function takes for static.
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

TRIED_VERSIONS = ("0.10.2",)
"""Versions with which everything here was run."""
OF_MODULES = (
    ("jax._src.config", "trace_context"),
    ("jax._src.core", "trace_state_clean"),
    ("jax._src.interpreters.mlir", "make_ir_context"),
    ("jaxlib.mlir.ir", "Module.parse"),
    ("jax.interpreters.mlir", "LoweringParameters.override_lowering_rules"),
)
OF_JITTED = ("_jit_info.static_argnums", "_jit_info.static_argnames")
OF_LOWERED = ("_lowering._hlo", "_lowering._executable", "_lowering._platforms")


OF_EXPORT = (
    ("jax._src.lib", "_jax.mlir.serialize_portable_artifact"),
    ("jax._src.xla_bridge", "get_backend"),
    ("jax.extend.mlir.dialects.stablehlo", "get_current_version"),
)
"""Attributes of JAX that serialize the module of a step inside another `jax.jit`."""
OF_DISPATCH = (
    ("jax._src.interpreters.pxla", "_jax.pjit"),
    ("jax._src.interpreters.pxla", "JitGlobalCppCacheKeys"),
    ("jax._src.interpreters.pxla", "cc_shard_arg"),
    ("jax._src.tree_util", "dispatch_registry"),
    ("jax._src.pjit", "_get_fastpath_data"),
    ("jax._src.stages", "Compiled.call"),
)
"""Attributes of JAX that make calls of compiled steps as fast as those of `jax.jit`; without them calls are slower."""


class UnsupportedJax(RuntimeError):
    """The installed JAX lacks an attribute that is used here; the message names it, and the version of JAX to
    install."""

    def __init__(self, missing: str):
        tried = ", ".join(TRIED_VERSIONS)
        super().__init__(
            f"recompute.jax needs {missing}, which the installed jax {jax.__version__} does not have; recompute.jax "
            f"was tested with jax {tried}: pip install 'jax=={TRIED_VERSIONS[-1]}'"
        )


@dataclass(frozen=True)
class Statics:
    """Which arguments are static, by number and by name, as `jax.jit` completes the one by the other."""

    numbers: tuple[int, ...]
    names: tuple[str, ...]


def statics_of(jitted: Any) -> Statics:
    """Return the static arguments of a function that `jax.jit` returned. All functions below raise `UnsupportedJax`."""
    numbers, names = (_get(jitted, path) for path in OF_JITTED)
    return Statics(tuple(numbers), tuple(names))


def trace_context() -> Any:
    """Return all settings of JAX that the meaning of a step depends on: precision, x64, mesh and so on. The result is
    hashable."""
    return _of_module(*OF_MODULES[0])()


def is_under_a_trace() -> bool:
    return not _of_module(*OF_MODULES[1])()


def lower_with_rules(traced: jax.stages.Traced, rules: Any) -> jax.stages.Lowered:
    """Lower as JAX does, with these lowering rules of primitives in place of its own."""
    return traced.lower(_private_parameters=_with_rules(rules))


@cache
def _with_rules(rules: Any) -> Any:
    _of_module(*OF_MODULES[4])
    return _of_module(OF_MODULES[4][0], "LoweringParameters")(override_lowering_rules=rules)


Missed = tuple[Any, Any, bool]
"""The answer to a miss of JAX's dispatch: the results, the data to serve equal calls without Python, and whether to
forget these data again."""


def dispatched(name: str, miss: Callable[..., Missed], statics: Statics) -> Any | None:
    """Return a function that dispatches as `jax.jit` does: it looks up the compiled step by structure, types, shardings
    and settings, and calls `miss` on a miss. None if this JAX lacks the dispatcher."""
    try:
        pjit, keys, shard, registry, *_ = (_of_module(*place) for place in OF_DISPATCH)
        return pjit(name, None, miss, list(statics.numbers), list(statics.names), keys(), registry, shard)
    except (UnsupportedJax, TypeError):
        return None


def called(compiled: jax.stages.Compiled, args: Any, kwargs: Any) -> Missed:
    """Return the results of a call, for `dispatched`. Effects, mutable arrays and constants as arguments need
    Python."""
    whole: Any = compiled
    try:
        executable, params = whole._executable, whole._params
        fastpath, call = (_of_module(*place) for place in OF_DISPATCH[4:])
        needs_python = params.const_args or params.is_high or executable._mut
    except (UnsupportedJax, AttributeError):
        return compiled(*args, **kwargs), None, False
    if needs_python or getattr(executable.unsafe_call, "has_host_callbacks", True):
        return compiled(*args, **kwargs), None, False
    results, flat_results, flat_args = call(params, *args, **kwargs)
    return results, fastpath(executable, params.out_tree, flat_args, flat_results, (), (), None, ()), False


def platforms(lowered: jax.stages.Lowered) -> tuple[str, ...]:
    return tuple(_get(lowered, OF_LOWERED[2]))


def demand_attributes(lowered: jax.stages.Lowered) -> None:
    """Return whether all is there that `with_module` needs, before anybody works for it."""
    for path in OF_LOWERED:
        _get(lowered, path)
    for module, path in OF_MODULES:
        _of_module(module, path)


def with_module(lowered: jax.stages.Lowered, module: Any) -> jax.stages.Lowered:
    """Return a copy of `lowered` that compiles this module of MLIR, which has the same arguments and results.

    JAX shares one lowering among equal calls and caches the compiled step in it; the copy starts without a compiled
    step.
    """
    demand_attributes(lowered)
    changed: Any = copy.copy(lowered)
    changed._lowering = copy.copy(changed._lowering)
    changed._lowering._executable = None
    changed._lowering._hlo = module
    return changed


def mlir_context() -> Any:
    """Return a new one, with all dialects that JAX knows."""
    return _of_module(*OF_MODULES[2])()


def parse_mlir(text: str) -> Any:
    """Parse and verify the text as a module of MLIR."""
    with mlir_context():
        return _of_module(*OF_MODULES[3])(text)


def portable_artifact(text: str) -> bytes:
    """Return the module as `jax.export` serializes it, dialects beside StableHLO included. Raises `ValueError`."""
    serialize, backend, version = (_of_module(*place) for place in OF_EXPORT)
    try:
        return serialize(parse_mlir(text), version(), backend().serialize_with_sdy)
    except Exception as error:  # MLIR's errors have several types.
        raise ValueError(str(error)) from error


def bytecode_of(lowered: jax.stages.Lowered) -> bytes:
    """Return the module as bytecode of MLIR, locations included; equal modules give equal bytes, in every process."""
    stream = BytesIO()
    _get(lowered, OF_LOWERED[0]).operation.write_bytecode(stream)
    return stream.getvalue()


def module_of_bytecode(data: bytes) -> Any:
    """Return the module of `bytecode_of`, in a context of its own, verified. Raises MLIR's errors."""
    with mlir_context():
        return _of_module(*OF_MODULES[3])(data)


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
