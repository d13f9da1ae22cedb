"""Emission: the order of its parts for each target, and the emitted steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.analysis.step.module_steps import numbered_steps
from recompute.analysis.step.step import Steps
from recompute.dialects.names import Names
from recompute.options.recompute_options import RecomputeOptions
from recompute.rewriting import emit as emit_module
from recompute.rewriting.carry_out import carry_out_best
from recompute.rewriting.emit import emit
from recompute.search.prepare import Prepared, prepare
from recompute.support.diagnostics import Refusal
from recompute.support.operations import every_operation, name_of
from recompute.test.sine_chain import sine_chain

TARGETS = {
    "barriers": RecomputeOptions(),
    "barriers without delays": RecomputeOptions(stagger=False),
    "program order": RecomputeOptions(target="none"),
    "program order without calls": RecomputeOptions(target="none", calls=False),
}


def copied(options: RecomputeOptions) -> tuple[Prepared, Steps]:
    """Return a prepared module with copies and tokens, and its steps before they were inserted."""
    prepared = prepare(sine_chain(), options)
    steps = numbered_steps(prepared.module)
    assert carry_out_best(prepared.module, steps, options, has_cut_loops=False).copies
    return prepared, steps


def emitted(options: RecomputeOptions) -> tuple[ModuleOp, Steps]:
    prepared, steps = copied(options)
    return prepared.module, emit(prepared.module, prepared.origins, options.emission, steps)


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("barriers", ["cse", "lower", "stagger", "verify"]),
        ("barriers without delays", ["cse", "lower", "verify"]),
        ("program order", ["cse", "verify", "lower", "verify_input"]),
    ],
)
def test_copies_are_verified_while_their_order_is_visible(
    target: str, parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In program order, lowering removes the tokens, so copies are verified before."""
    calls = list[str]()

    def recording(name: str) -> Callable[..., object]:
        function = getattr(emit_module, name)

        def call(*arguments: object, **keywords: object) -> object:
            calls.append(name)
            return function(*arguments, **keywords)

        return call

    for name in ("cse", "lower", "stagger", "verify", "verify_input"):
        monkeypatch.setattr(emit_module, name, recording(name))
    emitted(TARGETS[target])
    assert calls == parts


@pytest.mark.parametrize(("target", "has_barriers"), [("barriers", True), ("program order", False)])
def test_tokens_become_barriers_or_nothing(target: str, has_barriers: bool) -> None:
    module, _ = emitted(TARGETS[target])
    names = {name_of(op) for op in every_operation(module)}
    assert ("stablehlo.optimization_barrier" in names) == has_barriers
    assert not any(name.startswith("recompute.") for name in names)


@pytest.mark.parametrize("target", TARGETS)
def test_steps_of_the_result_describe_the_emitted_operations(target: str) -> None:
    module, steps = emitted(TARGETS[target])
    ((function, step),) = steps
    assert function in module.ops
    copies = [op for op in step.phases.order.operations if Names.COPY in op.attributes]
    assert copies and all(step.phases.is_gradient(op) for op in copies)


@pytest.mark.parametrize("target", TARGETS)
def test_equal_operations_are_merged_but_copies_are_kept(target: str) -> None:
    options = TARGETS[target]
    prepared, steps = copied(options)
    sine = next(op for op in every_operation(prepared.module) if name_of(op) == "stablehlo.sine")
    duplicate = sine.clone()
    block = sine.parent_block()
    assert block is not None
    block.insert_op_after(duplicate, sine)
    before = sum(Names.COPY in op.attributes for op in every_operation(prepared.module))
    emit(prepared.module, prepared.origins, options.emission, steps)
    after = every_operation(prepared.module)
    assert duplicate not in after and sum(Names.COPY in op.attributes for op in after) == before


@pytest.mark.parametrize("target", ["barriers", "program order"])
def test_copy_that_does_not_wait_is_refused(target: str) -> None:
    """A copy of an operation before the gradient reads no token."""
    options = TARGETS[target]
    prepared, steps = copied(options)
    copy = next(op for op in every_operation(prepared.module) if Names.COPY in op.attributes)
    original = next(
        op
        for op in every_operation(prepared.module)
        if Names.COPY not in op.attributes and op.attributes.get(Names.ID) == copy.attributes[Names.ID]
    )
    copy.operands[0] = original.operands[0]
    with pytest.raises(Refusal):
        emit(prepared.module, prepared.origins, options.emission, steps)


@pytest.mark.parametrize("calls", [True, False])
def test_copies_have_origins_if_calls_are_restored(calls: bool) -> None:
    options = RecomputeOptions(target="none", calls=calls)
    prepared, steps = copied(options)
    emit(prepared.module, prepared.origins, options.emission, steps)
    copies = [op for op in every_operation(prepared.module) if Names.COPY in op.attributes]
    assert copies and all((op in prepared.origins.of) == calls for op in copies)
