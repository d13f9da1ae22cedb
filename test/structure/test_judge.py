"""Robustness of the judge against texts that make it crash or hang."""

from __future__ import annotations

from .judge import Answer, Judge, canonical, form, processed

TEXT = "module {\n  func.func @f(%x: i32) -> i32 {\n    return %x : i32\n  }\n}"


def test_answers_come_in_order(judge: Judge) -> None:
    good, bad, pretty, after = judge.ask(
        canonical(TEXT), canonical("module {"), form(TEXT, generic=False, locations=False), processed(TEXT)
    )
    assert good.text is not None and '"func.func"' in good.text
    assert bad.error is not None and "error:" in bad.error
    assert pretty.text == TEXT.replace("%x", "%arg0") + "\n"
    assert after == good


def test_resources_keep_their_names(judge: Judge) -> None:
    text = """
      "foo.op"() {k = dense_resource<blob> : tensor<1xf32>} : () -> ()
      {-# dialect_resources: { builtin: { blob: "0x040000000000803F" } } #-}"""
    one, other = judge.ask(canonical(text), canonical(text))
    assert one == other
    assert one.text is not None and 'blob: "0x040000000000803F"' in one.text


def test_it_goes_on_behind_a_text_that_it_does_not_survive() -> None:
    with Judge() as one:
        (before,) = one.ask(canonical(TEXT))
        one.stop()
        lost, after = one.ask(canonical(TEXT), canonical(TEXT))
        assert (lost, after, one.crashes) == (Answer(), before, 1)


def test_it_does_not_wait_for_ever() -> None:
    with Judge(seconds=0.01) as one:
        # A process that has just been started needs longer than that to answer.
        assert one.ask(canonical(TEXT)) == [Answer()]
