"""Steps on which other tools fail to recompute: no cycle, never more memory than the plain step, or a reason.

The eager peak may be up to 1.10 times the peak in program order; if that of the plain step is higher, so may be ours.
"""

from __future__ import annotations

import pytest

from recompute.analysis.copies.copying import CloneOptions
from recompute.dialects.names import Names
from recompute.mlir_io.parser import parse_module
from recompute.options.selection import Selection
from recompute.planning.by_segment.copy_groups import GroupOptions
from recompute.planning.objective import MAX_EAGER_FACTOR
from recompute.proof.prove import prove
from recompute.rewriting.mark import mark
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.test.examples import inlined, original, peaks_after, peaks_before, peaks_of
from recompute.transforms.clone import clone
from recompute.transforms.cse import cse
from recompute.transforms.inline import inline
from recompute.transforms.preparation.flatten import drop_dead
from recompute.transforms.verify import verify


@pytest.mark.parametrize("name", ["tied.small.mlir", "branches.small.mlir", "chain.small.mlir", "unet.small.mlir"])
def test_peaks_are_below_the_plain_step_and_steady(name: str) -> None:
    """Both peaks fall on a scope entered twice, blocks with many branches, unary chains, and skip connections."""
    before, after = peaks_before(name), peaks_after(name)
    assert after.in_order < before.in_order
    assert after.eager < before.eager
    assert after.eager <= max(MAX_EAGER_FACTOR, before.eager / before.in_order) * after.in_order


def outputs_too(copies: int) -> float:
    """Return the peak of ten blocks with outputs recomputed too, as a multiple of the plain step's."""
    name = "chain.small.mlir"
    module = original(name).clone()
    inline(module)
    drop_dead(module)
    mark(module, Selection(outputs=True))
    clone(module, CloneOptions(GroupOptions(copies=copies)))
    cse(module)
    verify(module)
    assert prove(inlined(name), module).proved
    return peaks_of(module).in_order / peaks_before(name).in_order


def test_two_copies_save_more_than_one() -> None:
    """Recomputed outputs are copied twice: with one copy of each, the whole chain would be live at once."""
    assert outputs_too(copies=1) > 0.9
    assert outputs_too(copies=2) <= 0.40


COSINE_OF_SINE = """
func.func @step(%x: tensor<1024xf32>) -> (tensor<f32>, tensor<1024xf32>) {
  %s = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/jvp()/sin")
  %c = stablehlo.cosine %x : tensor<1024xf32> loc("jit(f)/jvp()/cos")
  %y = stablehlo.cosine %s : tensor<1024xf32> loc("jit(f)/jvp()/cos")
  %d = stablehlo.sine %s : tensor<1024xf32> loc("jit(f)/jvp()/sin")
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [0]
      : (tensor<1024xf32>, tensor<f32>) -> tensor<f32> loc("jit(f)/jvp()/reduce_sum")
  %n = stablehlo.constant dense<0.0009765625> : tensor<1024xf32>
  %g = stablehlo.negate %n : tensor<1024xf32> loc("jit(f)/transpose(jvp())/neg")
  %h = stablehlo.multiply %g, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp())/mul")
  %i = stablehlo.multiply %h, %c : tensor<1024xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %m, %i : tensor<f32>, tensor<1024xf32>
}
"""


def test_mean_of_cos_of_sin_is_recomputed() -> None:
    """The step is recomputed although its cotangent is constant: %d is needed at once, but %c waits for %h, which
    depends on %d."""
    before = parse_module(COSINE_OF_SINE)
    after = before.clone()
    result = rewrite_in_place(after)
    assert prove(before, after).proved
    assert result.copies == 1
    assert [op.name for op in after.walk() if Names.COPY in op.attributes] == ["stablehlo.cosine"]
    assert peaks_of(after).in_order < peaks_of(before).in_order
    assert peaks_of(after).eager <= peaks_of(before).eager
