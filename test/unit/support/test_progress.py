"""The progress line: phase, share and remaining time after two seconds, and the result at the end."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Sequence
from io import StringIO
from math import inf
from time import sleep

import pytest
from typing_extensions import override

from recompute.support import progress as module
from recompute.support.interrupts import seconds_left, stop_predicate
from recompute.support.progress import FINISHING, ProgressLine, phase_shown, progress
from recompute.support.timing import part


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_TERMINAL_SECONDS", 0.02)
    monkeypatch.setattr(module, "FIRST_FILE_SECONDS", 0.02)
    monkeypatch.setattr(module, "LOG_SECONDS", 0.02)
    monkeypatch.setattr(module, "TERMINAL_SECONDS", 0.02)


def work(task: str = "step", only_on_terminal: bool = False) -> None:
    with progress(task, only_on_terminal) as line, part("plan"):
        sleep(0.2)
        line.result = "3 operations are recomputed"


def test_short_work_is_silent(capsys: pytest.CaptureFixture[str]):
    work()
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("at_once")
def test_redirected_output_gets_two_lines(capsys: pytest.CaptureFixture[str]):
    work()
    first, last = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"step: planning, \d+ s so far", first)
    assert re.fullmatch(r"step: 3 operations are recomputed; this took \d+ s", last)


@pytest.mark.usefixtures("at_once")
def test_terminal_only_progress_skips_files(capsys: pytest.CaptureFixture[str]):
    work(only_on_terminal=True)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("at_once")
def test_nested_work_shares_one_line(capsys: pytest.CaptureFixture[str]):
    with progress("outer"):
        work("inner")
        work("inner")
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("outer: planning") and last.startswith("outer: 3 operations are recomputed; this took")


@pytest.mark.usefixtures("at_once")
def test_line_says_that_the_time_limit_has_passed(capsys: pytest.CaptureFixture[str]):
    with progress("step"), part("plan"), stop_predicate(0.001) as stop:
        sleep(0.2)
        assert stop() and seconds_left() == 0
    assert seconds_left() == inf
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(rf"step: planning \({re.escape(FINISHING)}\), \d+ s so far", line)


@pytest.mark.usefixtures("at_once")
def test_nested_phase_is_shown_while_it_lasts(capsys: pytest.CaptureFixture[str]):
    with progress("step") as line, part("plan"):
        with phase_shown("compiling"):
            sleep(0.2)
        assert line.phase == "planning"
    assert capsys.readouterr().err.startswith("step: compiling, 0 s so far")


class Terminal(StringIO):
    @override
    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("at_once")
def test_terminal_line_is_updated_in_place(monkeypatch: pytest.MonkeyPatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    work()
    shown = terminal.getvalue()
    assert shown.count("\n") == 1 and shown.count("\r\x1b[K") > 2
    assert shown.rpartition("\r\x1b[K")[2].startswith("step: 3 operations are recomputed")


def test_share_never_falls():
    line = ProgressLine("step")
    for name in ("plan", "prove", "verify", "prepare"):
        line.enter(name)
    assert line.share == 0.9 and line.phase == "preparing"


def test_share_is_at_most_one():
    line = ProgressLine("step")
    line.set_phase("working", 1.25)
    assert line.share == 1.0 and line.update() == "step: working, 0 s so far"


def test_error_ends_the_line(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(ValueError, match="wrong"), progress("step"):
        raise ValueError("wrong")
    assert capsys.readouterr().err == ""


def test_phases_are_logged(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, "recompute")
    work()
    assert [record.levelname for record in caplog.records] == ["DEBUG", "INFO"]
    assert caplog.messages[0].startswith("step: planning after")


def _lines(monkeypatch: pytest.MonkeyPatch, times: Sequence[tuple[float, float]]) -> list[str]:
    """Return the line at each time, given as pairs of elapsed seconds and the share that is done."""
    line, texts = ProgressLine("step", start=0.0), list[str]()
    for seconds, share in times:
        monkeypatch.setattr(module, "monotonic", lambda seconds=seconds: seconds)
        line.set_phase("planning", share)
        texts.append(line.update())
    return texts


def test_share_and_estimate_end_if_the_work_takes_longer(monkeypatch: pytest.MonkeyPatch):
    """While the share stays the same, the estimate counts down. Once it was wrong, no other one is made."""
    assert _lines(monkeypatch, ((10.0, 0.5), (16.0, 0.5), (30.0, 0.5), (40.0, 0.9), (41.0, 0.92))) == [
        "step: planning, about 50 % done, 10 s so far, about 10 s left",
        "step: planning, about 50 % done, 16 s so far, about 4 s left",
        "step: planning, 30 s so far",
        "step: planning, about 90 % done, 40 s so far",
        "step: planning, about 92 % done, 41 s so far",
    ]


def test_nothing_is_estimated_before_half_of_the_work(monkeypatch: pytest.MonkeyPatch):
    assert _lines(monkeypatch, ((2.0, 0.12), (12.0, 0.12), (22.0, 0.4))) == [
        "step: planning, 2 s so far",
        "step: planning, 12 s so far",
        "step: planning, 22 s so far",
    ]


def test_estimate_in_force_never_rises(monkeypatch: pytest.MonkeyPatch):
    """A later and slower share does not extend an estimate that has not passed."""
    lines = _lines(monkeypatch, ((10.0, 0.5), (19.0, 0.6), (19.2, 0.61)))
    assert [text.rpartition("far")[2] for text in lines] == [
        ", about 10 s left",
        ", about 1 s left",
        ", about 1 s left",
    ]


def test_time_of_a_compilation_is_not_estimated(monkeypatch: pytest.MonkeyPatch):
    line = ProgressLine("step", start=0.0)
    monkeypatch.setattr(module, "monotonic", lambda: 10.0)
    line.begin("compiling 2 of 2", 0.75, 1.0)
    assert line.update() == "step: compiling 2 of 2, about 75 % done, 10 s so far"


def test_long_work_without_a_terminal_prints_two_lines_and_logs_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    for name in ("FIRST_FILE_SECONDS", "LOG_SECONDS"):
        monkeypatch.setattr(module, name, 0.02)
    caplog.set_level(logging.INFO, "recompute")
    with progress("step") as line:
        for phase in ("compiling 1 of 2", "compiling 2 of 2"):
            line.begin(phase, 0.5, 1.0)
            sleep(0.2)
        line.result = "3 operations are recomputed"
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert sum("s so far" in message for message in caplog.messages) > 2


def test_phases_of_each_candidate_stay_within_its_span():
    """Repeated phases advance the share from candidate to candidate, and never end it early."""
    line, shares = ProgressLine("step"), list[float]()
    for first, end in ((0.0, 0.5), (0.5, 0.75), (0.75, 1.0)):
        line.begin("planning", first, end)
        for name in ("prepare", "plan", "prove"):
            line.enter(name)
            shares.append(line.share)
    assert shares == sorted(set(shares)) and shares[2] == 0.45 and shares[-1] < 1
