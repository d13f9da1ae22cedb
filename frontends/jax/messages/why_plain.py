"""The reason that a step runs unchanged, with a remedy: `<step>: the plain step runs: <reason>; <remedy>`.

The reason is a remark or a refusal. The remedy follows from the topic of the remark, or from the class of the refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from typing_extensions import override

from ....analysis.step.descriptions import is_scope, place_in_model, without_loop_scopes
from ....analysis.step.module_steps import ForwardOverReverse, NoGradient
from ....support.diagnostics import Refusal
from ....support.locations import base_name
from ....support.remarks import Remark, Topic
from ....support.units import format_bytes

_JIT, _GRADIENT = "recompute.jax.jit", "jax.value_and_grad(loss)"
_GRADIENT_INSIDE = f"take the gradient inside: {_JIT}({_GRADIENT})"
_CALLERS = "another jax.jit, or inside jax.lax.scan or a similar function"
PACKAGE = "recompute.jax"
_TERMS: Mapping[str, tuple[str, str]] = {
    "recompute.nnx": ("recompute.nnx.jit", "nnx.value_and_grad(loss)"),
    "recompute.eqx": ("recompute.eqx.filter_jit", "eqx.filter_value_and_grad(loss)"),
}
"""For each frontend of a framework with modules: its counterparts of `recompute.jax.jit` and of
`jax.value_and_grad(loss)`."""
NAME_BLOCKS = (
    "name the model's blocks with jax.named_scope or recompute.jax.block, and choose them with segments='block*', "
    "or mark larger pieces"
)
_ALLOW_COLLECTIVES = "allow them with recompute.jax.jit(step, collectives=True)"
_REMEDIES: Mapping[Topic, str] = {
    Topic.COLLECTIVES: _ALLOW_COLLECTIVES,
    Topic.LOOP_COLLECTIVES: _ALLOW_COLLECTIVES,
    Topic.COLLECTIVES_UNEQUAL: "take the collectives out of the branch, or give the loop a constant length",
    Topic.LOOP_STACKS_SMALLEST: (
        "checkpoint the carries of the loop at intervals with recompute.jax.jit(step, loops='periodic(auto)'), or give "
        "a budget"
    ),
    Topic.LOOP_NOT_COUNTED: "write the loop as jax.lax.scan, or as jax.lax.fori_loop with constant bounds",
    Topic.LOOPS_NOT_PROVED: (
        "report this step to the developers of recompute, and meanwhile run it with jax.jit and jax.checkpoint around "
        "the body of each loop"
    ),
}
_CHECKPOINTED = "its own jax.checkpoint already recomputes values, and the options select no others that could be freed"
REMOVE_CHECKPOINT = "remove jax.checkpoint from the model to let recompute.jax.jit choose"
_MERGE_CHECKPOINT = (
    ", or leave out segments= and checkpoints=, which keep its copies: without these options, the copies may "
    "be merged back and re-planned"
)
_ONE_LAYER = (
    "in a model of one layer nothing can be freed: name the blocks of a larger model with jax.named_scope or "
    "recompute.jax.block, and choose them with segments='block*'"
)
SMALLER_BUDGET = 'a smaller budget, or "min", reduces memory'
_LOOPS = (
    Topic.LOOP_LEFT,
    Topic.LOOP_STACKS_SMALLEST,
    Topic.LOOP_COLLECTIVES,
    Topic.LOOP_NOT_COUNTED,
)
_COLLECTIVES = (Topic.COLLECTIVES, Topic.COLLECTIVES_UNEQUAL)
_BEFORE_REMEDY = "; "
E = TypeVar("E", bound=Exception)


@dataclass(frozen=True)
class PlainReason:
    """The reason that a step runs unchanged. Its text is the message on the step.

    Attributes:
        step: The name of the step; "" if the reason is a sentence that names the step.
        reason: The reason.
        remedy: Advice to the user; "" if there is none.
    """

    step: str
    reason: str
    remedy: str = NAME_BLOCKS

    @override
    def __str__(self) -> str:
        sentence = f"{self.step}: the plain step runs: {self.reason}" if self.step else self.reason
        return f"{sentence}{_BEFORE_REMEDY}{self.remedy}" if self.remedy else sentence

    def reworded(self, reword: Callable[[str], str]) -> PlainReason:
        """Return this reason with the results of a function in place of its reason and remedy."""
        return replace(self, reason=reword(self.reason), remedy=reword(self.remedy))


def nothing_recomputed(name: str, remarks: Sequence[Remark]) -> PlainReason:
    """Return the reason why nothing is recomputed in a step, given the remarks of its rewrite.

    It is the reason of one remark. A failed proof of the loops has the highest priority, because it is then
    the only reason why the loops are unchanged. Other remarks on loops follow, since loops save the most bytes, and
    then remarks on collectives. The remark on the chosen attempt is skipped, because it gives no reason.
    """
    reasons = [remark for remark in remarks if remark.topic is not Topic.CHOICE]
    loops = [remark for remark in reasons if remark.topic in _LOOPS]
    collectives = [remark for remark in reasons if remark.topic in _COLLECTIVES]
    remark = main_reason(_failed_proof(reasons) or loops or collectives or reasons or remarks)
    reason = "there is nothing to recompute" if remark is None else reason_in_model(remark)
    return PlainReason(name, reason, _remedy_for(remark))


def checkpointed(name: str, selects_segments: bool) -> PlainReason:
    """Return the reason why nothing is recomputed in a step apart from the blocks in its own `jax.checkpoint`.

    `selects_segments`: whether options select segments. If they do, the copies of `jax.checkpoint` are not merged with
    their originals.
    """
    return PlainReason(name, _CHECKPOINTED, f"{REMOVE_CHECKPOINT}{_MERGE_CHECKPOINT if selects_segments else ''}")


def plain_is_smaller(name: str, plain_bytes: int, rewritten_bytes: int, remarks: Sequence[Remark]) -> PlainReason:
    """Return the reason for running a plain step that needs no more temporaries than the rewritten step.

    Args:
        name: The name of the step.
        plain_bytes: The temporaries of the plain step, as measured by the compiler.
        rewritten_bytes: The temporaries of the rewritten step in bytes.
        remarks: The remarks of the rewrite.
    """
    remark = main_reason(_failed_proof(remarks) or remarks)
    sizes = (
        f"as compiled, it needs {format_bytes(plain_bytes)} of temporaries, and the rewritten step needs "
        f"{format_bytes(rewritten_bytes)}"
    )
    if remark is None:
        return PlainReason(name, sizes, f'compare other choices with budget="min", or {NAME_BLOCKS}')
    return PlainReason(name, f"{sizes} ({reason_in_model(remark)})", _remedy_for(remark))


def refused(name: str, error: Exception) -> PlainReason:
    """Return the reason why a step runs unchanged whose rewrite was refused with this error."""
    if isinstance(error, NoGradient) and not isinstance(error, ForwardOverReverse):
        sentence = f"{name} computes no gradient, so there is nothing to recompute and the plain step runs"
        return PlainReason("", sentence, _GRADIENT_INSIDE)
    text = error.reason if isinstance(error, Refusal) else str(error)
    # Errors with a remedy give it at their end.
    reason, _, remedy = text.rpartition(_BEFORE_REMEDY)
    return PlainReason(name, reason, remedy) if reason else PlainReason(name, text, "")


def in_jax_terms(name: str, error: E) -> E | NoGradient:
    """Return the error to raise for a step that cannot be rewritten. If the step has no gradient, the error suggests a
    remedy in JAX's terms.
    """
    if not isinstance(error, NoGradient) or isinstance(error, ForwardOverReverse):
        return error
    reason = (
        f"{name} computes no gradient, so there is nothing to recompute{_BEFORE_REMEDY}{_GRADIENT_INSIDE}; for a "
        "gradient written by hand, give the index of the loss among the results, such as primal_results=0"
    )
    return NoGradient(error.operation, reason).with_traceback(error.__traceback__)


def in_terms_of(package: str, message: str, arguments_package: str = PACKAGE) -> str:
    """Return a message of this module in which the function names of a package replace those of `recompute.jax`.

    Args:
        package: The package of the step, such as `recompute.nnx`.
        message: The message.
        arguments_package: The package that suits the modules among the arguments. Advice on the gradient of a step
            of `recompute.jax` names the functions of this package.
    """
    gradient_package = arguments_package if package == PACKAGE else package
    if gradient_package in _TERMS:
        jit, gradient = _TERMS[gradient_package]
        message = message.replace(f"{_JIT}({_GRADIENT})", f"{jit}({gradient})")
    return message.replace(_JIT, _TERMS[package][0]) if package in _TERMS else message


def under_differentiation(name: str) -> str:
    """Return the warning for a step that `jax.grad` or `jax.jvp` differentiates."""
    return (
        f"{name} is called under jax.grad, jax.jvp or another derivative, and runs there as under jax.jit: nothing is "
        f"recomputed{_BEFORE_REMEDY}{_GRADIENT_INSIDE}, as the outermost transformation"
    )


def under_vmap(name: str) -> str:
    """Return the warning for a step that `jax.vmap` batches."""
    return (
        f"{name} is called under jax.vmap, and runs there as under jax.jit: nothing is recomputed{_BEFORE_REMEDY}"
        f"batch inside: {_JIT}(jax.vmap({name}, ...)), where {name} is the function and includes its gradient"
    )


def under_shard_map(name: str) -> str:
    """Return the warning for a step that `jax.shard_map` or `jax.pmap` calls on each device."""
    return (
        f"{name} is called under jax.shard_map or jax.pmap, and runs there as under jax.jit: nothing is recomputed"
        f"{_BEFORE_REMEDY}map inside: {_JIT}(jax.shard_map({name}, ...)), where {name} is the function and includes "
        "its gradient"
    )


def not_alone(name: str) -> str:
    """Return the warning for a step that is called inside another `jax.jit` and cannot be exported separately."""
    return (
        f"{name} is called inside {_CALLERS}, and has effects or closes over traced values: it runs there as "
        "under jax.jit, and nothing is recomputed; pass the values as arguments, or use "
        f"{_JIT} as the outer jit"
    )


def options_are_ignored(name: str, outer: str) -> str:
    """Return the text of the warning `OptionsIgnored`, for a step inside the step `outer`."""
    return (
        f"{name} is called inside recompute.jax.jit({outer}), which rewrites both as one step with its own "
        f"options: the options of {name} have no effect; give them to {outer}"
    )


def barriers_are_dropped(name: str) -> str:
    """Return the text of the warning `BarriersDropped` for a step."""
    return (
        f"{name} is called inside {_CALLERS}, which drops the barriers on CPU, so that memory is no longer "
        "reduced; use recompute.jax.jit as the outer jit, which rewrites both as one step, or keep the barriers with "
        "compiler_options={'xla_disable_hlo_passes': 'cse_barrier_expander'} of the outer jit, or in XLA_FLAGS"
    )


def barriers_are_dropped_after_export(name: str) -> str:
    """Return the text of the warning `BarriersDropped` for a step that `jax.export` lowers."""
    return (
        f"{name} is exported with its recomputation, but jax.jit drops the barriers on CPU when it compiles the "
        "exported step, so that memory is no longer reduced; keep the barriers where the exported step is compiled: "
        "jax.jit(exported.call, compiler_options={'xla_disable_hlo_passes': 'cse_barrier_expander'}), or XLA_FLAGS"
    )


def several_platforms(name: str, platforms: Sequence[str]) -> str:
    """Return the text of the warning `NothingSaved` for a step that is exported for several platforms."""
    reason = f"it is lowered for several platforms at once ({', '.join(platforms)})"
    return str(PlainReason(name, reason, "export it once for each platform"))


def reason_in_model(remark: Remark) -> str:
    """Return the reason that a remark gives, with the segment's name replaced with a name that the user knows. The
    replacement is the name of a scope, a source line, or a module of the model. The remark is located at an operation
    of the segment. A reason that names no segment, or several, is returned unchanged.
    """
    if len(remark.segments) != 1:
        return remark.reason
    (segment,) = remark.segments
    line = base_name(remark.place.rpartition(":")[0])
    place = without_loop_scopes(segment) if is_scope(segment) else line or place_in_model([remark.operation])
    return remark.reason.replace(f"'{segment}'", f"'{place}'") if place else remark.reason


def main_reason(remarks: Sequence[Remark]) -> Remark | None:
    """Return the last remark that gives a specific reason, or else the last remark; None if there are no remarks."""
    specific = [remark for remark in remarks if remark.topic is not Topic.NOTHING_RECOMPUTED]
    return next(reversed(specific or remarks), None)


def _failed_proof(remarks: Sequence[Remark]) -> list[Remark]:
    """Return the remarks that report that the rewrite of the loops is not proved equal."""
    return [remark for remark in remarks if remark.topic is Topic.LOOPS_NOT_PROVED]


def _remedy_for(remark: Remark | None) -> str:
    if remark is None:
        return NAME_BLOCKS
    return _REMEDIES.get(remark.topic, _ONE_LAYER if remark.frees_nothing else NAME_BLOCKS)
