"""The commit hook accepts valid messages and rejects invalid ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from recompute.test.imports import ROOT

HOOK = ROOT / ".githooks" / "commit-msg"
BODY = "\n\nIt was cut into steps whose residuals all cross.\n"
ACCEPTED = [
    f"Copy each block again{BODY}",
    f"Seed the search{BODY}",
    f"{'W' * 72}{BODY}",
    f"Copy each block again{BODY}# Changes to be committed:\n",
    "Merge branch 'other'",
]
REFUSED = {
    f"{'W' * 73}{BODY}": "the subject has 73 characters, more than 72",
    f"Copied each block again{BODY}": "the subject is not imperative: 'Copied'",
    f"Copying each block again{BODY}": "the subject is not imperative: 'Copying'",
    f"copy each block again{BODY}": "the subject does not begin with a capital letter: 'copy'",
    f"Copy each block again.{BODY}": "the subject ends with a full stop",
    "Copy each block again": "there is no body that says why",
    "Copy each block again\n\n# Changes to be committed:\n": "there is no body that says why",
    "Copy each block again\nfor each gradient": "the line behind the subject is not empty",
    "# nothing\n": "the subject is empty",
}


def checked(message: str, path: Path) -> subprocess.CompletedProcess[str]:
    path.write_text(message)
    return subprocess.run([sys.executable, HOOK, path], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("message", ACCEPTED)
def test_valid_messages_are_accepted(message: str, tmp_path: Path) -> None:
    result = checked(message, tmp_path / "message")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("message", REFUSED)
def test_invalid_messages_are_rejected(message: str, tmp_path: Path) -> None:
    result = checked(message, tmp_path / "message")
    assert result.returncode == 1
    assert f"commit message: {REFUSED[message]}\n" in result.stderr
