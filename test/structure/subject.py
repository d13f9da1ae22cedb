"""Functions under test, with time limits: the project's parser, verifier, printer and proof."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException

from recompute.driver.verification.verified import verify_module
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.proof.prove import Proof, prove

T = TypeVar("T")
REFUSALS = (ParseError, VerifyException, DiagnosticException)
"""What the parser and the verifier are documented to raise."""


class OutOfTime(BaseException):
    """Signal of an exceeded time limit. It is not an `Exception`, so that the functions under test do not catch it."""


@contextmanager
def time_limit(seconds: float) -> Generator[None]:
    """Provide a context that raises `OutOfTime` after the time limit; only in the main thread."""

    def stop(signal_number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class Failed:
    """Failure of a function under test. `kind`: refused, traceback or hang."""

    kind: str
    words: str


@dataclass(frozen=True)
class Subject:
    """Functions under test; tests replace some of them."""

    parse: Callable[[str], ModuleOp] = parse_module
    verify: Callable[[ModuleOp], None] = verify_module
    write: Callable[..., str] = print_module
    proof: Callable[[ModuleOp, ModuleOp], Proof] = prove
    seconds: float = 10

    def read(self, text: str) -> ModuleOp | Failed:
        def parsed() -> ModuleOp:
            module = self.parse(text)
            self.verify(module)
            return module

        return self._tried(parsed)

    def written(self, module: ModuleOp, *, generic: bool, debuginfo: bool) -> str | Failed:
        return self._tried(lambda: self.write(module, generic=generic, debuginfo=debuginfo), refusals=())

    def proved(self, before: ModuleOp, after: ModuleOp) -> Proof | Failed:
        return self._tried(lambda: self.proof(before, after), refusals=())

    def _tried(self, action: Callable[[], T], refusals: tuple[type[Exception], ...] = REFUSALS) -> T | Failed:
        try:
            with time_limit(self.seconds):
                return action()
        except refusals as error:
            return Failed("refused", str(error))
        except OutOfTime:
            return Failed("hang", f"more than {self.seconds} s")
        except Exception:
            return Failed("traceback", traceback.format_exc(limit=-6))
