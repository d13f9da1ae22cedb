"""Diagnostics that comments state as expected must be reported, and no others."""

from __future__ import annotations

import pytest

from recompute.tools.diagnostics.expected_diagnostics import mismatches
from recompute.tools.diagnostics.reporting import Diagnostic


def error(line: int, message: str = "it is wrong") -> Diagnostic:
    return Diagnostic("error", "f.mlir", line, 3, message)


@pytest.mark.parametrize(
    ("comment", "line"),
    [
        ("expected-error {{wrong}}", 2),
        ("expected-error@+1 {{wrong}}", 3),
        ("expected-error@-1 {{wrong}}", 1),
        ("expected-error@below {{wrong}}", 3),
        ("expected-error@above {{wrong}}", 1),
        ("expected-error@unknown {{wrong}}", 77),
        ("expected-error@-0 {{wrong}}", 2),
        ("expected-error @+1 {{wrong}}", 3),
        ("expected-error @-1{{wrong}}", 1),
        ("expected-error  @below  {{wrong}}", 3),
        ("expected-error @above {{wrong}}", 1),
        ("expected-error @unknown {{wrong}}", 77),
        ("expected-error-re @+1 {{w{{r.*}}g}}", 3),
    ],
)
def test_expected_comment_refers_to_its_line(comment: str, line: int) -> None:
    text = f"\n// {comment}\n"
    assert mismatches(text, "f.mlir", [error(line)]) == []
    if "unknown" not in comment:
        missing, unexpected = mismatches(text, "f.mlir", [error(line + 1)])
        assert missing.message.startswith("expected error was not reported: w")
        assert unexpected.message == "unexpected error: it is wrong"


def test_each_report_answers_one_comment() -> None:
    text = "// expected-error {{wrong}}\n// expected-error@-1 {{wrong}}\n"
    assert len(mismatches(text, "f.mlir", [error(1)])) == 1
    assert mismatches(text, "f.mlir", [error(1), error(1)]) == []


def test_kinds_must_match() -> None:
    remark = Diagnostic("remark", "f.mlir", 1, 1, "it is wrong")
    assert len(mismatches("// expected-error {{wrong}}", "f.mlir", [remark])) == 2
    assert mismatches("// expected-remark {{wrong}}", "f.mlir", [remark]) == []


def test_warnings_are_a_kind() -> None:
    warning = Diagnostic("warning", "f.mlir", 1, 1, "it is odd")
    assert mismatches("// expected-warning {{odd}}", "f.mlir", [warning]) == []
    (missing,) = mismatches("// expected-warning {{odd}}", "f.mlir", [])
    assert missing.message == "expected warning was not reported: odd"


@pytest.mark.parametrize(
    "comment",
    [
        "expected-eror {{wrong}}",
        "expected-error@+1x {{wrong}}",
        "expected-error@abov {{wrong}}",
        "expected-error @ +1 {{wrong}}",
        "expected-error 1 {{",
        "expected-error 2 {{wrong}}",
        "expected-warning: wrong",
        "expected-remark {{wrong}",
        "expected-note",
        "expected-errors {{wrong}}",
    ],
)
@pytest.mark.parametrize("only_expected", [True, False])
def test_comment_that_cannot_be_parsed_is_an_error(comment: str, only_expected: bool) -> None:
    reported = [error(1), error(2)]
    first, *others = mismatches(f"\n// {comment}", "f.mlir", reported, only_expected=only_expected)
    assert first.line == 2
    assert first.message.startswith(f"cannot parse the comment '{comment}': expected 'expected-KIND[-re] [@WHERE] {{{{")
    assert len(others) == (0 if only_expected else 2)


def test_comment_that_cannot_be_parsed_does_not_hide_others_on_its_line() -> None:
    (unreadable,) = mismatches("// expected-error {{wrong}} expected-error {wrong}", "f.mlir", [error(1)])
    assert unreadable.message.startswith("cannot parse the comment 'expected-error {wrong}'")


def test_text_outside_comments_expects_nothing() -> None:
    assert mismatches('"expected-error"() : () -> ()  // the words in {{braces}}', "f.mlir", []) == []


def test_comments_with_a_line_are_matched_first() -> None:
    text = "// expected-error@unknown {{wrong}}\n// expected-error {{wrong}}\n"
    assert mismatches(text, "f.mlir", [error(2), error(7)]) == []
    assert mismatches(text, "f.mlir", [error(7), error(2)]) == []
