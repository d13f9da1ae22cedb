"""Sources of phases: JAX's paths, attributes, and sources that another frontend registers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from recompute.analysis.step.direction import Direction
from recompute.analysis.step.order import functions_of
from recompute.analysis.step.phase_sources import PhaseSource, register_source, registrations_undone
from recompute.analysis.step.phases import Phases, phases
from recompute.dialects.names import Names
from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import Refusal
from recompute.tools.recompute_opt import main

T = "tensor<4xf32>"
# As a frontend could write it that says `forward` and `backward` in an attribute of its own.
ACME = f"""func.func @step(%x: {T}, %ct: {T}) -> ({T}, {T}) {{
  %a = stablehlo.sine %x {{acme.pass = "forward"}} : {T}
  %b = stablehlo.tanh %a {{acme.pass = "forward"}} : {T}
  %g = stablehlo.multiply %ct, %b {{acme.pass = "backward"}} : {T}
  %h = stablehlo.multiply %g, %a : {T}
  %i = stablehlo.add %h, %g {{acme.pass = "backward"}} : {T}
  func.return %b, %i : {T}, {T}
}}
"""
PASSES = {"forward": Direction.FORWARD, "backward": Direction.BACKWARD, "both": Direction.NESTED}


def acme_direction(op: Operation) -> Direction | None:
    message = op.attributes.get("acme.pass")
    return PASSES[message.data] if isinstance(message, StringAttr) else None


SOURCE = PhaseSource(acme_direction, lambda op: f"the attribute acme.pass of {op.name}")


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    with registrations_undone():
        register_source("acme", SOURCE)
        yield


def classified(module: ModuleOp) -> Phases | None:
    return phases(functions_of(module)[0])


def test_registered_phase_source_gives_phases() -> None:
    classes = classified(parse_module(ACME))
    assert classes is not None
    assert [classes.phase[op] for op in classes.order.operations] == [
        *("primal", "primal", "gradient", "gradient", "gradient", "update"),
    ]


def test_no_phases_without_matching_source() -> None:
    assert classified(parse_module(ACME.replace("acme.", "other."))) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            ACME.replace(
                'sine %x {acme.pass = "forward"} : tensor<4xf32>',
                'sine %x {acme.pass = "backward"} : tensor<4xf32> loc("jit(f)/jvp(b)/sin")',
            ),
            "the location 'jit(f)/jvp(b)/sin' says the forward pass, but the attribute acme.pass of stablehlo.sine "
            "says the backward pass",
        ),
        (
            ACME.replace("sine %x {", 'sine %x {recompute.phase = "gradient", '),
            'the attribute recompute.phase = "gradient" says the backward pass, but the attribute acme.pass of '
            "stablehlo.sine says the forward pass",
        ),
        (
            ACME.replace('%a = stablehlo.sine %x {acme.pass = "forward"', '%a = stablehlo.sine %x {acme.pass = "both"'),
            "the attribute acme.pass of stablehlo.sine marks a gradient of a gradient",
        ),
    ],
)
def test_sources_are_checked_against_each_other(text: str, words: str) -> None:
    with pytest.raises(Refusal) as refused:
        classified(parse_module(text))
    assert words in refused.value.reason


def test_an_update_by_attribute_is_in_neither_pass() -> None:
    """A phase attribute takes precedence over sources that are registered later."""
    classes = classified(parse_module(ACME.replace("add %h, %g {", 'add %h, %g {recompute.phase = "update", ')))
    assert classes is not None
    assert [classes.phase[op] for op in classes.order.operations if Names.PHASE in op.attributes] == ["update"]


def test_built_in_sources_cannot_be_replaced() -> None:
    with pytest.raises(ValueError, match="built-in phase source 'jax' cannot be replaced"):
        register_source("jax", SOURCE)


RULES = """
from xdsl.dialects.builtin import StringAttr
from recompute.analysis.step.direction import Direction
from recompute.analysis.step.phase_sources import PhaseSource, register_source

def direction(op):
    said = op.attributes.get("mine.pass")
    return Direction[said.data] if isinstance(said, StringAttr) else None

register_source("mine", PhaseSource(direction, lambda op: "the attribute mine.pass"))
"""


def test_driver_loads_a_registered_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ACME.replace("acme.", "mine.").replace('"forward"', '"FORWARD"').replace('"backward"', '"BACKWARD"')
    step, rules = tmp_path / "step.mlir", tmp_path / "rules.py"
    step.write_text(text)
    rules.write_text(RULES)
    assert main([str(step), "-p", "recompute-phase"]) == 1
    assert "no gradient found" in capsys.readouterr().err
    assert main([str(step), "-p", "recompute-phase", "--load-rules", str(rules)]) == 0
    assert 'recompute.phase = "gradient"' in capsys.readouterr().out
    assert main([str(step), "-p", "recompute-phase"]) == 1
