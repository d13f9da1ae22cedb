"""Entries of the disk cache are read as they were written, and damaged ones are never returned."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from recompute.support.config import FOLDER, VARIABLE, Config
from recompute.support.disk_cache import ABANDONED_SECONDS, SUFFIX, TEMPORARY, DiskCache, Entry, disk_cache
from recompute.test.imports import ROOT

KEY, OTHER = "ab" * 32, "cd" * 32
ENTRY = Entry({"copies": 3, "words": "µ", "nothing": None, "list": [1, [2]]}, b"\x00module\xff")


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "deep" / "cache", 1 << 20)


def file_of(cache: DiskCache, key: str = KEY) -> Path:
    return cache.folder / f"{key}{SUFFIX}"


def test_stored_entry_is_returned(cache: DiskCache):
    assert cache.get(KEY) is None
    cache.put(KEY, ENTRY)
    assert cache.get(KEY) == ENTRY and cache.get(OTHER) is None
    cache.put(KEY, Entry({}))
    assert cache.get(KEY) == Entry({}, b"")
    assert [path.name for path in cache.folder.iterdir()] == [f"{KEY}{SUFFIX}"]


@pytest.mark.parametrize("at", [0, 10, 20, 60, 100, -1])
def test_entry_with_a_changed_byte_is_a_miss(cache: DiskCache, at: int):
    cache.put(KEY, ENTRY)
    data = bytearray(file_of(cache).read_bytes())
    data[at] ^= 1
    file_of(cache).write_bytes(bytes(data))
    assert cache.get(KEY) is None
    cache.put(KEY, ENTRY)
    assert cache.get(KEY) == ENTRY


def test_truncated_entry_is_a_miss(cache: DiskCache):
    cache.put(KEY, ENTRY)
    data = file_of(cache).read_bytes()
    for length in range(len(data)):
        file_of(cache).write_bytes(data[:length])
        assert cache.get(KEY) is None, length


def test_file_of_different_key_is_a_miss(cache: DiskCache):
    cache.put(KEY, ENTRY)
    file_of(cache).rename(file_of(cache, OTHER))
    assert cache.get(OTHER) is None


def test_the_least_recently_used_entries_are_deleted(cache: DiskCache):
    small = DiskCache(cache.folder, 1000)
    keys = [f"{number:064x}" for number in range(4)]
    for number, key in enumerate(keys[:3]):
        small.put(key, Entry({}, bytes(200)))
        os.utime(file_of(small, key), (number, number))
    assert small.get(keys[0]) is not None  # used just now
    small.put(keys[3], Entry({}, bytes(200)))
    assert [small.get(key) is not None for key in keys] == [True, False, True, True]
    assert sum(path.stat().st_size for path in small.folder.iterdir()) <= 1000


def test_entry_larger_than_the_cache_is_not_stored(cache: DiskCache):
    small = DiskCache(cache.folder, 100)
    small.put(KEY, Entry({}, bytes(200)))
    assert small.get(KEY) is None and not small.folder.exists()


def test_leftovers_of_killed_processes_are_deleted(cache: DiskCache):
    cache.put(KEY, ENTRY)
    old, new = cache.folder / f"old{TEMPORARY}", cache.folder / f"new{TEMPORARY}"
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    past = time.time() - ABANDONED_SECONDS - 1
    os.utime(old, (past, past))
    cache.put(OTHER, ENTRY)
    assert not old.exists() and new.exists()
    assert cache.get(KEY) == cache.get(OTHER) == ENTRY


WRITER = """
import sys
from pathlib import Path
from recompute.support.disk_cache import DiskCache, Entry
cache = DiskCache(Path(sys.argv[1]), 4000)
for number in range(150):
    key = f"{number % 7:064x}"
    found = cache.get(key)
    assert found is None or found.attachment == key.encode() * 5, found
    cache.put(key, Entry({"key": key}, key.encode() * 5))
"""


def test_concurrent_processes_read_whole_entries(cache: DiskCache):
    """Processes read only whole entries while others replace and delete them."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WRITER, str(cache.folder)]
    writers = [subprocess.Popen(command, cwd=ROOT.parent, env=environment) for _ in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert not list(cache.folder.glob(f"*{TEMPORARY}"))


def test_unusable_folder_disables_cache(tmp_path: Path):
    (tmp_path / "file").write_text("")
    cache = DiskCache(tmp_path / "file" / "cache", 1000)
    cache.put(KEY, ENTRY)
    assert cache.get(KEY) is None


def test_folder_follows_setting_variable_and_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The folder is that of the setting, the variable, or the user's cache, in this order; an empty value disables the
    cache."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv(VARIABLE)
    assert Config().cache_folder() == tmp_path / "xdg" / FOLDER
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Config().cache_folder() == tmp_path / ".cache" / FOLDER
    monkeypatch.setenv(VARIABLE, "~/mine")
    assert Config().cache_folder() == tmp_path / "mine"
    assert Config(cache_dir=str(tmp_path)).cache_folder() == tmp_path
    assert Config(cache_dir="").cache_folder() is None
    monkeypatch.setenv(VARIABLE, "")
    assert Config().cache_folder() is None and disk_cache() is None
