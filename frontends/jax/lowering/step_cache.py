"""The disk cache of one step: its rewrite, the merged step, and the compiled variant that needs the least memory.

    key of the step: JAX's module as bytecode, the name, the options, registrations, versions
    rewrite, merged: record of the rewrite, with the rewritten module as bytecode
    choice:          the variant that runs, and the bytes that the compiler measured, also keyed by compiler and device

The result of a search under a budget is also stored with a key that ignores the lines of locations. After an edit that
moves the step in its file, the stored plan is reapplied, the result is proved, and no search is needed.

On a hit, xDSL parses nothing: JAX reads the bytecode and compiles it. Because the bytecode is the same as in the first
run, JAX's own persistent compilation cache also has an entry for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from ....analysis.step.jax_paths import scope_of
from ....dialects.cloning import clone_of
from ....driver.cache.cache_keys import cache_key, options_key
from ....driver.cache.stored_rewrite import RewriteRecord, StoredRewrite, remark_from_json, remark_to_json, respell
from ....driver.rewrites.rewritten import Rewritten
from ....driver.verification.step_input import as_module
from ....mlir_io.printer import print_module
from ....support.disk_cache import DiskCache, Entry, disk_cache
from ....support.fingerprint import NoFingerprint, fingerprint
from ....support.operations import every_operation
from ....support.remarks import Remark
from ..bridge import crossing
from ..internals import private
from ..keywords.jit_options import JitOptions
from ..messages.why_plain import PlainReason

_JAX: Any = jax
"""Typed as `Any`, because the types of JAX are incomplete."""
FLAG_VARIABLES = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
"""The environment variables that hold compiler flags."""


@dataclass(frozen=True)
class StoredStep:
    """A lowered and rewritten step in the form in which the cache stores it.

    Attributes:
        has_marks: Whether the module had marks, so that the plain step must be lowered separately.
        own_barriers: As in `StepVariants`.
        plain_reason: As in `StepVariants`.
        rewritten: The record of the rewrite; None if it was refused.
        remarks: The remarks that do not belong to the rewrite.
        within: The record of the search under a budget, as JSON values; None if there is no budget.
        bytecode: The rewritten module as bytecode; empty if the plain step is compiled.
    """

    has_marks: bool
    own_barriers: bool
    plain_reason: PlainReason | None
    rewritten: RewriteRecord | None
    remarks: tuple[Remark | str, ...]
    within: Mapping[str, Any] | None
    bytecode: bytes

    def to_entry(self) -> Entry:
        """Return the cache entry for the step."""
        record = {
            "has_marks": self.has_marks,
            "own_barriers": self.own_barriers,
            "plain_reason": None if self.plain_reason is None else asdict(self.plain_reason),
            "rewritten": None if self.rewritten is None else self.rewritten.to_json(),
            "remarks": [remark if isinstance(remark, str) else remark_to_json(remark) for remark in self.remarks],
            "within": self.within,
        }
        return Entry(record, self.bytecode)

    @classmethod
    def from_entry(cls, entry: Entry) -> StoredStep:
        """Return the step that an entry written by `to_entry` describes."""
        record = entry.record
        return cls(
            has_marks=record["has_marks"],
            own_barriers=record["own_barriers"],
            plain_reason=None if record["plain_reason"] is None else PlainReason(**record["plain_reason"]),
            rewritten=None if record["rewritten"] is None else RewriteRecord.from_json(record["rewritten"]),
            remarks=tuple(
                [remark if isinstance(remark, str) else remark_from_json(remark) for remark in record["remarks"]]
            ),
            within=record["within"],
            bytecode=entry.attachment,
        )


@dataclass(frozen=True)
class StepCache:
    """The cache of one step.

    Attributes:
        name: The name of the step.
        key: The key of its module and options; None if nothing is cached.
        measured: A digest of the compiler and the devices, for the keys of measurements.
        disk: The disk cache; None if it is off.
        settings: The parts of the key that do not depend on the module.
    """

    name: str
    key: str | None = None
    measured: str | None = None
    disk: DiskCache | None = None
    settings: tuple[object, ...] = ()

    @classmethod
    def of(cls, name: str, lowered: jax.stages.Lowered, options: JitOptions) -> StepCache:
        """Return the cache of a step. The cache stores nothing if the disk cache is off or the step has no key.

        `lowered`: the step as it was lowered with marks.
        """
        disk = disk_cache()
        if disk is None:
            return cls(name)
        try:
            measured = _compiler(private.platforms(lowered), options)
            compiled = measured if options.search or options.budget is not None else None
            settings = name, options_key(options.rewrite_without_budget), options.search, options.budget, compiled
        except NoFingerprint:
            return cls(name)
        return cls(name, cache_key("step", private.bytecode_of(lowered), *settings), measured, disk, settings)

    def without_lines(self, module: ModuleOp) -> StepCache:
        """Return the cache of the step with a key that ignores the lines of locations, but not the scopes of
        operations.

        `module`: the step as it was lowered with marks.
        """
        if self.key is None:
            return self
        scopes = [scope_of(op.location) for op in every_operation(module)]
        key = cache_key("step without lines", print_module(module, debuginfo=False), scopes, *self.settings)
        return replace(self, key=key)

    def step(self) -> StoredStep | None:
        """Return the stored step; None if it is not in the cache."""
        entry = self._get("rewrite")
        return None if entry is None else StoredStep.from_entry(entry)

    def store_step(self, step: StoredStep) -> None:
        """Store the step."""
        self._put("rewrite", step.to_entry())

    def merged(
        self, plain: jax.stages.Lowered, original: Callable[[], ModuleOp | None], merge: Callable[[], Rewritten | None]
    ) -> tuple[Rewritten | None, jax.stages.Lowered | None]:
        """Return the rewrite of the merged step, from the cache or from `merge`, and the lowered step that JAX compiles
        for it.

        In the merged step, the copies of the step's own `jax.checkpoint` are merged with their originals. Both results
        are None if merging fails.
        """
        if (entry := self._get("merged")) is not None:
            if entry.record["rewritten"] is None:
                return None, None
            lowered = private.with_module(plain, private.module_of_bytecode(entry.attachment))
            return self.restore_rewrite(RewriteRecord.from_json(entry.record["rewritten"]), lowered, original), lowered
        if (rewritten := merge()) is None:
            self._put("merged", Entry({"rewritten": None}))
            return None, None
        lowered = crossing.with_module(plain, rewritten.module)
        self._put("merged", Entry({"rewritten": RewriteRecord.of(rewritten).to_json()}, self.bytecode_of(lowered)))
        return rewritten, lowered

    def restore_rewrite(
        self, record: RewriteRecord, lowered: jax.stages.Lowered, original: Callable[[], ModuleOp | None]
    ) -> StoredRewrite:
        """Return the rewrite that a cache record describes.

        Args:
            record: The record of the rewrite.
            lowered: The rewritten step, as JAX compiles it.
            original: A function that returns the step as JAX lowered it, with marks.
        """

        def before() -> ModuleOp:
            module = original()
            assert module is not None, "the cache stores only rewrites of steps that can be read"
            return as_module(module)

        def after() -> ModuleOp:
            if record.spelling is None:
                return clone_of(before())
            return respell(crossing.module_of(lowered, self.name), record.spelling)

        return StoredRewrite(record, after, before)

    def choice(self, measure: bool | str) -> tuple[str, dict[str, int | None]] | None:
        """Return the stored choice of the variant that runs; None if no choice is stored.

        It consists of the name of the variant that runs, and the bytes of temporaries of all compiled variants.
        """
        entry = self._get("choice", measure, self.measured)
        return None if entry is None else (entry.record["variant"], dict(entry.record["sizes"]))

    def store_choice(self, measure: bool | str, variant: str, sizes: Mapping[str, int | None]) -> None:
        """Store the choice, in the form that `choice` returns."""
        self._put("choice", Entry({"variant": variant, "sizes": dict(sizes)}), measure, self.measured)

    def bytecode_of(self, lowered: jax.stages.Lowered) -> bytes:
        """Return the module's bytecode if the cache is going to store it, otherwise `b""`."""
        return b"" if self.key is None else private.bytecode_of(lowered)

    def _get(self, kind: str, *parts: object) -> Entry | None:
        key = self._key(kind, parts)
        return None if key is None or self.disk is None else self.disk.get(key)

    def _put(self, kind: str, entry: Entry, *parts: object) -> None:
        key = self._key(kind, parts)
        if key is not None and self.disk is not None:
            self.disk.put(key, entry)

    def _key(self, kind: str, parts: tuple[object, ...]) -> str | None:
        return None if self.key is None else fingerprint((self.key, kind, parts))


def _compiler(platforms: tuple[str, ...], options: JitOptions) -> str:
    """Return a digest of the settings, other than the module, on which the compiler's measurements depend.

    Raises `NoFingerprint` for compiler options whose values cannot be compared.
    """
    devices: list[Any] = _JAX.local_devices()
    client = devices[0].client
    kinds = [device.device_kind for device in devices]
    flags = [os.environ.get(name) for name in FLAG_VARIABLES]
    versions = client.platform, client.platform_version
    return fingerprint((platforms, versions, kinds, flags, options.jit.get("compiler_options")))
