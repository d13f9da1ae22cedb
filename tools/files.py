"""Reading and writing for the command-line tools: one-line errors, and a file is written whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

TEMPORARY = ".recompute-tmp"


class FileError(Exception):
    """`str()` is the line for the user."""


def read_text(path: str | None) -> tuple[str, str]:
    """(text, name for diagnostics) of a file, or of standard input for None and `-`. Raises `FileError`."""
    name = "<stdin>" if path in (None, "-") else str(path)
    try:
        data = sys.stdin.buffer.read() if path in (None, "-") else Path(path or "").read_bytes()
    except OSError as error:
        raise FileError(f"{name}: error: cannot be read: {error.strerror}") from error
    try:
        return data.decode("utf-8"), name
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise FileError(f"{name}:{line}:{column}: error: not UTF-8 text; MLIR bytecode is not read here") from error


def write_text(path: str | None, text: str) -> None:
    """Write to standard output, or replace the file in one step. Raises `FileError` and leaves the old file then."""
    if path is None or path == "-":
        _print(text)
    else:
        write_bytes(path, text.encode())


def _print(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # What is left in the buffer would fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise FileError(f"<stdout>: error: cannot be written: {error.strerror}") from error


def write_bytes(path: str, data: bytes) -> None:
    """Replace the file in one step. Raises `FileError` and leaves the old file then."""
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)  # a device or a pipe: there is nothing to keep whole
            return
        _replace(target.resolve(), data)
    except OSError as error:
        raise FileError(f"{path}: error: cannot be written: {error.strerror}") from error
    except RuntimeError as error:
        # What pathlib makes of a symbolic link that leads to itself.
        raise FileError(f"{path}: error: cannot be written: {error}") from error


def _replace(target: Path, data: bytes) -> None:
    """Write a neighbour, flush it to disk, then rename: whoever looks sees the old file or the new one.

    Only a process that is killed leaves the neighbour behind, `.<name>.<random>.recompute-tmp`.
    """
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=TEMPORARY)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
