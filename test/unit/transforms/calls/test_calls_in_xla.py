"""Restored calls preserve the bits of results in XLA, which inlining alone would change."""

from __future__ import annotations

from typing import Any

import pytest

from recompute.mlir_io.printer import print_module
from recompute.proof.prove import prove
from recompute.search.prepare import prepare
from recompute.test.benchmark_scripts import script
from recompute.transforms.calls.restore import restore_calls
from recompute.transforms.cse import cse

pytest.importorskip("jax", reason="the test compiles with JAX")


@pytest.fixture(scope="module")
def forms() -> Any:
    return script("rounding.step_forms")


@pytest.fixture(scope="module")
def distances() -> Any:
    return script("rounding.distances")


@pytest.mark.slow("vision_transformer", "paddle_fleet")
@pytest.mark.parametrize("name", ["mlp", "paddle_fleet", "vision_transformer"])
def test_inlining_and_restoring_calls_gives_plain_step(forms: Any, distances: Any, name: str) -> None:
    result = distances.forms_of(name)
    plain, original = result.lowered[forms.PLAIN], result.modules[forms.PLAIN]
    prepared = prepare(original)
    cse(prepared.module, call_of=prepared.origins.instance_of)
    restored = restore_calls(prepared.module, original, prepared.origins)
    assert restored.calls == restored.whole > 0 and not restored.left
    assert prove(original, prepared.module)
    lowered = forms.with_module(plain, print_module(prepared.module))
    inputs = [distances.random_inputs(result.step, 0) for _ in range(2)]
    results = [first.compile()(*given) for first, given in zip((plain, lowered), inputs, strict=True)]
    assert not distances.Closeness.of(*results).differing


@pytest.mark.slow
def test_results_equal_those_of_checkpoint(forms: Any, distances: Any) -> None:
    """Results on the vision transformer have the bits of `jax.checkpoint`, although inlining changes every one of
    them."""
    result = distances.forms_of("vision_transformer")
    results = dict[str, Any]()
    for name in (forms.PLAIN, forms.INLINED, forms.OURS, forms.CHECKPOINT):
        results[name] = result.lowered[name].compile()(*distances.random_inputs(result.step, 0))
    assert distances.Closeness.of(results[forms.PLAIN], results[forms.INLINED]).differing
    assert not distances.Closeness.of(results[forms.PLAIN], results[forms.OURS]).differing
    assert not distances.Closeness.of(results[forms.CHECKPOINT], results[forms.OURS]).differing
