"""The harness's reader of the generic form, compared with jaxlib's."""

from __future__ import annotations

import pytest

from .balance import pieces
from .judge import Judge, canonical
from .programs import bases, names
from .tree import TreeError, read
from .writing import written


def test_round_trip_keeps_the_meaning(judge: Judge) -> None:
    programs = bases(judge)
    assert len(programs) == len(names()) >= 45
    answers = judge.ask(*(canonical(written(read(program.text))) for program in programs))
    different = [first.name for first, answer in zip(programs, answers, strict=True) if answer.text != first.text]
    assert different == []


def test_each_reading_returns_a_new_tree() -> None:
    text = '"builtin.module"() ({\n"foo.op"() : () -> ()\n}) : () -> ()'
    read(text).body.operations.clear()
    assert [op.name for op in read(text).body.operations] == ["foo.op"]


def test_uses_may_precede_definitions() -> None:
    text = '"builtin.module"() ({\n"foo.a"(%0) : (i32) -> ()\n%0 = "foo.b"() : () -> i32\n}) : () -> ()'
    reader, maker = read(text).body.operations
    assert reader.operands == maker.results


@pytest.mark.parametrize(
    "text", ["", "module {}", '"builtin.module"() ({ "foo.op" }) : () -> ()', '"foo.op"() : () -> ()']
)
def test_invalid_generic_form_is_an_error(text: str) -> None:
    with pytest.raises(TreeError):
        read(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("a, b", ["a", "b"]),
        ("f(a, b), [c, {d, e}]", ["f(a, b)", "[c, {d, e}]"]),
        ('"a, b", c', ['"a, b"', "c"]),
        ('"\\", b", c', ['"\\", b"', "c"]),
        ("(a) -> (b, c), d", ["(a) -> (b, c)", "d"]),
        ("affine_set<(d0) : (d0 >= 0)>, d", ["affine_set<(d0) : (d0 >= 0)>", "d"]),
    ],
)
def test_lists_are_split_outside_brackets(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected
