"""A dialect that docs/foreign_dialects.md registers is recomputed; without the registration it is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute import interpreters, proof, rules
from recompute.analysis.memory.timeline import timeline
from recompute.analysis.step.order import functions_of
from recompute.dialects.names import Names
from recompute.interpreters.execute_check import compare
from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.inputs import random_inputs
from recompute.interpreters.kernels.arrays import Array
from recompute.interpreters.meter import meter
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.proof.prove import ProofOptions, prove
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.rules.effects import is_collective, is_constant, why_impure
from recompute.rules.flops import flops
from recompute.support.diagnostics import Refusal
from recompute.support.units import readable_bytes
from recompute.tools import recompute_check, recompute_opt, recompute_run
from recompute.transforms.verify import verify

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "foreign_dialects.md").read_text()
(STEP,) = re.findall(r"```mlir\n(.*?)```", PAGE, re.DOTALL)
(RULES,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[0].splitlines()
NAMES = ("acme.pack", "acme.swish", "acme.swish_grad", "acme.unpack")
TILE_BYTES = 64 * 64 * 4


@pytest.fixture(autouse=True)
def undo_registrations() -> Iterator[None]:
    with rules.registrations_undone(), interpreters.registrations_undone(), proof.registrations_undone():
        yield


def load_the_rules() -> None:
    exec(compile(RULES, "acme_rules.py", "exec"), {})


def step() -> ModuleOp:
    return parse_module(STEP, "step.mlir")


def test_registered_dialect_is_recomputed_proved_and_executed() -> None:
    load_the_rules()
    before, after = step(), step()
    assert rewrite_in_place(after, RecomputeOptions(target="none")).copies == 3
    proof = prove(before, after)
    assert proof.proved and proof.assumed_pure == NAMES
    inputs = random_inputs(function_named(before), seed=1)
    assert compare(before, after, inputs).equal
    peaks = [timeline(functions_of(module)[0]).peak_bytes for module in (before, after)]
    assert peaks == [7 * TILE_BYTES, 5 * TILE_BYTES]
    for module, peak in zip((before, after), peaks, strict=True):
        assert meter(function_named(module), inputs)[1].peak_bytes == peak


def test_kernels_compute_the_gradient() -> None:
    load_the_rules()
    x = np.linspace(-2, 2, 64 * 64, dtype=np.float32).reshape(64, 64)
    item = np.ones_like(x)
    function, h = function_named(step()), np.float32(1e-2)
    (low, _), (high, _) = (execute(function, [value, item]) for value in (x - h, x + h))
    np.testing.assert_allclose(execute(function, [x, item])[1], (high - low) / (2 * h), atol=1e-3)


def test_copies_wait_for_tokens() -> None:
    """Without lowering, the verifier accepts the result, whose copies wait for tokens."""
    load_the_rules()
    module = step()
    rewrite_in_place(module)
    verify(module)
    assert sum(op.name == "stablehlo.optimization_barrier" for op in module.walk()) == 1
    assert prove(step(), module)


def test_undeclared_type_is_rejected_with_remedy() -> None:
    with pytest.raises(
        Refusal,
        match=r"the size in bytes of !acme.tile<64x64> is unknown; "
        "declare it with recompute",
    ):
        rewrite_in_place(step(), RecomputeOptions(target="none"))


def test_operation_with_undeclared_effects_is_not_copied() -> None:
    rules.register_type("acme.tile", lambda type: TILE_BYTES)
    module = step()
    result = rewrite_in_place(module, RecomputeOptions(target="none"))
    assert result.copies == 0 and not any(Names.COPY in op.attributes for op in module.walk())
    messages = [remark.reason for remark in result.remarks]
    remedy = (
        "if it is pure, declare it to the passes, "
        '`from recompute.rules import pure, register; register("acme.swish", pure())`, and to the proof, '
        '`from recompute.proof import register_pure; register_pure("acme.swish")` (docs/foreign_dialects.md)'
    )
    assert f"acme.swish is not recomputed: the effects of acme.swish are unknown; {remedy}" in messages


def test_proof_ignores_registrations_of_passes() -> None:
    load_the_rules()
    module = step()
    rewrite_in_place(module, RecomputeOptions(target="none"))
    assert not prove(step(), module, ProofOptions(also_pure=())).proved
    assert not prove(step(), module, ProofOptions(also_pure={"acme.swish"})).proved
    both = ProofOptions(also_pure={"acme.swish", "acme.pack"})
    assert prove(step(), module, both).assumed_pure == ("acme.pack", "acme.swish")


def test_wrong_copy_is_neither_proved_nor_equal() -> None:
    load_the_rules()
    module = step()
    rewrite_in_place(module, RecomputeOptions(target="none"))
    copy = next(op for op in module.walk() if Names.COPY in op.attributes and "swish" in str(op))
    copy.results[0].replace_all_uses_with(copy.operands[0])
    assert not prove(step(), module).proved
    assert not compare(step(), module, random_inputs(function_named(module), seed=1)).equal


def test_operation_without_kernel_is_not_executed() -> None:
    with pytest.raises(Refusal, match=r"step.mlir:4:\d+: error: acme.pack cannot be executed: .*register_kernel"):
        execute(function_named(step()), random_inputs(function_named(step())))


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("x", r"a tuple of 1 array"),
        ("(x, x)", r"a tuple of 1 array"),
        ("([1],)", r"numpy arrays, not list"),
        ("(x[:2],)", r"returns float32\[2, 64\], expected float32\[64, 64\]"),
        ("(x.astype('f8'),)", r"returns float64"),
    ],
)
def test_kernel_results_are_checked(result: str, message: str) -> None:
    load_the_rules()
    interpreters.register_kernel("acme.unpack", lambda op: eval(f"lambda x: {result}"))
    with pytest.raises(
        Refusal, match=r"step.mlir:10:\d+: error: acme.unpack cannot be executed: its kernel.*" + message
    ):
        execute(function_named(step()), random_inputs(function_named(step())))


def identity(x: Array) -> tuple[Array, ...]:
    return (x,)


def test_identity_kernels_do_not_share_memory() -> None:
    load_the_rules()
    for name in ("acme.pack", "acme.unpack"):
        interpreters.register_kernel(name, lambda op: identity)
    function = function_named(step())
    assert meter(function, random_inputs(function))[1].peak_bytes == timeline(function).peak_bytes


def test_page_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("step.mlir").write_text(STEP)
    Path("acme_rules.py").write_text(RULES)
    tools = {"recompute-opt": recompute_opt, "recompute-check": recompute_check, "recompute-run": recompute_run}
    for command in COMMANDS:
        tool, *arguments = command.replace("'", "").split()
        assert tools[tool].main(arguments) == 0, command
    output = capsys.readouterr()
    assert "remark: assuming, unverified, that these operations are pure: " + ", ".join(NAMES) in output.err
    assert "proved equal" in output.out and "executed: equal bit for bit" in output.out
    assert f"{readable_bytes(5 * TILE_BYTES)} metered, {readable_bytes(5 * TILE_BYTES)} modelled" in output.out
    # Nothing is left behind: without the option the tool knows nothing.
    assert recompute_opt.main(["step.mlir", "-p", "recompute{target=none}"]) == 1


def test_check_names_the_remedy_for_undeclared_operations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("step.mlir").write_text(STEP)
    Path("acme_rules.py").write_text(RULES)
    rules = "--load-rules", "acme_rules.py"
    assert recompute_opt.main(["step.mlir", "-p", "recompute{target=none}", *rules, "-o", "less.mlir"]) == 0
    assert recompute_check.main(["step.mlir", "less.mlir"]) == 1
    hint = "(the proof assumes that acme.swish, acme.swish_grad may have effects; if it is pure, declare it with "
    assert f"{hint}recompute.proof.register_pure in a file for --load-rules)" in capsys.readouterr().out


def test_execution_names_the_remedy_for_operations_without_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("step.mlir").write_text(STEP)
    Path("acme_rules.py").write_text("\n".join(line for line in RULES.splitlines() if "register_kernel(" not in line))
    arguments = ["step.mlir", "step.mlir", "--execute", "--load-rules", "acme_rules.py"]
    assert recompute_check.main(arguments) == 2
    output = capsys.readouterr()
    remedy = "declare its numpy implementation in a file for --load-rules: recompute.interpreters.register_kernel"
    assert output.out.startswith("proved equal: ")
    assert remedy in output.err and "; without --execute, the verdict depends only on the proof\n" in output.err


def test_error_names_operation_not_declared_pure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("step.mlir").write_text(STEP)
    Path("acme_rules.py").write_text(RULES.replace('"acme.swish", "acme.swish_grad"', '"acme.swish_grad"'))
    assert recompute_opt.main(["step.mlir", "-p", "recompute{target=none}", "--load-rules", "acme_rules.py"]) == 1
    output = capsys.readouterr()
    assert "the proof assumes effects of acme.swish: declare it pure with recompute.proof.register_pure" in output.err
    assert output.out == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "rules.py: error: cannot read the file: No such file"),
        ("def f(:\n", "rules.py:1:7: error: invalid Python"),
        ("x = 1\nraise RuntimeError('no\\nluck')\n", "rules.py:2:1: error: RuntimeError: no luck"),
        ("import sys\n\nsys.exit(0)\n", "rules.py:3:1: error: SystemExit: 0"),
        (
            "from recompute.rules import pure, register\nregister('stablehlo.rng', pure())\n",
            "rules.py:2:1: error: ValueError: name: the facts about stablehlo.rng are built in",
        ),
        ("from recompute.rules import *\nregister('swish', pure())\n", "error: ValueError: name: expected a name"),
        ("from recompute.rules import *\nregister('acme.swish', 'pure')\n", "error: ValueError: facts: acme.swish"),
    ],
)
@pytest.mark.parametrize("tool", [recompute_opt, recompute_check, recompute_run])
def test_invalid_rules_give_one_error_line(
    text: str | None,
    message: str,
    tool: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("step.mlir").write_text(STEP)
    if text is not None:
        Path("rules.py").write_text(text)
    inputs = ["step.mlir"] * (2 if tool is recompute_check else 1)
    assert tool.main([*inputs, "--load-rules", "rules.py"]) != 0  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1 and message in errors[0]


def operation(name: str, operands: int = 0):
    values, t = [f"%x{index}" for index in range(operands)], "tensor<4xf32>"
    arguments = ", ".join(f"{value}: {t}" for value in values)
    types = ", ".join(t for _ in values)
    text = f'func.func @f({arguments}) {{\n%r = "{name}"({", ".join(values)}) : ({types}) -> {t}\nreturn\n}}'
    return next(op for op in parse_module(text, "f.mlir").walk() if op.results and op.result_types)


def test_every_declaration_is_loaded() -> None:
    rules.register("acme.bits", rules.random(state=1))
    rules.register("acme.sum", rules.collective())
    rules.register("acme.one", rules.constant())
    first, total = operation("acme.one"), operation("acme.sum", 1)
    rules.register("acme.key", rules.random())
    assert why_impure(operation("acme.bits", 2)) is None and why_impure(operation("acme.key", 1)) is None
    assert is_constant(first) and flops(first) == 0 and is_collective(total)
    assert not is_constant(total) and not is_collective(first)


@pytest.mark.parametrize(("state", "operands"), [(0, 0), (1, 0), (1, 1)])
def test_random_operation_lacking_declared_state_is_impure(state: int, operands: int) -> None:
    rules.register("acme.bits", rules.random(state=state))
    reason = "it lacks the random-state operand that its declaration names, so a copy would draw different numbers"
    assert why_impure(operation("acme.bits", operands)) == reason


@pytest.mark.parametrize("type_", ["memref<4xf32>", "memref<*xf32>"])
def test_pure_declaration_does_not_cover_memrefs(type_: str) -> None:
    rules.register("acme.f", rules.pure())
    text = f'func.func @f(%m: {type_}) {{\n%r = "acme.f"(%m) : ({type_}) -> f32\nreturn\n}}'
    (op,) = (op for op in parse_module(text, "f.mlir").walk() if op.results)
    assert str(why_impure(op)).startswith("it operates on a memref")


MISFITS = {
    "acme.f is declared to be a view of operand 1, but has 1 operand": (rules.view(of=1), 1),
    "acme.f is declared to be a view of operand 0, but has no operands": (rules.view(layout=rules.View.DENSE), 0),
    "acme.f is declared to forward its operands, but has 1 result for no operands": (rules.forwards(), 0),
    "acme.f is declared to be a constant, but has 2 operands": (rules.constant(), 2),
    "acme.f is declared to write over operand 0, but has no operands": (rules.overwrites_operand(rules.pure()), 0),
    "the function registered as flops of acme.f raises ZeroDivisionError": (rules.pure(lambda op: 1 // 0), 1),
    "the function registered as flops of acme.f returns None, but must": (rules.pure(lambda op: None), 1),  # pyright: ignore[reportArgumentType]
    "the function registered as flops of acme.f returns -1, but must": (rules.pure(lambda op: -1), 1),
    "the function registered as body_runs of acme.f returns 0.5, but must": (
        rules.pure_if_body_is(body_runs=lambda op: 0.5),  # pyright: ignore[reportArgumentType]
        1,
    ),
}


@pytest.mark.parametrize("message", MISFITS)
def test_mismatched_declaration_is_rejected_at_operation(message: str) -> None:
    facts, operands = MISFITS[message]
    rules.register("acme.f", facts)
    with pytest.raises(Refusal, match=rf"^f.mlir:2:\d+: error: {re.escape(message)}"):
        flops(operation("acme.f", operands))


def test_as_many_results_as_operands_are_forwarded() -> None:
    rules.register("acme.f", rules.forwards())
    assert flops(operation("acme.f", 1)) == 0


def test_numpy_numbers_are_accepted() -> None:
    rules.register("acme.f", rules.pure(lambda op: np.int64(7)))  # pyright: ignore[reportArgumentType]
    assert flops(operation("acme.f", 1)) == 7


@pytest.mark.parametrize(
    ("bytes_of", "message"),
    [("1 // 0", "raises ZeroDivisionError"), ("'8'", "returns '8', but must"), ("-1", "returns -1, but must")],
)
def test_invalid_type_size_is_rejected_at_its_use(bytes_of: str, message: str) -> None:
    load_the_rules()
    rules.register_type("acme.tile", lambda type: eval(bytes_of))
    with pytest.raises(Refusal, match=rf"step.mlir:\d+:\d+: error: .* for type acme.tile {message}"):
        rewrite_in_place(step(), RecomputeOptions(target="none"))


@pytest.mark.parametrize("make", ["1 // 0", "lambda x: 1 // 0"])
def test_failing_kernel_is_named(make: str) -> None:
    load_the_rules()
    interpreters.register_kernel("acme.unpack", lambda op: eval(make))
    with pytest.raises(Refusal, match=r"acme.unpack cannot be executed: its kernel raises ZeroDivisionError"):
        execute(function_named(step()), random_inputs(function_named(step())))


IMPURE = {
    "it is a collective, and recomputation of collectives is disabled": rules.collective(),
    "it communicates with other devices": rules.communication(),
    "it asks the user": rules.impure("it asks the user"),
    "it reads memory that may be overwritten before the copy runs": rules.reads_memory(),
    "it writes memory": rules.writes_memory(),
}


@pytest.mark.parametrize("reason", IMPURE)
def test_impure_declaration_gives_its_reason(reason: str) -> None:
    rules.register("acme.ask", IMPURE[reason])
    assert why_impure(operation("acme.ask", 1)) == reason


def test_undo_restores_previous_declarations() -> None:
    rules.register("acme.ask", rules.pure())
    with rules.registrations_undone():
        rules.register("acme.ask", rules.impure("it asks the user"))
    assert why_impure(operation("acme.ask")) is None


@pytest.mark.parametrize("name", ["tile", "acme.", ".tile"])
def test_declared_name_must_have_a_dialect(name: str) -> None:
    for declare in (lambda: rules.register(name, rules.pure()), lambda: rules.register_type(name, lambda type: 8)):
        with pytest.raises(ValueError, match=r"name: expected a name such as 'acme\.swish', not"):
            declare()


def test_declared_view_shares_storage_of_named_operand() -> None:
    rules.register("acme.flip", rules.view(of=1))
    t = "tensor<256xf32>"
    text = f"""func.func @f(%x: {t}) -> {t} {{
      %a = stablehlo.sine %x : {t}
      %b = "acme.flip"(%x, %a) : ({t}, {t}) -> {t}
      %c = stablehlo.sine %b : {t}
      %r = stablehlo.sine %c : {t}
      return %r : {t}
    }}"""
    assert timeline(functions_of(parse_module(text, "f.mlir"))[0]).live_bytes == (1024, 1024, 2048, 1024, 0)
