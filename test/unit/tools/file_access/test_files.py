"""Files are written atomically: after any failure a file has its old or its new contents, and no temporary file
remains."""

from __future__ import annotations

import errno
import multiprocessing
import os
import random
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from recompute.test.excerpts import diagnostics_of
from recompute.tools.file_access.files import (
    TEMPORARY,
    FileError,
    demand_different_files,
    demand_writable,
    write_bytes,
    write_outputs,
    write_text,
)
from recompute.tools.recompute_opt import main

MODULE = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  func.return %x : tensor<4xf32>\n}\n"
OLD, NEW = b"old" * 1_000_000, b"NEW!" * 500_000
ROUNDS, SECONDS = 60, 20

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="/dev/full and /proc are Linux's")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "step.mlir"
    path.parent.mkdir()
    path.write_text(MODULE)
    return path


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the single error line of the driver."""
    assert main(arguments) == 1
    output, error = capsys.readouterr()
    assert output == "" and len(diagnostics_of(error)) == 1
    return error


def test_demand_writable_names_the_reason_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)
    demand_writable([None, "-", str(tmp_path / "file"), str(tmp_path / "new"), os.devnull])
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    for path, reason in (
        ("none/file", "No such file or directory"),
        ("file/file", "Not a directory"),
        ("", "Is a directory"),
    ):
        with pytest.raises(FileError, match=f"error: cannot write the file: {reason}"):
            demand_writable([str(tmp_path / path)])


# Killed.


def write_forever(path: str, write: Callable[[str, bytes], object]) -> None:
    while True:
        write(path, NEW)
        write(path, OLD)


def kill_while_writing(path: Path, write: Callable[[str, bytes], object], seed: int) -> None:
    """Start a process that writes, and kill it at a random moment."""
    writer = multiprocessing.get_context("fork").Process(target=write_forever, args=(str(path), write))
    writer.start()
    time.sleep(random.Random(seed).uniform(0.002, 0.03))
    writer.kill()
    writer.join()


def overwrite(path: str, data: bytes) -> None:
    """Write in place, as files must not be written."""
    Path(path).write_bytes(data)


@pytest.mark.slow
def test_killed_process_leaves_old_or_new_file(tmp_path: Path) -> None:
    path, left, end = tmp_path / "out.mlir", set[Path](), time.monotonic() + SECONDS
    path.write_bytes(OLD)
    for seed in range(ROUNDS):
        kill_while_writing(path, write_bytes, seed)
        assert path.read_bytes() in (OLD, NEW)
        left |= set(tmp_path.iterdir()) - {path}
        if time.monotonic() > end:
            break
    assert left, "no kill came in the middle of a write, so the test has shown nothing"
    assert all(name.name.startswith(".out.mlir.") and name.suffix == TEMPORARY for name in left)


def test_kill_tears_file_written_in_place(tmp_path: Path) -> None:
    """Killing a process tears a file that is written in place, so that the atomic case is meaningful."""
    path, end = tmp_path / "out.mlir", time.monotonic() + SECONDS
    path.write_bytes(OLD)
    for seed in range(ROUNDS):
        kill_while_writing(path, overwrite, seed)
        if path.read_bytes() not in (OLD, NEW):
            return
        assert time.monotonic() < end
    pytest.fail("no kill came in the middle of a write")


# No room.


def test_full_disk_keeps_the_old_file(source: Path, tmp_path: Path) -> None:
    """The old file is unchanged if a write fails halfway; a limit on the file size stands for a full disk."""
    output = tmp_path / "out.mlir"
    output.write_text("old")
    completed = subprocess.run(
        [sys.executable, "-m", "recompute.tools.recompute_opt", source, "-o", output],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50)),
        capture_output=True,
        text=True,
    )
    assert completed.returncode == 1
    assert completed.stderr == f"{output}: error: cannot write the file: File too large\n"
    assert output.read_text() == "old"
    assert set(tmp_path.iterdir()) == {output, source.parent}


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
def test_error_at_any_step_keeps_the_old_file(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    output = tmp_path / "out.mlir"
    output.write_text("old")
    monkeypatch.setattr(os, call, full)
    with pytest.raises(FileError, match=r"out\.mlir: error: cannot write the file: No space left on device"):
        write_text(str(output), "new")
    monkeypatch.undo()
    assert output.read_text() == "old"
    assert list(tmp_path.iterdir()) == [output]


def test_interrupt_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    output = tmp_path / "out.mlir"
    output.write_text("old")
    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(str(output), "new")
    assert output.read_text() == "old"
    assert list(tmp_path.iterdir()) == [output]


@on_linux
def test_full_device_gives_one_error_line(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused([str(source), "-o", "/dev/full"], capsys)
    assert line == "/dev/full: error: cannot write the file: No space left on device\n"


@on_linux
def test_full_standard_output_gives_one_error_line(source: Path) -> None:
    with open("/dev/full", "w") as full:
        completed = subprocess.run(
            [sys.executable, "-m", "recompute.tools.recompute_opt", source],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert completed.returncode == 1
    assert completed.stderr == "<stdout>: error: cannot write: No space left on device\n"


# The place.


def test_read_only_folder_gives_one_error_line(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "read-only"
    folder.mkdir()
    (folder / "out.mlir").write_text("old")
    folder.chmod(0o555)
    if os.access(folder, os.W_OK):
        pytest.skip("permissions do not bind this user; `below a file` shows the same error path")
    assert "cannot write the file: Permission denied" in refused([str(source), "-o", str(folder / "out.mlir")], capsys)
    assert (folder / "out.mlir").read_text() == "old"


@on_linux
def test_folder_without_room_for_files_is_reported(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that accepts no files, not even from root, is reported."""
    line = refused([str(source), "-o", "/proc/out.mlir"], capsys)
    assert line.startswith("/proc/out.mlir: error: cannot write the file: ")


PLACES: dict[str, tuple[str, str]] = {
    "below a file": ("in/step.mlir/out.mlir", "Not a directory"),
    "a missing folder": ("no/such/out.mlir", "No such file or directory"),
    "a folder": ("in", "Is a directory"),
    "a link to itself": ("loop", "[Ll]oop|symbolic links"),
    "a link into a missing folder": ("nowhere", "No such file or directory"),
    "a name that is too long": ("n" * 300, "File name too long"),
}


@pytest.mark.parametrize("name", PLACES)
def test_impossible_output_paths_are_rejected(
    name: str, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where, why = PLACES[name]
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("no/such/folder")
    before = sorted(tmp_path.rglob("*"))
    line = refused([str(source), "-o", str(tmp_path / where)], capsys)
    assert line.startswith(f"{tmp_path / where}: error: cannot write the file: ")
    assert re.search(why, line)
    assert source.read_text() == MODULE
    assert sorted(tmp_path.rglob("*")) == before


def test_output_may_be_a_symbolic_link(source: Path, tmp_path: Path) -> None:
    """The target of a symbolic link is replaced, not the link. A link to the input is recognized as the input."""
    link, other = tmp_path / "link", tmp_path / "new"
    link.symlink_to("in/step.mlir")
    other.symlink_to("in/other.mlir")
    assert main([str(source), "-o", str(link)]) == 0
    assert main([str(source), "-o", str(other)]) == 0
    assert link.is_symlink() and other.is_symlink()
    assert source.read_text() == (tmp_path / "in" / "other.mlir").read_text() != MODULE
    assert sorted(path.name for path in source.parent.iterdir()) == ["other.mlir", "step.mlir"]


def test_mode_is_kept_and_longest_name_is_accepted(source: Path, tmp_path: Path) -> None:
    output = tmp_path / ("n" * 250)
    output.write_text("old")
    output.chmod(0o640)
    assert main([str(source), "-o", str(output)]) == 0
    assert output.stat().st_mode & 0o777 == 0o640
    assert "func.func @f" in output.read_text()


def test_error_before_writing_keeps_the_output(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file is unchanged if input and output are the same and a pass fails."""
    assert "no gradient found" in refused([str(source), "-p", "recompute", "-o", str(source)], capsys)
    assert source.read_text() == MODULE


def spellings(path: Path) -> list[str]:
    """Return different names of the same file."""
    linked, hard = path.with_name("linked"), path.with_name("hard")
    path.touch()
    linked.symlink_to(path)
    hard.hardlink_to(path)
    return [
        str(path),
        f"{path.parent}/./{path.name}",
        f"{path.parent}/../{path.parent.name}/{path.name}",
        str(linked),
        str(hard),
    ]


def test_plan_and_program_must_be_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "source.mlir"
    source.write_text(MODULE)
    for name in spellings(tmp_path / "out"):
        assert main([str(source), "-p", "recompute", "--emit-plan", str(tmp_path / "out"), "-o", name]) == 2
        assert "-o and --emit-plan both name" in capsys.readouterr().err
        assert (tmp_path / "out").read_text() == ""
    assert main([str(source), "-p", "recompute", "--emit-plan", "-"]) == 2


def test_different_names_of_one_file_are_detected(tmp_path: Path) -> None:
    for name in spellings(tmp_path / "a"):
        with pytest.raises(ValueError, match="both name"):
            demand_different_files({"-o": name, "--other": str(tmp_path / "a")})
    demand_different_files({"-o": str(tmp_path / "a"), "--other": str(tmp_path / "b"), "--more": None})
    demand_different_files({"-o": "/dev/null", "--other": "/dev/null"})


@on_linux
@pytest.mark.parametrize("bad", ["/dev/full", "missing/plan"])
def test_plan_is_written_only_with_its_program(bad: str, tmp_path: Path) -> None:
    """Plan and program are written together or not at all."""
    good = tmp_path / "good"
    good.write_text("old")
    bad = bad if bad.startswith("/") else str(tmp_path / bad)
    for outputs in ([(str(good), b"new"), (bad, b"data")], [(bad, b"data"), (str(good), b"new")]):
        with pytest.raises(FileError, match="cannot write the file"):
            write_outputs(outputs)
        assert good.read_text() == "old"
        assert [path.name for path in tmp_path.iterdir()] == ["good"]
    write_outputs([(str(good), b"new"), (str(tmp_path / "plan"), b"data")])
    assert good.read_text() == "new" and (tmp_path / "plan").read_bytes() == b"data"
