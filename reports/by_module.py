"""A memory table by model module: the bytes saved for the backward pass before and after the rewrite, and the bytes
recomputed.

    LM/Block_0    saves 3.7 MiB in the plain step, 128.0 KiB now, and recomputes 3.5 MiB

Modules are the named scopes of operations. Flax, `jax.named_scope` and `recompute.jax.block` set these scopes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..analysis.memory.timeline import Buffer, Timeline
from ..analysis.step.descriptions import is_scope, without_loop_scopes
from ..support.locations import base_name
from .memory_layers import BandKind, dividing_level, kinds_of

OUTSIDE = "outside modules"
MAX_SHARE_OF_ONE = 0.75
"""The share of the saved bytes above which a single module is divided into its parts."""


@dataclass(frozen=True)
class ModuleRow:
    """Memory of one module, in bytes.

    Attributes:
        module: The path of scopes that names the module; `OUTSIDE` for operations without a scope.
        plain_bytes: Size of the values that the plain step stores for the backward pass after fusion, as temporaries or
            in the memory of results.
        saved_bytes: Size of the values that the rewritten step stores for the backward pass.
        recomputed_bytes: Size of the values that the rewritten step recomputes and stores, summed over all iterations
            of loops.
    """

    module: str
    plain_bytes: int
    saved_bytes: int
    recomputed_bytes: int


@dataclass(frozen=True)
class ModuleNames:
    """The short names of the modules of a model.

    A short name contains the first components of the module's path, up to the outermost level at which no single module
    saves most of the bytes.

    Attributes:
        modules: The full paths, in program order, including "" for operations outside modules.
        level: The number of components of a short path.
    """

    modules: tuple[str, ...] = ()
    level: int = 0

    @classmethod
    def of(cls, timelines: Iterable[Timeline]) -> ModuleNames:
        """Return the names of all modules whose operations store a value."""
        saved_bytes = Counter[str]()
        for buffer, kind in (stored for timeline in timelines for stored in _stored(timeline)):
            saved_bytes[buffer.module] += buffer.bytes * (kind is BandKind.SAVED)
        return cls(tuple(saved_bytes), _level_of_names(saved_bytes))

    def __bool__(self) -> bool:
        return any(self.modules)

    def of_module(self, module: str) -> str:
        """Return the short path of a module, or `OUTSIDE` if its full path is empty."""
        return "/".join(module.split("/")[: self.level]) or OUTSIDE

    def relabel(self, timeline: Timeline) -> Timeline:
        """Return the timeline with segments replaced by modules, if the model has modules.

        Otherwise, each segment without a named scope is replaced by a source line such as `train.py:41`.
        """
        name_of = self._module_of_buffer if self else _segment_in_model
        buffers = tuple([replace(buffer, segment=name_of(buffer)) for buffer in timeline.buffers])
        return timeline if buffers == timeline.buffers else replace(timeline, buffers=buffers)

    def _module_of_buffer(self, buffer: Buffer) -> str:
        return self.of_module(buffer.module)


def _level_of_names(saved_bytes: Mapping[str, int]) -> int:
    """Return the outermost level at which no module holds more than `MAX_SHARE_OF_ONE` of the bytes that modules save.

    If there is no such level, return the outermost level at which the largest module is smallest.

    `saved_bytes`: the saved bytes of each full path.
    """
    named = {tuple(module.split("/")): size for module, size in saved_bytes.items() if module}
    total = sum(named.values())

    def largest_at(level: int) -> int:
        sizes = Counter[tuple[str, ...]]()
        for path, size in named.items():
            sizes[path[:level]] += size
        return max(sizes.values(), default=0)

    levels = range(dividing_level(saved_bytes), max(map(len, named), default=0) + 1)
    divided = next((level for level in levels if largest_at(level) <= MAX_SHARE_OF_ONE * total), None)
    return divided if divided is not None else min(levels, key=largest_at, default=0)


def _segment_in_model(buffer: Buffer) -> str:
    """Return the segment of a buffer if a scope names this segment; otherwise return the source line of the operation
    that defines the buffer."""
    if not buffer.segment or is_scope(buffer.segment):
        return without_loop_scopes(buffer.segment)
    return base_name(buffer.source.rpartition(":")[0]) or buffer.segment


def module_rows(pairs: Iterable[tuple[Timeline, Timeline]]) -> tuple[ModuleRow, ...]:
    """Return a row for each module with saved or recomputed bytes, in program order. A module precedes its parts.

    `pairs`: for each step, the timelines of the plain step and of the rewritten step.
    """
    plain, saved, recomputed = Counter[str](), Counter[str](), Counter[str]()
    pairs = list(pairs)
    short = ModuleNames.of([timeline for pair in pairs for timeline in pair])
    names = {module: short.of_module(module) for module in short.modules}
    for before, after in pairs:
        for buffer, kind in _stored(before):
            plain[names[buffer.module]] += buffer.bytes * (kind is BandKind.SAVED)
        for buffer, kind in _stored(after):
            saved[names[buffer.module]] += buffer.bytes * (kind is BandKind.SAVED)
            recomputed[names[buffer.module]] += buffer.bytes * (kind is BandKind.RECOMPUTED)
    ordered = sorted(_in_program_order(names.values()), key=lambda name: name == OUTSIDE)
    rows = [ModuleRow(name, plain[name], saved[name], recomputed[name]) for name in ordered]
    return tuple(row for row in rows if row.plain_bytes or row.saved_bytes or row.recomputed_bytes)


def _in_program_order(modules: Iterable[str]) -> list[str]:
    """Return the distinct paths in the order in which their first components occur. A module precedes its parts."""
    paths = [tuple(module.split("/")) for module in modules]
    first = dict[tuple[str, ...], int]()
    for index, path in enumerate(paths):
        for level in range(len(path)):
            first.setdefault(path[: level + 1], index)
    ordered = sorted({*paths}, key=lambda path: [first[path[: level + 1]] for level in range(len(path))])
    return ["/".join(path) for path in ordered]


def _stored(timeline: Timeline) -> Iterator[tuple[Buffer, BandKind]]:
    """Yield each value that the step stores, as a pair of buffer and kind."""
    buffers = (*timeline.buffers, *timeline.in_results, *timeline.in_loops)
    return zip(buffers, kinds_of(timeline, buffers), strict=True)
