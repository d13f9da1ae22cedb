"""Dumps of the IR before and after passes, on standard error or in files: `--print-ir-*` and `--dump-dir`.

The headers have the form of MLIR, which pipeline viewers parse:

    // -----// IR Dump After MarkPass (recompute-mark) //----- //

A dump is the whole module, as with MLIR's `--mlir-print-ir-module-scope`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from ...driver.pipelines.scheduled_pass import ScheduledPass
from ...mlir_io.printer import print_module
from ...universe import RECOMPUTE_PASSES
from ..file_access.files import FileError

HEADER = "// -----// IR Dump {moment} //----- //"
WHOLE_PASS = "recompute"
"""The pass that combines several other passes."""
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")


@dataclass(frozen=True)
class DumpRequest:
    """The dumps that the command line requests.

    Attributes:
        before: The names of passes before which the IR is dumped.
        before_all: Whether to dump the IR before every pass.
        after: The names of passes after which the IR is dumped.
        after_all: Whether to dump the IR after every pass.
        after_change: Whether to dump the IR only after passes of `after` that change it; if `after` is empty, after any
            pass that changes it.
        after_failure: Whether to dump the IR after a pass of `after` that fails; if `after` is empty, after any pass
            that fails.
        folder: The directory for the dumps; None for standard error.
    """

    before: frozenset[str] = frozenset()
    before_all: bool = False
    after: frozenset[str] = frozenset()
    after_all: bool = False
    after_change: bool = False
    after_failure: bool = False
    folder: str | None = None

    @property
    def is_empty(self) -> bool:
        names_or_flags = (self.before, self.before_all, self.after, self.after_all, self.after_change)
        return not any((*names_or_flags, self.after_failure, self.folder))

    def without_effect(self, passes: Iterable[str]) -> list[str]:
        """Return a warning for each pass that the request names but the pipeline does not run."""
        running = frozenset(passes)
        inside = (
            f"; '{WHOLE_PASS}' does the work of several passes, and is dumped as one. These passes do the same, but "
            f"do not choose among several ways to mark: -pass-pipeline='builtin.module({','.join(RECOMPUTE_PASSES)})'"
        )
        inside = inside if WHOLE_PASS in running else ""
        return [
            f"{option}={name} {'prints' if self.folder is None else 'writes'} nothing: the pipeline does not run this "
            f"pass{inside}"
            for option, names in (("--print-ir-before", self.before), ("--print-ir-after", self.after))
            for name in sorted(names - running)
        ]

    @property
    def is_selective(self) -> bool:
        """Whether dumps are written to files, but only for the passes that `--print-ir-*` selects."""
        return self.folder is not None and not replace(self, folder=None).is_empty

    def is_before(self, name: str) -> bool:
        return self.before_all or name in self.before

    def is_after(self, name: str, *, changed: bool) -> bool:
        if self.after_change or self.after_failure:
            return self._is_selected(name) and self.after_change and changed
        is_folder_alone = self.folder is not None and not (self.before or self.before_all or self.after)
        return self.after_all or name in self.after or is_folder_alone

    def is_after_failure(self, name: str) -> bool:
        return self._is_selected(name)

    def _is_selected(self, name: str) -> bool:
        return not self.after or self.after_all or name in self.after


@dataclass
class Dumps:
    """Writer of the requested dumps of one module.

    Attributes:
        request: The requested dumps.
        prefix: The prefix of file names, such as the index of the module in the input.
        debuginfo: Whether to print locations.
        files: The names of the files that have been written.
    """

    request: DumpRequest
    prefix: str = ""
    debuginfo: bool = False
    files: list[str] = field(default_factory=list[str], init=False)
    _number: int = field(default=0, init=False)
    _text_before: str = field(default="", init=False)

    def before(self, scheduled: ScheduledPass, module: ModuleOp) -> None:
        """Write the dump before a pass, if one is requested. The caller must call this before each pass."""
        self._number += 1
        if self.request.after_change:
            self._text_before = print_module(module, debuginfo=True)
        if self.request.is_before(scheduled.name):
            self._write("before", f"Before {_title(scheduled)}", scheduled, module)

    def after(self, scheduled: ScheduledPass, module: ModuleOp) -> None:
        """Write the dump after a pass that has succeeded, if one is requested."""
        changed = self.request.after_change and print_module(module, debuginfo=True) != self._text_before
        if self.request.is_after(scheduled.name, changed=changed):
            self._write("after", f"After {_title(scheduled)}", scheduled, module)

    def after_failure(self, scheduled: ScheduledPass, module: ModuleOp) -> None:
        """Write the dump after a pass that has failed, if one is requested."""
        if not self.request.is_empty and self.request.is_after_failure(scheduled.name):
            self._write("failed", f"After {_title(scheduled, ' Failed')}", scheduled, module, generic=True)

    def _write(
        self, word: str, moment: str, scheduled: ScheduledPass, module: ModuleOp, *, generic: bool = False
    ) -> None:
        text = f"{HEADER.format(moment=moment)}\n{print_module(module, generic=generic, debuginfo=self.debuginfo)}"
        if self.request.folder is None:
            print(text, file=sys.stderr)
            return
        name = f"{self.prefix}{self._number:02}_{word}_{_NOT_IN_NAMES.sub('-', scheduled.name)}.mlir"
        path = Path(self.request.folder, name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise FileError(f"{path}: error: cannot write the file: {error.strerror}") from error
        self.files.append(name)


def _title(scheduled: ScheduledPass, outcome: str = "") -> str:
    anchor = f" ({' '.join(map(repr, scheduled.path))} operations)" if scheduled.path else ""
    return f"{type(scheduled.module_pass).__name__}{outcome} ({scheduled.name}){anchor}"
