"""Process-wide settings that never change a result: the location and the maximum size of the disk cache.

recompute.config.cache_dir = "/scratch/me"    # use this directory
recompute.config.cache_dir = ""               # switch the cache off
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
    """Settings of the disk cache for this process.

    Attributes:
        cache_dir: The directory of the disk cache; "" switches the cache off. None selects the environment variable
            `RECOMPUTE_CACHE_DIR` or, if it is not set, a directory in the user's cache directory.
        cache_bytes: The maximum size of the directory in bytes. If the directory grows larger, the least recently used
            entries are deleted.
    """

    cache_dir: str | None = None
    cache_bytes: int = 1 << 30

    def cache_folder(self) -> Path | None:
        """Return the disk cache's directory, which need not exist; None if the cache is off."""
        text = os.environ.get(VARIABLE) if self.cache_dir is None else self.cache_dir
        if text is None:
            return _user_caches()
        return Path(text).expanduser() if text else None


def _user_caches() -> Path | None:
    """Return the directory `recompute` in the user's cache directory; None if the user has no home directory."""
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / FOLDER
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / FOLDER / "cache"
    stated = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG base directory specification says that relative paths are to be ignored.
    return (Path(stated) if os.path.isabs(stated) else home / ".cache") / FOLDER


config = Config()
"""The settings of this process, exported as `recompute.config`."""
