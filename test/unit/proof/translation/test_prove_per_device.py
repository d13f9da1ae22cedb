"""Where one per-device body ends and the next begins does not matter to the proof; any other difference does."""

from __future__ import annotations

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import Proof, prove

PART, WHOLE, ROW = "tensor<4xf32>", "tensor<8xf32>", "tensor<32xf32>"
IN, ALL, OTHER = '<@mesh, [{"a"}]>', '<@mesh, [{"a", "b"}]>', '<@mesh, [{"b"}]>'
AXES = 'manual_axes={"a", "b"}'
MESHES = 'sdy.mesh @mesh = <["a"=2, "b"=4]>\nsdy.mesh @other = <["a"=2, "b"=4]>\n'


def module(body: str) -> str:
    arguments = f"(%x: {WHOLE}, %ct: {WHOLE}) -> {WHOLE}"
    return f"{MESHES}func.func public @main{arguments} {{\n{body}  func.return %g : {WHOLE}\n}}"


def run(operands: str, arguments: str, into: str, lines: str, returned: str, out: str, results: str = "%g") -> str:
    """Return a per-device body; a value has the type of a row where its sharding names both axes."""

    def wholes(shardings: str) -> str:
        count = shardings.count("@"), shardings.count('"a", "b"')
        return ", ".join([WHOLE] * (count[0] - count[1]) + [ROW] * count[1])

    taken = ", ".join(f"{name}: {PART}" for name in arguments.split(", "))
    parts = ", ".join([PART] * (returned.count(",") + 1))
    return (
        f"  {results} = sdy.manual_computation({operands}) in_shardings=[{into}] "
        f"out_shardings=[{out}] {AXES} ({taken}) {{\n"
        f"{lines}    sdy.return {returned} : {parts}\n  }} : ({wholes(into)}) -> ({wholes(out)})\n"
    )


def line(result: str, name: str, *operands: str) -> str:
    return f"    {result} = stablehlo.{name} {', '.join(operands)} : {PART}\n"


SINE, TANH = line("%s", "sine", "%p"), line("%t", "tanh", "%s")
ENDS = line("%m", "multiply", "%c", "%s") + line("%n", "add", "%m", "%q")
FORWARD = run("%x", "%p", IN, SINE + TANH, "%t, %s", f"{IN}, {ALL}", "%y, %r")
BACKWARD = run("%y, %ct, %r", "%q, %c, %s", f"{IN}, {IN}, {ALL}", ENDS, "%n", IN)
AGAIN = run("%y, %ct, %x", "%q, %c, %p", f"{IN}, {IN}, {IN}", SINE + ENDS, "%n", IN)
BEFORE, AFTER = module(FORWARD + BACKWARD), module(FORWARD + AGAIN)


def compared(before: str, after: str) -> Proof:
    return prove(parse_module(before), parse_module(after))


def test_residuals_may_be_recomputed():
    assert compared(BEFORE, AFTER)
    assert compared(AFTER, BEFORE)


def test_unread_residuals_may_be_dropped():
    less = run("%x", "%p", IN, SINE + TANH, "%t", IN, "%y")
    assert compared(BEFORE, module(less + AGAIN))


def test_two_bodies_may_be_merged_into_one():
    lines = SINE + TANH + line("%m", "multiply", "%c", "%s") + line("%n", "add", "%m", "%t")
    whole = run("%x, %ct", "%p, %c", f"{IN}, {IN}", lines, "%n", IN)
    assert compared(BEFORE, module(whole))
    assert compared(module(whole), AFTER)


WRONG = {
    "another function": (f"{SINE}    %m", f"{line('%s', 'cosine', '%p')}    %m"),
    "of another operand": ("computation(%y, %ct, %x)", "computation(%y, %ct, %ct)"),
    "of what the first returns": ("computation(%y, %ct, %x)", "computation(%y, %ct, %y)"),
    "operands swapped": ("computation(%y, %ct, %x)", "computation(%ct, %y, %x)"),
    "parts along another axis": (f"in_shardings=[{IN}, {IN}, {IN}]", f"in_shardings=[{IN}, {IN}, {OTHER}]"),
    "parts along no axis": (f"in_shardings=[{IN}, {IN}, {IN}]", f"in_shardings=[{IN}, {IN}, <@mesh, [{{}}]>]"),
    "wholes along another axis": (f"out_shardings=[{IN}] {AXES} (%q", f"out_shardings=[{OTHER}] {AXES} (%q"),
    "on the devices of another mesh": ("@mesh, ", "@other, "),
    "along one axis only": (f"{AXES} (%q", 'manual_axes={"a"} (%q'),
    "arguments swapped inside": ("stablehlo.add %m, %q", "stablehlo.add %q, %m"),
    "the first body": ("stablehlo.tanh %s", "stablehlo.cosine %s"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rewrites_are_not_proved(name: str):
    old, new = WRONG[name]
    wrong = AFTER.replace(old, new)
    assert wrong != AFTER
    assert not compared(BEFORE, wrong)


def test_residual_read_by_another_sharding_is_not_proved():
    forward = run("%x", "%p", IN, SINE + TANH, "%t, %s", f"{IN}, {IN}", "%y, %r")
    same = run("%y, %ct, %r", "%q, %c, %s", f"{IN}, {IN}, {IN}", ENDS, "%n", IN)
    other = run("%y, %ct, %r", "%q, %c, %s", f"{IN}, {IN}, {OTHER}", ENDS, "%n", IN)
    assert compared(module(forward + same), AFTER)
    assert not compared(module(forward + other), AFTER)


def test_swapped_residuals_are_not_proved():
    two = run("%x", "%p", IN, SINE + TANH, "%t, %s, %t", f"{IN}, {ALL}, {ALL}", "%y, %r, %z")
    assert compared(module(two + BACKWARD), AFTER)
    assert not compared(module(two + BACKWARD.replace("%ct, %r)", "%ct, %z)")), AFTER)


WHERE = """    %d = "stablehlo.partition_id"() : () -> tensor<ui32>
    %e = stablehlo.convert %d : (tensor<ui32>) -> tensor<f32>
    %f = stablehlo.broadcast_in_dim %e, dims = [] : (tensor<f32>) -> tensor<4xf32>
"""


def test_device_index_is_equal_on_the_same_devices():
    here = WHERE + line("%s", "multiply", "%f", "%p")
    assert compared(BEFORE.replace(SINE, here), AFTER.replace(SINE, here))


def test_device_index_differs_on_other_devices():
    body = run("%x", "%p", IN, WHERE, "%f", IN)
    assert compared(module(body), module(body))
    assert not compared(module(body), module(body.replace(AXES, 'manual_axes={"a"}')))


SUM = f"""    %s = "stablehlo.all_reduce"(%p) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, use_global_device_ids}}> ({{
    ^bb0(%l: tensor<f32>, %k: tensor<f32>):
      %o = stablehlo.add %l, %k : tensor<f32>
      stablehlo.return %o : tensor<f32>
    }}) : ({PART}) -> {PART}
"""


def test_collectives_may_be_repeated_on_new_channel():
    first, own = FORWARD.replace(SINE, SUM), SUM.replace("handle = 1,", "handle = 2,")
    before = module(first + BACKWARD)
    assert compared(before, module(first + AGAIN.replace(SINE, own)))
    assert "do not share a channel in the original" in compared(before, module(first + AGAIN.replace(SINE, SUM))).reason
    other = own.replace("[[0, 1, 2, 3], [4, 5, 6, 7]]", "[[0, 1, 2, 7], [4, 5, 6, 3]]")
    assert not compared(before, module(first + AGAIN.replace(SINE, other)))


CONSTRAINT = f"    %u = sdy.sharding_constraint %p <@mesh, [{{?}}]> : {PART}\n"


def test_constraint_in_device_body_may_not_be_dropped():
    kept = CONSTRAINT + SINE
    once = module(FORWARD.replace(SINE, kept) + AGAIN)
    assert compared(module((FORWARD + AGAIN).replace(SINE, kept)), once)
    assert not compared(once, AFTER)


def test_effects_stay_on_the_devices():
    effect = 'call_target_name = "f", has_side_effect = true'
    call = f'    %e = "stablehlo.custom_call"(%p) {{{effect}}} : ({PART}) -> {PART}\n'
    printing = FORWARD.replace(SINE, call + SINE)
    assert compared(module(printing + BACKWARD), module(printing + AGAIN))
    assert not compared(module(printing + BACKWARD), AFTER)
    assert not compared(module(printing + BACKWARD), module(printing + AGAIN.replace(SINE, call + SINE)))


def test_attributes_of_body_are_compared():
    message = AFTER.replace(f"sdy.return %n : {PART}\n  }}", f'sdy.return %n : {PART}\n  }} {{acme.hint = "x"}}')
    assert message != AFTER
    assert not compared(BEFORE, message)
    assert compared(message, message.replace("%m", "%other"))


def reshaped(*shapes: str) -> str:
    """Return a chain of reshapes through these shapes."""
    lines = [
        f"  %{i} = stablehlo.reshape %{i - 1} : (tensor<{shapes[i - 1]}xf32>) -> tensor<{shapes[i]}xf32>\n"
        for i in range(1, len(shapes))
    ]
    types = f"(%0: tensor<{shapes[0]}xf32>) -> tensor<{shapes[-1]}xf32>"
    end = f"  func.return %{len(shapes) - 1} : tensor<{shapes[-1]}xf32>\n"
    return f"func.func public @main{types} {{\n{''.join(lines)}{end}}}"


def test_reshape_and_its_inverse_are_proved():
    assert compared(reshaped("4x3", "12", "4x3"), reshaped("4x3"))
    assert compared(reshaped("4x3", "12", "4x3", "3x4"), reshaped("4x3", "3x4"))
    assert compared(reshaped("4x3", "12", "3x4"), reshaped("4x3", "3x4"))
