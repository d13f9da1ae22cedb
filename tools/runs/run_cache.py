"""`recompute-opt --cache`: reuse the output of an earlier run on the same text, with the same passes and files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, is_dataclass

from xdsl.passes import ModulePass

from ...driver.cache.cache_keys import cache_key, content_of
from ...support.disk_cache import DiskCache, Entry, disk_cache
from ...support.fingerprint import VERSIONED
from ...support.interrupts import Interrupt
from ..arguments.command_line import CommandLine, Instrumentation
from ..diagnostics.reporting import Diagnostic


@dataclass(frozen=True)
class Answer:
    """The stored output for one module: its text, its plan if a pass made one, and the remarks."""

    text: str
    plan: str | None
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True)
class RunCache:
    """The cache entry for one module and one command line.

    Attributes:
        key: The key of the entry; None if the output is not stored.
        disk: The disk cache; None if it is disabled.
        interrupts: The number of interrupts (Ctrl-C) before the run.
    """

    key: str | None
    disk: DiskCache | None
    interrupts: int = field(default_factory=lambda: Interrupt.count)

    @classmethod
    def for_module(cls, request: CommandLine, text: str, name: str) -> RunCache:
        """Return the cache entry for the run of a command line on one module.

        The entry stores nothing if `--cache` is not given, if a pass belongs to another package, or if the run writes
        more than the module, its plan and its remarks.

        Args:
            request: The command line.
            text: The module.
            name: The name of the file.
        """
        passes = [scheduled.module_pass for scheduled in request.passes]
        if not request.cache or _writes_more(request) or not all(map(_is_repeatable, passes)):
            return cls(None, None)
        form = request.generic, request.debuginfo, request.proof, request.verify, request.remarks.categories
        form = *form, request.remarks.details, request.quiet
        files = [content_of(path) for scheduled in request.passes for path in _texts(scheduled.module_pass)]
        return cls(cache_key("run", text, name, request.passes, files, form), disk_cache())

    def get(self) -> Answer | None:
        """Return the stored output; None if there is none."""
        entry = None if self.key is None or self.disk is None else self.disk.get(self.key)
        if entry is None:
            return None
        diagnostics = tuple([Diagnostic.from_record(record) for record in entry.record["diagnostics"]])
        return Answer(entry.attachment.decode(), entry.record["plan"], diagnostics)

    def put(self, answer: Answer) -> None:
        """Store the output, unless an interrupt has ended a search early."""
        if self.key is not None and self.disk is not None and Interrupt.count == self.interrupts:
            diagnostics = [asdict(diagnostic) for diagnostic in answer.diagnostics]
            self.disk.put(self.key, Entry({"plan": answer.plan, "diagnostics": diagnostics}, answer.text.encode()))


def _writes_more(request: CommandLine) -> bool:
    prints = request.instrumentation != Instrumentation() or request.verify_diagnostics is not None
    return prints or request.target is not None or request.reproducers.always is not None


def _is_repeatable(module_pass: ModulePass) -> bool:
    """Return whether the output of a pass can be reused. The pass must have no time limit, and must belong to this
    project or to xDSL, because the key of an entry contains only the versions of these two.
    """
    if getattr(module_pass, "time_limit", None) is not None:
        return False
    return type(module_pass).__module__.partition(".")[0] in VERSIONED


def _texts(module_pass: ModulePass) -> Iterator[str]:
    """Yield the values of a pass's string options. They may be file names, such as a plan or costs."""
    if is_dataclass(module_pass):
        values = (getattr(module_pass, field.name) for field in fields(module_pass))
        yield from (value for value in values if isinstance(value, str))
