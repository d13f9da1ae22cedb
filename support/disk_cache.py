"""A persistent cache: one file per key in a directory that concurrent processes share.

    file:   magic, SHA-256 of the following bytes, key, length of the record, record (JSON), attachment (bytes)

A file is renamed to its final name only when it is complete. A killed process therefore leaves at most a temporary
file, which a later process deletes. A file that is damaged, or that contains a different key, is treated as a miss and
overwritten. File system errors never reach the caller: if the directory cannot be used, nothing is cached.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from .config import config
from .strict_json import BadJson, parse_strictly

MAGIC = b"recompute cache 1\n"
SUFFIX, TEMPORARY = ".entry", ".tmp"
ABANDONED_SECONDS = 3600.0
"""The age, in seconds, above which a temporary file is assumed to belong to a process that was killed."""
KEPT_SHARE = 0.9
"""The share of the maximum size that remains after an eviction."""
_DIGEST = sha256().digest_size
_LENGTH = 8


@dataclass(frozen=True)
class Entry:
    """A cached result: a JSON object and, optionally, bytes such as the text of a module."""

    record: Mapping[str, Any]
    attachment: bytes = b""


@dataclass(frozen=True)
class DiskCache:
    """The cache in one directory.

    Attributes:
        folder: The directory. It is created when the first entry is stored.
        maximum: The maximum total size of the files, in bytes.
    """

    folder: Path
    maximum: int

    def get(self, key: str) -> Entry | None:
        """Return the entry for the key, a hexadecimal digest, or None if there is no entry or its file is damaged."""
        path = self._path(key)
        try:
            entry = _unpack(path.read_bytes(), key)
        except OSError:
            return None
        if entry is not None:
            with suppress(OSError):
                os.utime(path)  # Mark the entry as the most recently used one.
        return entry

    def put(self, key: str, entry: Entry) -> None:
        """Store the entry under the key. If the maximum size is exceeded, delete the least recently used entries."""
        data = _pack(key, entry)
        if len(data) > self.maximum:
            return
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, temporary = tempfile.mkstemp(dir=self.folder, suffix=TEMPORARY)
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(data)
                os.replace(temporary, self._path(key))
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
            self._evict(key)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"

    def _evict(self, newest: str) -> None:
        """Delete abandoned temporary files and, if the cache is too large, the least recently used entries.

        The entry with the key `newest` is never deleted, even if older entries have the same timestamp.
        """
        entries = list[tuple[float, int, Path]]()
        for path, status in _files(self.folder):
            if path.suffix == SUFFIX:
                entries.append((status.st_mtime, status.st_size, path))
            elif path.suffix == TEMPORARY and time.time() - status.st_mtime > ABANDONED_SECONDS:
                path.unlink(missing_ok=True)
        total = sum(size for _, size, _ in entries)
        if total <= self.maximum:
            return
        for _, size, path in sorted(entries):
            if total <= KEPT_SHARE * self.maximum:
                return
            if path != self._path(newest):
                path.unlink(missing_ok=True)
                total -= size


def disk_cache() -> DiskCache | None:
    """Return the cache that `recompute.config` and the environment configure; None if the cache is off."""
    folder = config.cache_folder()
    return None if folder is None else DiskCache(folder, config.cache_bytes)


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files of the directory with their status. Files that another process deletes meanwhile are skipped."""
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            yield path, path.stat()


def _pack(key: str, entry: Entry) -> bytes:
    record = json.dumps(entry.record, allow_nan=False).encode()
    body = b"".join([bytes.fromhex(key), len(record).to_bytes(_LENGTH, "big"), record, entry.attachment])
    return MAGIC + sha256(body).digest() + body


def _unpack(data: bytes, key: str) -> Entry | None:
    """Decode a cache file; return None if it is damaged, has a different format, or belongs to a different key."""
    start = len(MAGIC) + _DIGEST
    body = data[start:]
    if not data.startswith(MAGIC) or sha256(body).digest() != data[len(MAGIC) : start]:
        return None
    number = bytes.fromhex(key)
    if not body.startswith(number):
        return None
    begin = len(number) + _LENGTH
    end = begin + int.from_bytes(body[len(number) : begin], "big")
    try:
        record = parse_strictly(body[begin:end].decode())
    except (BadJson, UnicodeDecodeError):
        return None
    return Entry(cast(Mapping[str, Any], record), body[end:]) if isinstance(record, dict) else None
