"""Compile a lowered step, with the compiler options of `recompute.jax.jit` and the options that keep barriers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from ....options.recompute_options import RecomputeOptions
from ..bridge import crossing
from ..compilation.allocation import reported_bytes
from ..compilation.compiler_options import keeping_barriers
from ..internals import private
from ..keywords.jit_options import JitOptions


def keeping_options(
    plain: jax.stages.Lowered, options: JitOptions, compiler_options: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Return the options that keep barriers, merged with the compiler options of `recompute.jax.jit` and of this
    call."""
    return keeping_barriers(private.platforms(plain), options.jit.get("compiler_options"), compiler_options)


def compile_lowered(lowered: Any, compiler_options: dict[str, Any] | None) -> jax.stages.Compiled:
    return lowered.compile(compiler_options)


def searching_options(options: JitOptions, plain: jax.stages.Lowered) -> RecomputeOptions:
    """Return the options of the rewrite. If the option `search` is set, they let the compiler measure the attempts."""
    if not options.search:
        return options.rewrite_without_budget
    compiler_options = keeping_options(plain, options, None)

    def temporaries(module: ModuleOp) -> int:
        compiled = compile_lowered(crossing.with_module(plain, module), compiler_options)
        return reported_bytes(module, compiled, "the option search")

    workers = os.cpu_count() or 1
    return replace(options.rewrite_without_budget, attempts=options.search, measure=temporaries, workers=workers)
