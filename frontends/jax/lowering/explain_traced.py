"""Explain which values a traced step saves, and the effect of recomputing each segment."""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax.extend import source_info_util

from ....analysis.step.devices import partitions_of
from ....analysis.step.module_steps import ForwardOverReverse, NoGradient
from ....driver.api import explain_verified
from ....driver.rewrites.rewritten import Explanations
from ....driver.verification.step_input import as_module
from ....driver.verification.verified import verify_module
from ..bridge.crossing import module_of
from ..compilation.allocation import temporary_bytes
from ..keywords.jit_options import JitOptions
from ..messages import why_plain
from ..reports.device_part import NotPropagated, bytes_per_device, part_of_a_device, whole_bytes
from .lowered import Lowered
from .rewrite_lowered import lower_with_marks, unchanged_step

# Operations that JAX adds during lowering get the location of the user's line, not of this file.
source_info_util.register_exclusion(__file__)


def explain_traced(
    name: str,
    traced: jax.stages.Traced,
    options: JitOptions,
    lowered: Lowered | None,
    in_terms: Callable[[str], str],
) -> Explanations:
    """Return the explanations of a step, with the temporaries of the compiled plain step.

    Args:
        name: The name of the step.
        traced: The step, traced.
        options: The options of the step.
        lowered: The lowered step, whose plain step is compiled at most once; None if it was not lowered before.
        in_terms: A function that rewords a message to name the functions of the step's package.

    Raises:
        NoGradient: For a step without a gradient.
    """
    module = as_module(module_of(lower_with_marks(traced), name))
    verify_module(module)
    devices, note = partitions_of(module), ""
    if devices > 1:
        try:
            module, note = part_of_a_device(module), bytes_per_device(devices)
        except NotPropagated:
            note = whole_bytes(devices)
    rewrite = options.rewrite
    try:
        explanations = explain_verified(
            module, rewrite.selection, options=rewrite if options.chooses_segments else None
        )
    except NoGradient as error:
        if isinstance(error, ForwardOverReverse):
            raise
        raise NoGradient(error.operation, in_terms(why_plain.in_jax_terms(name, error).reason)) from None
    plain = lowered or unchanged_step(name, traced.lower(), options)
    return explanations.measured(name, temporary_bytes(plain.plain_measured), note)
