"""The disk cache of one step: its rewrite, the merged step, and which of the compiled steps needs least.

    key of the step: JAX's module as bytecode, the name, the options, registrations, versions
    rewrite, merged: record of the rewrite, with the rewritten module as bytecode
    choice:          the way that runs, and the bytes that the compiler measured, keyed by compiler and device too

A hit parses nothing in xDSL: JAX reads the bytecode and compiles it. The bytecode is that of the first answer, so
JAX's own persistent cache of compilations finds it too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from ...driver.api import Rewritten, as_module
from ...driver.cache import StoredRewrite, key_of, key_of_options, record_of, record_of_remark, remark_from, spelled_as
from ...support.diagnostics import Remark
from ...support.disk_cache import DiskCache, Entry, disk_cache
from ...support.fingerprint import NoFingerprint, fingerprint
from . import crossing, private
from .options import Options

_JAX: Any = jax
"""JAX's own types are partly unknown to type checkers."""
FLAGS = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")


@dataclass(frozen=True)
class StoredStep:
    """A rewritten step, as read from the cache.

    Attributes:
        has_marks: Whether the module had marks, so that the plain step is another lowering.
        drops_barriers: As in `Lowered`.
        why: As in `Lowered`.
        rewritten: The record of the rewrite; None if it was refused.
        remarks: The remarks that are not those of the rewrite.
        within: How a budget was kept, as values of JSON; None without a budget.
        less: The rewritten module as bytecode; empty if the plain step is compiled.
    """

    has_marks: bool
    drops_barriers: bool
    why: str | None
    rewritten: Mapping[str, Any] | None
    remarks: tuple[Remark | str, ...]
    within: Mapping[str, Any] | None
    less: bytes


_OF_STEP = ("has_marks", "drops_barriers", "why", "rewritten", "within")
"""The fields of `StoredStep` that are stored as they are."""


@dataclass(frozen=True)
class StepCache:
    """The cache of a step. `key`: that of its module and options, None if nothing is cached. `measured`: the part of
    a key that stands for the compiler and the devices."""

    name: str
    key: str | None = None
    measured: str | None = None
    disk: DiskCache | None = None

    @classmethod
    def of(cls, name: str, lowered: jax.stages.Lowered, options: Options) -> StepCache:
        """Make the cache of the step as it was lowered, with marks; one that stores nothing if it is off or has
        no key."""
        disk = disk_cache()
        if disk is None:
            return cls(name)
        try:
            measured = _compiler(private.platforms(lowered), options)
            compiled = measured if options.search or options.budget is not None else None
            key_parts = key_of_options(options.rewrite), options.search, options.budget, compiled
        except NoFingerprint:
            return cls(name)
        return cls(name, key_of("step", private.bytecode_of(lowered), name, *key_parts), measured, disk)

    def step(self) -> StoredStep | None:
        """Return the stored rewrite."""
        if (entry := self._get("rewrite")) is None:
            return None
        record = entry.record
        remarks = tuple([remark if isinstance(remark, str) else remark_from(remark) for remark in record["remarks"]])
        has_marks, drops_barriers, why, rewritten, within = [record[name] for name in _OF_STEP]
        return StoredStep(has_marks, drops_barriers, why, rewritten, remarks, within, entry.attachment)

    def keep_step(self, step: StoredStep) -> None:
        remarks = [remark if isinstance(remark, str) else record_of_remark(remark) for remark in step.remarks]
        record = {name: getattr(step, name) for name in _OF_STEP}
        self._put("rewrite", Entry({**record, "remarks": remarks}, step.less))

    def merged(
        self, plain: jax.stages.Lowered, original: Callable[[], ModuleOp | None], merge: Callable[[], Rewritten | None]
    ) -> tuple[Rewritten | None, jax.stages.Lowered | None]:
        """Return the merged step, stored or by `merge`, and as JAX compiles it; None if it cannot be merged."""
        if (entry := self._get("merged")) is not None:
            if entry.record["rewritten"] is None:
                return None, None
            less = private.with_module(plain, private.module_of_bytecode(entry.attachment))
            return self.stored(entry.record["rewritten"], less, original), less
        if (rewritten := merge()) is None:
            self._put("merged", Entry({"rewritten": None}))
            return None, None
        less = crossing.with_module(plain, rewritten.module)
        self._put("merged", Entry({"rewritten": record_of(rewritten)}, self.bytecode_of(less)))
        return rewritten, less

    def stored(
        self, record: Mapping[str, Any], less: jax.stages.Lowered, original: Callable[[], ModuleOp | None]
    ) -> StoredRewrite:
        """Return the rewrite of a record. `less`: as it is compiled. `original`: the step as JAX lowered it, with
        marks."""

        def before() -> ModuleOp:
            module = original()
            assert module is not None, "a step that was rewritten can be read"
            return as_module(module)

        def after() -> ModuleOp:
            if not record["copies"]:
                return before().clone()
            return spelled_as(crossing.module_of(less, self.name), record["spelling"])

        return StoredRewrite(record, after, before)

    def choice(self, measure: bool | str) -> tuple[str, dict[str, int | None]] | None:
        """Return the stored choice: the name of the way, and the bytes of temporaries of each way that was compiled."""
        entry = self._get("choice", measure, self.measured)
        return None if entry is None else (entry.record["way"], dict(entry.record["sizes"]))

    def keep_choice(self, measure: bool | str, way: str, sizes: Mapping[str, int | None]) -> None:
        self._put("choice", Entry({"way": way, "sizes": dict(sizes)}), measure, self.measured)

    def bytecode_of(self, lowered: jax.stages.Lowered) -> bytes:
        """Return the module's bytecode if the cache will store it; otherwise `b""`."""
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


def _compiler(platforms: tuple[str, ...], options: Options) -> str:
    """Return the digest of the settings that the compiler's measurements depend on beside the module. Raises
    `NoFingerprint`."""
    devices: list[Any] = _JAX.local_devices()
    client = devices[0].client
    kinds = [device.device_kind for device in devices]
    flags = [os.environ.get(name) for name in FLAGS]
    versions = client.platform, client.platform_version
    return fingerprint((platforms, versions, kinds, flags, options.jit.get("compiler_options")))
