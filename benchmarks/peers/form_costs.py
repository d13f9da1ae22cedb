"""Measure the costs of each variant of a step, as the compiler reports them, and count the results that differ from the
plain step's."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from recompute.benchmarks.harness.compiled_cost import aliased_bytes, temporaries_and_flops
from recompute.benchmarks.harness.processes import with_cpu_seconds
from recompute.benchmarks.harness.result_arrays import arrays_of
from recompute.benchmarks.peers.compiler_settings import CompilerSetting, settings_of
from recompute.benchmarks.peers.peer import Built, Peer
from recompute.benchmarks.peers.peer_forms import FORMS, PLAIN, PeerForm, forms_of

RUNS = 20


@dataclass(frozen=True)
class FormCost:
    """Costs of one variant of a step, compiled with one compiler setting.

    The compile and rewrite times are CPU times, on which other load on the machine has little effect.

    Attributes:
        temp_bytes: The bytes of temporaries that XLA reports.
        alias_bytes: The bytes of results that reuse donated arguments, as XLA reports them.
        flops: XLA's FLOPs, which count each loop body once.
        differing: The number of results whose bits differ from the plain step's.
        results: The number of results.
        compile_seconds: The CPU time of XLA's compiler.
        own_seconds: The CPU time of the rewrite, before XLA.
        step_seconds: The time of one run; None on CPU, where it is not meaningful.
        peak_bytes: The peak that the allocator reports, or None.
        why: The reason why the plain step runs; None if the rewritten step runs.
    """

    temp_bytes: int
    alias_bytes: int
    flops: float
    differing: int
    results: int
    compile_seconds: float
    own_seconds: float = 0.0
    step_seconds: float | None = None
    peak_bytes: int | None = None
    why: str | None = None


def costs(
    peer: Peer, size: str, only: tuple[str, ...] = FORMS, settings: Sequence[CompilerSetting] = ()
) -> dict[str, Any]:
    """Measure the plain step and the variants in `only`. Return costs by setting and variant, and errors by variant."""
    platform = jax.default_backend()
    jax.jit(lambda x: x + 1)(0.0)
    with peer.build(None, size).context():
        forms = dict(forms_of(peer, size, (PLAIN, *only)))
        errors = {name: f"{type(form).__name__}: {form}" for name, form in forms.items() if isinstance(form, Exception)}
        result = {name: form for name, form in forms.items() if isinstance(form, PeerForm)}
        return {
            "platform": platform,
            "costs": {
                setting.name: costs_under(result, setting, platform) for setting in settings or settings_of(platform)
            },
            "errors": errors,
        }


def costs_under(forms: Mapping[str, PeerForm], setting: CompilerSetting, platform: str) -> dict[str, FormCost]:
    """Compile and run each variant with one compiler setting, and return its costs."""
    costs_by_form, plain = dict[str, FormCost](), list[np.ndarray]()
    for name, form in forms.items():
        compile_form = partial(form.lowered.compile, compiler_options=dict(setting.options) or None)
        compiled, seconds = with_cpu_seconds(compile_form)
        results = arrays_of(compiled(*form.built.arguments(0)))
        if name == PLAIN:
            plain = results
        temporaries, flops = temporaries_and_flops(compiled)
        costs_by_form[name] = FormCost(
            temp_bytes=temporaries,
            alias_bytes=aliased_bytes(compiled),
            flops=flops,
            differing=differing(plain, results),
            results=len(results),
            compile_seconds=seconds,
            own_seconds=form.seconds,
            step_seconds=None if platform == "cpu" else step_seconds(compiled, form.built),
            why=form.why,
        )
    return costs_by_form


def differing(plain: list[np.ndarray], other: list[np.ndarray]) -> int:
    """Return the number of results whose bits, shapes or types differ between two variants of a step."""
    pairs = zip(plain, other, strict=True)
    return sum(a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes() for a, b in pairs)


def step_seconds(compiled: Any, built: Built, runs: int = RUNS) -> float:
    """Return the median time of a run.

    Each run's arguments are created before the clock starts, since some are donated.
    """
    durations = list[float]()
    for seed in range(runs + 1):
        arguments = jax.block_until_ready(built.arguments(seed))
        start = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        durations.append(time.perf_counter() - start)
    return statistics.median(durations[1:])


def peak_bytes(peer: Peer, size: str, form: str, setting: str) -> int | None:
    """Run a variant, and return the device's peak in this process, or None if the device reports none.

    Call this once per process, since the peak is never reset.
    """
    (options,) = (entry.options for entry in settings_of(jax.default_backend()) if entry.name == setting)
    with peer.build(None, size).context():
        (lowered_form,) = (entry for name, entry in forms_of(peer, size, (form,)) if name == form)
        if isinstance(lowered_form, Exception):
            return None
        compiled = lowered_form.lowered.compile(compiler_options=dict(options) or None)
        jax.block_until_ready(compiled(*lowered_form.built.arguments(0)))
    held = jax.local_devices()[0].memory_stats()
    return None if held is None else held.get("peak_bytes_in_use")
