"""A search ends at its time limit or at the first Ctrl-C; a second Ctrl-C raises."""

from __future__ import annotations

import os
import signal
from time import sleep

import pytest

from recompute.support.interrupts import stop_predicate


def test_time_limit_stops_the_search():
    with stop_predicate(0.02) as stop:
        assert not stop()
        sleep(0.05)
        assert stop()
    with stop_predicate() as stop:
        assert not stop()


def test_first_interrupt_stops_and_second_raises(capsys: pytest.CaptureFixture[str]):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), stop_predicate() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop()
        os.kill(os.getpid(), signal.SIGINT)
        sleep(1)
    assert capsys.readouterr().err == "interrupted: the best result so far follows, if there is one\n"
    assert signal.getsignal(signal.SIGINT) is before
