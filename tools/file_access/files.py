"""File access of the command-line tools: errors in one line, atomic replacement, and input files with several programs
(`--split-input-file`).
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import stat
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ...frontends.bytecode import BytecodeError, is_bytecode, text_of_bytecode

CHUNK = "// -----"
"""The line between the programs of a file."""


def add_split_options(parser: argparse.ArgumentParser) -> None:
    """Add `--split-input-file` and `--output-split-marker`."""
    add_split_option(parser)
    parser.add_argument(
        "--output-split-marker", default=CHUNK, metavar="MARKER", help=f"the line between the results ({CHUNK})"
    )


def add_split_option(parser: argparse.ArgumentParser) -> None:
    """Add `--split-input-file[=MARKER]`."""
    parser.add_argument(
        "--split-input-file",
        nargs="?",
        const=CHUNK,
        metavar="MARKER",
        help=f"split the input at lines '{CHUNK}' (or at this marker), and process each part separately",
    )


def chunks(text: str, marker: str | None) -> Iterator[str]:
    """Yield the parts of an input file as strings. Blank lines replace the text before each part, so that line numbers
    stay the same.

    Args:
        text: The text of the file.
        marker: The line between two parts; None for a file with one part.
    """
    line = 0
    # The marker must end its line: `// -----// IR Dump After …` is the header of a dump.
    for chunk in re.split(rf"{re.escape(marker)}(?=[ \t]*(?:\r?\n|\Z))", text) if marker else [text]:
        yield "\n" * line + chunk
        line += chunk.count("\n")


TEMPORARY = ".recompute-tmp"
"""The suffix of temporary files."""


class FileError(Exception):
    """The error for a file that cannot be read or written; its string is the message, in one line."""


def read_text(path: str | None) -> tuple[str, str]:
    """Return the text of a file and its name for diagnostics. MLIR bytecode is converted to text.

    `path`: the name of the file; None and `-` mean standard input. Raises `FileError`.
    """
    name = "<stdin>" if path in (None, "-") else str(path)
    try:
        data = sys.stdin.buffer.read() if path in (None, "-") else Path(path or "").read_bytes()
    except OSError as error:
        raise FileError(f"{name}: error: cannot read the file: {error.strerror}") from error
    if is_bytecode(data):
        return _text_of_bytecode(data, name), name
    try:
        return data.decode("utf-8"), name
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise FileError(f"{name}:{line}:{column}: error: neither UTF-8 text nor MLIR bytecode") from error


def _text_of_bytecode(data: bytes, name: str) -> str:
    try:
        return text_of_bytecode(data)
    except BytecodeError as error:
        raise FileError(f"{name}:1:1: error: the bytecode cannot be read: {error}") from error


def write_text(path: str | None, text: str) -> None:
    """Write a string to a file, or to standard output if the path is None or `-`, as `write_outputs` does."""
    write_outputs([(path, text.encode())])


def write_bytes(path: str, data: bytes) -> None:
    """Write bytes to a file, or to standard output if the path is None or `-`, as `write_outputs` does."""
    write_outputs([(path, data)])


def demand_writable(paths: Iterable[str | None]) -> None:
    """Raise `FileError` if a file cannot be written, so that tools report this error before long work. Nothing is
    written.

    `paths`: the files; None and `-` mean standard output.
    """
    for path in paths:
        if path is None or path == "-":
            continue
        with _errors_of(path):
            if Path(path).is_dir():
                raise _os_error(errno.EISDIR)
            target = _regular(path)
            if target is None:
                continue
            if not stat.S_ISDIR(target.parent.stat().st_mode):
                raise _os_error(errno.ENOTDIR)
            if not os.access(target.parent, os.W_OK | os.X_OK):
                raise _os_error(errno.EACCES)


def _os_error(code: int) -> OSError:
    return OSError(code, os.strerror(code))


def write_outputs(outputs: Sequence[tuple[str | None, bytes]]) -> None:
    """Write several outputs together. Files are replaced atomically, after all other outputs have been written.

    Args:
        outputs: Paths and contents. None and `-` mean standard output. Devices and pipes are written directly.

    Raises:
        FileError: If an output cannot be written. In that case, no file is changed.
    """
    staged = list[tuple[str, Path, Path]]()
    to_files = [(path, data) for path, data in outputs if path is not None and path != "-"]
    try:
        for path, data in to_files:
            if (target := _regular(path)) is not None:
                with _errors_of(path):
                    staged.append((path, _stage(target, data), target))
        for path, data in outputs:
            if path is None or path == "-":
                _print(data)
            elif _regular(path) is None:
                with _errors_of(path):
                    Path(path).write_bytes(data)
        for path, temporary, target in staged:
            with _errors_of(path):
                os.replace(temporary, target)
    finally:
        for _, temporary, _ in staged:
            temporary.unlink(missing_ok=True)


def demand_different_files(outputs: Mapping[str, str | None]) -> None:
    """Raise `ValueError` if two options name the same file, possibly through links.

    `outputs`: the path for each option. Two options may name the same device, but not both standard output.
    """
    earlier = list[tuple[str, str | None]]()
    for option, path in outputs.items():
        for other_option, other_path in earlier:
            if _is_same(other_path, path):
                name = "standard output" if path in (None, "-") else f"'{path}'"
                raise ValueError(f"{other_option} and {option} both name {name}: give each option its own file")
        earlier.append((option, path))


def _is_same(first: str | None, second: str | None) -> bool:
    if first in (None, "-") or second in (None, "-"):
        return first in (None, "-") and second in (None, "-")
    paths = Path(first or ""), Path(second or "")
    try:
        if any(path.exists() and not path.is_file() for path in paths):
            return False
        return os.path.realpath(paths[0]) == os.path.realpath(paths[1]) or os.path.samefile(*paths)
    except OSError:
        return False


def _regular(path: str) -> Path | None:
    """Resolve the links of a path. Return the file, which need not exist; None for a device or a pipe."""
    target = Path(path)
    with _errors_of(path):
        return None if target.exists() and not target.is_file() else target.resolve()


@contextmanager
def _errors_of(path: str) -> Generator[None]:
    """Convert errors of the operating system to `FileError` within the context."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path}: error: cannot write the file: {error.strerror}") from error
    except RuntimeError as error:
        # pathlib raises this error for a loop of symbolic links.
        raise FileError(f"{path}: error: cannot write the file: {error}") from error


def _print(data: bytes) -> None:
    try:
        if is_bytecode(data):
            sys.stdout.buffer.write(data)
        else:
            sys.stdout.write(data.decode())
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # The stream is redirected, because Python would fail again when it flushes the buffer at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise FileError(f"<stdout>: error: cannot write: {error.strerror}") from error


def _stage(target: Path, data: bytes) -> Path:
    """Write the data to a temporary file in the directory and with the permissions of `target`, and flush it to disk.

    The temporary file, `.<name>.<random>.recompute-tmp`, is left behind only if the process is killed.
    """
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=TEMPORARY)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
    except BaseException:
        os.unlink(temporary)
        raise
    return Path(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
