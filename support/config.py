"""Settings of the process that change no result: where answers are cached on disk, and how much of them.

recompute.config.cache_dir = "/scratch/me"    # another folder
recompute.config.cache_dir = ""               # no cache on disk
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "RECOMPUTE_CACHE_DIR"
FOLDER = "recompute"


@dataclass
class Config:
    """The settings of the process.

    Attributes:
        cache_dir: The folder of the disk cache; "" switches the cache off. None: the environment variable
            `RECOMPUTE_CACHE_DIR`, and without it a folder in the user's folder of caches.
        cache_bytes: The maximum size of the folder; the least recently used entries are deleted beyond it.
    """

    cache_dir: str | None = None
    cache_bytes: int = 1 << 30

    def cache_folder(self) -> Path | None:
        """Return the folder of the disk cache, which need not exist; None if the cache is off."""
        text = os.environ.get(VARIABLE) if self.cache_dir is None else self.cache_dir
        if text is None:
            return _user_caches()
        return Path(text).expanduser() if text else None


def _user_caches() -> Path | None:
    """Return the folder `recompute` in the user's folder of caches; None for a user without a home."""
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / FOLDER
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / FOLDER / "cache"
    stated = os.environ.get("XDG_CACHE_HOME", "")
    # The specification has relative paths ignored.
    return (Path(stated) if os.path.isabs(stated) else home / ".cache") / FOLDER


config = Config()
"""The settings of this process: `recompute.config`."""
