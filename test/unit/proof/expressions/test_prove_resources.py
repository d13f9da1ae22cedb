"""Dense resources are equal if their types and contents are equal. Their names do not matter."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import ParseError

from recompute.driver.api import rewrite
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.proof.prove import ProofOptions, prove
from recompute.proof.verdicts.verdict import Proof

T = "tensor<2xf32>"
ONE, TWO = "0x040000000000803F0000803F", "0x040000000000004000000040"


def section(**contents: str) -> str:
    """Return the section that defines resources."""
    entries = ", ".join(f'{name}: "{content}"' for name, content in contents.items())
    return f"\n{{-# dialect_resources: {{builtin: {{{entries}}}}} #-}}\n"


BODY = f"""
func.func @step(%x: {T}, %ct: {T}) -> ({T}, {T}) {{
  %k = stablehlo.constant dense_resource<k> : {T}
  %w = "foo.literal"() <{{value = [dense_resource<w> : {T}]}}> : () -> {T}
  %a = stablehlo.sine %x {{recompute.recompute = true}} : {T}
  %b = stablehlo.exponential %a {{recompute.recompute = true}} : {T}
  %c = stablehlo.add %b, %w : {T}
  %g = stablehlo.multiply %ct, %k {{recompute.phase = "gradient"}} : {T}
  %g2 = stablehlo.multiply %g, %b {{recompute.phase = "gradient"}} : {T}
  %g3 = stablehlo.multiply %g2, %a {{recompute.phase = "gradient"}} : {T}
  func.return %c, %g3 : {T}, {T}
}}"""
STEP = BODY + section(k=ONE, w=TWO)


def compare(before: str, after: str) -> Proof:
    return prove(parse_module(before), parse_module(after))


def renamed(text: str) -> str:
    """Return the text with the names of the two resources exchanged."""
    for old, new in (("<k>", "<t>"), ("<w>", "<k>"), ("<t>", "<w>")):
        text = text.replace(old, new)
    return text


def test_equal_contents_are_equal_whatever_their_names() -> None:
    assert compare(STEP, STEP)
    assert compare(STEP, renamed(BODY) + section(w=ONE, k=TWO))
    assert compare(STEP, BODY + section(k=ONE.replace("F", "f"), w=TWO, unread="0x04000000"))


UNEQUAL = {
    "one byte differs": BODY + section(k="0x040000000000803F0000813F", w=TWO),
    "the content is shorter": BODY + section(k=ONE[:-2], w=TWO),
    "the alignment differs": BODY + section(k=ONE.replace("0x04", "0x08"), w=TWO),
    "the contents are exchanged": BODY + section(k=TWO, w=ONE),
    "the names are exchanged": renamed(BODY) + section(k=ONE, w=TWO),
    "both names have one content": BODY + section(k=ONE, w=ONE),
    "the type differs": BODY.replace(f"[dense_resource<w> : {T}]", "[dense_resource<w> : tensor<2xi32>]")
    + section(k=ONE, w=TWO),
    "a constant instead of the resource": BODY.replace("dense_resource<k>", "dense<1.0>") + section(w=TWO),
}


@pytest.mark.parametrize("name", UNEQUAL)
def test_changed_resources_are_not_proved(name: str) -> None:
    other = UNEQUAL[name]
    assert not compare(STEP, other) and not compare(other, STEP)
    assert compare(other, other), "the change alone is the reason"


def test_message_shows_the_contents() -> None:
    reason = compare(STEP, UNEQUAL["one byte differs"]).reason
    assert "f0000803f : tensor<2xf32>" in reason and "f0000813f : tensor<2xf32>" in reason


@pytest.mark.parametrize(
    "text",
    [
        BODY,
        BODY + section(w=TWO),
        BODY.replace("<k>", "<__elided__>") + section(w=TWO),
        BODY.replace("<k>", "<__elided___1>") + section(w=TWO, __elided___1=ONE),
    ],
    ids=["no section", "no entry", "elided", "renamed elided"],
)
def test_resource_without_content_is_refused(text: str) -> None:
    module = parse_module(text, "step.mlir")
    for proof in (prove(module, module.clone()), compare(STEP, text), compare(text, STEP)):
        assert not proof
        assert "the content of the resource" in proof.reason and "dialect_resources" in proof.reason
    reason = prove(module, module.clone()).reason
    assert "at step.mlir:3:8: stablehlo.constant" in reason
    assert prove(module, module.clone(), ProofOptions(one_source=True)).identical


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (f'k: "{ONE}", k: "{TWO}"', "the resource 'k' is defined twice"),
        (f'__elided__: "{ONE}"', "the name __elided__ stands for omitted content"),
    ],
)
def test_ambiguous_contents_are_errors(entries: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_module(f"{BODY}\n{{-# dialect_resources: {{builtin: {{{entries}}}}} #-}}")


def test_written_step_has_its_resources() -> None:
    result = rewrite(STEP, target="none", segments="none")
    text = print_module(result.module)
    assert result.copies and result.proof
    assert text.count(f'"{ONE}"') == 1 and text.count(f'"{TWO}"') == 1
    assert compare(STEP, text)
    assert not compare(STEP, text.replace(ONE, TWO))
    assert "the content of the resource" in compare(STEP, text[: text.index("{-#")]).reason
