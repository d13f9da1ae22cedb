"""Python API: the same pipeline as in `recompute-opt`, from text or from a module, with a plan or a planner."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

import recompute
from recompute.dialects.names import Names
from recompute.mlir_io.printer import print_module
from recompute.planning.plan_file import BadPlan
from recompute.support.operations import name_of
from recompute.test.examples import FOLDER, original
from recompute.tools.recompute_opt import main

CHAIN = FOLDER / "chain.small.mlir"


def test_rewrite_equals_recompute_opt(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(CHAIN), "-p", "recompute", "--print-debuginfo"]) == 0
    result = recompute.rewrite(CHAIN.read_text(), name=str(CHAIN))
    written = capsys.readouterr()
    assert result.text == written.out
    # The driver reports remarks on the whole step at the file, and adds a last line with the peaks.
    *remarks, summary = [line.partition(": remark: ")[2] for line in written.err.splitlines()]
    assert [remark.reason for remark in result.remarks] == remarks
    assert summary.startswith("@main: peak ") and f"{result.copies} operations are recomputed" in summary
    assert result.proof and result.proof.results and result.copies and result.extra_flops


def test_input_module_is_not_modified() -> None:
    module = original("chain.small.mlir")
    before = print_module(module, debuginfo=True)
    result = recompute.rewrite(module)
    assert print_module(module, debuginfo=True) == before and result.module is not module
    ((name, (held, now)),) = result.memory().items()
    assert name == "main" and now.peak_bytes < held.peak_bytes
    assert recompute.prove(module, result.module) and recompute.prove(CHAIN.read_text(), result.text)


def test_plan_text_or_planner_replaces_the_search() -> None:
    first = recompute.rewrite(CHAIN.read_text())
    again = recompute.rewrite(CHAIN.read_text(), recompute.RecomputeOptions(plan=first.plan_text))
    assert again.text == first.text and again.plans == first.plans
    nothing = recompute.rewrite(CHAIN.read_text(), recompute.RecomputeOptions(planner=lambda graph: recompute.Plan()))
    assert nothing.copies == 0 and "nothing is recomputed: the step is left as it is" in str(nothing.remarks[-1])


def test_invalid_arguments_are_rejected() -> None:
    step, plan = CHAIN.read_text(), recompute.Plan()
    with pytest.raises(ValueError, match=r"recompute\.rewrite: give plan= or planner=, not both"):
        recompute.rewrite(step, recompute.RecomputeOptions(plan=[], planner=lambda graph: plan))
    with pytest.raises(ValueError, match="unknown target 'gpu'; expected one of"):
        recompute.rewrite(step, recompute.RecomputeOptions(target="gpu"))
    with pytest.raises(ValueError, match="unknown model 'gpu'; expected one of order, xla"):
        recompute.memory(step, "gpu")
    with pytest.raises(BadPlan, match="not valid JSON"):
        recompute.rewrite(step, recompute.RecomputeOptions(plan="{"))
    with pytest.raises(ParseError, match="unknown operation 'what'"):
        recompute.rewrite("what")
    with pytest.raises(recompute.Refusal, match=r"nothing is recomputed: the step is left as it is|\(strict\)"):
        recompute.rewrite(step, recompute.RecomputeOptions(planner=lambda graph: plan, strict=True))
    with pytest.raises(AttributeError, match="has no attribute 'rewrit'"):
        _ = recompute.rewrit  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]


def test_memory_explain_and_context_inspect_a_step() -> None:
    assert (
        recompute.memory(CHAIN.read_text())["main"].peak_bytes
        > recompute.memory(CHAIN.read_text(), "xla")["main"].peak_bytes
    )
    (result,) = recompute.explain(original("chain.small.mlir"), recompute.Selection("block*"))
    assert result.function == "main" and result.segments
    assert {"func", "stablehlo", "recompute"} <= set(recompute.context().registered_dialect_names)


def test_proof_false_skips_the_proof() -> None:
    assert recompute.rewrite(CHAIN.read_text(), recompute.RecomputeOptions(proof=False)).proof is None


def test_import_loads_no_dependency() -> None:
    """The import of the package loads no dependency; a module is loaded at its first use."""
    program = "import sys, recompute\nprint('xdsl' in sys.modules, 'numpy' in sys.modules, *dir(recompute))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert result[:2] == ["False", "False"] and {"rewrite", "prove", "explain", "memory"} <= set(result)


def test_measure_chooses_smallest_attempt() -> None:
    items = list[int]()

    def measure(module: ModuleOp) -> int:
        """Return a size to which only copies of exponentials contribute."""
        copies = [op for op in module.walk() if Names.COPY in op.attributes]
        items.append(1000 if not copies else 10 + sum(name_of(op) == "stablehlo.exponential" for op in copies))
        return items[-1]

    result = recompute.rewrite(CHAIN.read_text(), recompute.RecomputeOptions(measure=measure, calls=False))
    assert result.proof and result.copies and len(items) > 2
    assert measure(result.module) == min(items)
    assert str(result.remarks[0].reason).startswith("measured: unchanged: 1000 bytes; named segments: ")


def test_step_without_measured_saving_is_unchanged() -> None:
    step = CHAIN.read_text()
    result = recompute.rewrite(step, recompute.RecomputeOptions(measure=lambda _: 1000))
    assert result.copies == 0 and "the step is left as it is" in str(result.remarks[0])
    assert print_module(result.module) == print_module(original("chain.small.mlir"))
    with pytest.raises(recompute.Refusal, match=r"measured: .* \(strict\)"):
        recompute.rewrite(step, recompute.RecomputeOptions(measure=lambda _: 1000, strict=True))


def test_path_in_place_of_a_plan_is_rejected() -> None:
    with pytest.raises(
        BadPlan, match=r"in Python, plan is the JSON text, not a path: pass Path\('plan.json'\).read_text\(\)"
    ):
        recompute.rewrite(CHAIN.read_text(), recompute.RecomputeOptions(plan="plan.json"))


def test_step_lowered_by_jax_is_accepted() -> None:
    """A step lowered by JAX is accepted as its text with locations; the error for other objects names the accepted
    types."""
    jax = pytest.importorskip("jax")

    def loss(x: Any) -> Any:
        return jax.numpy.sum(jax.numpy.sin(jax.numpy.tanh(x)))

    lowered = jax.jit(jax.value_and_grad(loss)).lower(jax.ShapeDtypeStruct((64,), "float32"))
    text = lowered.as_text(debug_info=True)
    assert recompute.fit(lowered, "4MiB") == recompute.fit(text, "4MiB")
    assert recompute.fit(lowered, "4MiB").fits
    assert recompute.rewrite(lowered).text == recompute.rewrite(text).text
    assert recompute.memory(lowered)["main"].peak_bytes == recompute.memory(text)["main"].peak_bytes > 0
    assert recompute.prove(lowered, text)
    for wrong in (3, recompute.rewrite(text)):
        with pytest.raises(TypeError, match=r"expected a module of xDSL or of MLIR.*, its text, or .* jax\.jit"):
            recompute.fit(wrong, "4MiB")  # pyright: ignore[reportArgumentType]


def test_function_in_place_of_a_lowered_step_is_refused_with_the_remedy() -> None:
    jax = pytest.importorskip("jax")
    jax_frontend = pytest.importorskip("recompute.jax")

    def train_step(x: Any) -> Any:
        return x

    remedy = r"recompute\.jax\.explain\(train_step, \*arguments, budget=\.\.\.\) to check whether the step fits$"
    for step, jitted in (
        (jax.jit(train_step), "train_step"),
        (jax_frontend.jit(train_step), "train_step"),
        (train_step, r"jax\.jit\(train_step\)"),
    ):
        with pytest.raises(TypeError, match=rf"pass {jitted}\.lower\(\*arguments\), or call {remedy}"):
            recompute.fit(step, "3MiB")  # pyright: ignore[reportArgumentType]


def test_options_may_be_keywords() -> None:
    step = CHAIN.read_text()
    options = recompute.RecomputeOptions(recompute.Selection(save=("tanh",)), budget="0.9", memory_model="order")
    expected = recompute.rewrite(step, options)
    assert recompute.rewrite(step, save=["tanh"], budget=0.9, memory_model="order").text == expected.text
    selection = recompute.Selection(save=("tanh",))
    assert recompute.rewrite(step, selection=selection, budget="90%", memory_model="order").text == expected.text


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"bugdet": 0.5}, TypeError, "got an unexpected keyword argument 'bugdet'; did you mean 'budget'?"),
        ({"names": "h"}, TypeError, "names must be a sequence of str, not str: give ('h',)"),
        ({"copies": "3"}, TypeError, "copies must be an int, not str"),
        ({"copies": 0}, ValueError, "copies must be at least 1, not 0"),
        ({"budget": 8}, ValueError, "budget=8 is a number of bytes; did you mean '8GiB'? (for bytes: '8B')"),
        ({"budget": "8 bananas"}, ValueError, "budget: invalid budget '8 bananas'"),
        ({"measure": True}, TypeError, "measure must be a function from a module to a number of bytes, not bool"),
        (
            {"time_limit": 3},
            ValueError,
            "time_limit= has no effect without budget=: give budget= as well, or omit time_limit=",
        ),
        ({"selection": recompute.Selection(), "names": ("h",)}, ValueError, "give selection= or names=, not both"),
        ({"options": recompute.RecomputeOptions(), "strict": True}, TypeError, "give options= or keywords, not both"),
    ],
)
def test_invalid_keywords_are_rejected(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        recompute.rewrite(CHAIN.read_text(), **options)
    assert re.match(f"recompute.rewrite:? {re.escape(message)}", str(raised.value))


def test_unknown_keywords_get_a_suggestion() -> None:
    step: Any = CHAIN.read_text()
    wrong: dict[str, Any] = {"modell": "xla"}
    functions = {
        "fit": lambda: recompute.fit(step, "8MiB", **wrong),
        "memory": lambda: recompute.memory(step, **wrong),
        "explain": lambda: recompute.explain(step, **{"selektion": recompute.Selection()}),  # pyright: ignore[reportArgumentType]
        "prove": lambda: recompute.prove(step, step, **{"repeatabel": ()}),  # pyright: ignore[reportCallIssue]
    }
    suggested = {"fit": "model", "memory": "model", "explain": "selection", "prove": "repeatable"}
    for name, call in functions.items():
        with pytest.raises(TypeError, match=rf"recompute\.{name} got an .*; did you mean '{suggested[name]}'\?$"):
            call()


def test_module_of_mlir_is_accepted() -> None:
    """A module of MLIR's Python bindings is read as its text with locations."""
    jax = pytest.importorskip("jax")

    def loss(x: Any) -> Any:
        return jax.numpy.sum(jax.numpy.sin(jax.numpy.tanh(x)))

    lowered = jax.jit(jax.value_and_grad(loss)).lower(jax.ShapeDtypeStruct((64,), "float32"))
    module = lowered.compiler_ir()
    assert recompute.rewrite(module).text == recompute.rewrite(lowered).text
    assert "tanh" in recompute.rewrite(module).text and recompute.prove(module, lowered)
    assert recompute.fit(module, "4MiB") == recompute.fit(lowered, "4MiB")
    assert recompute.memory(module.operation)["main"].peak_bytes == recompute.memory(lowered)["main"].peak_bytes


def test_stripped_copies_count() -> None:
    """A pipeline that ends with `recompute-strip` leaves no attribute, and its copies count in the result."""
    step = CHAIN.read_text()
    plain = recompute.rewrite(step, pipeline="recompute")
    stripped = recompute.rewrite(step, pipeline="recompute,recompute-strip,dce", strict=True)
    assert "recompute.id" in plain.text and "{recompute." not in stripped.text and ", recompute." not in stripped.text
    assert (stripped.copies, stripped.extra_flops) == (plain.copies, plain.extra_flops) and stripped.proof
    peaks = [result.memory()["main"][1].peak_bytes for result in (plain, stripped)]
    assert peaks[0] == peaks[1] and recompute.prove(plain.module, stripped.module)


def test_errors_of_wrong_arguments_name_the_remedy() -> None:
    options: Any = {"budget": 0.5}
    with pytest.raises(
        TypeError, match=r"options must be a recompute\.RecomputeOptions, not dict; .*keyword arguments"
    ):
        recompute.rewrite(CHAIN.read_text(), options)
    with pytest.raises(ParseError, match=r"not the name of a file: write Path\('step.mlir'\).read_text\(\)"):
        recompute.rewrite("step.mlir")
