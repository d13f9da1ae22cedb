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
    first, other = judge.ask(canonical(text), canonical(text))
    assert first == other
    assert first.text is not None and 'blob: "0x040000000000803F"' in first.text


def test_judge_recovers_after_crash() -> None:
    with Judge() as context:
        (before,) = context.ask(canonical(TEXT))
        context.stop()
        lost, after = context.ask(canonical(TEXT), canonical(TEXT))
        assert (lost, after, context.crashes) == (Answer(), before, 1)


def test_judge_times_out() -> None:
    with Judge(seconds=0.01) as context:
        # A process that has just been started needs longer than that to answer.
        assert context.ask(canonical(TEXT)) == [Answer()]
