"""Signatures, which group similar findings."""

from __future__ import annotations

import difflib
import re

_SECTION = re.compile(r"(?m)^--- .*\n")
_TOKEN = re.compile(r'"[^"]*"|[\w.$]+')
_OPERATION = re.compile(r'"([a-z_]+\.[\w.]+)"\(|\b([a-z_]+\.\w+) ')


def signature(words: str) -> str:
    """Return the end of a traceback, the first difference of two texts, or the message itself."""
    if words.startswith("Traceback"):
        return _traceback(words.rstrip().splitlines())
    sections = [part.strip() for part in _SECTION.split(words)[1:]]
    if len(sections) >= 2 and sections[-1] != sections[-2]:
        return _first_difference(*sections[-2:])
    lines = [line for line in words.splitlines() if line.strip()]
    message = [line for line in lines if "error" in line] or _SECTION.split(words)[0].strip().splitlines()[-1:] or [""]
    return _masked(message[0].strip())


def _traceback(lines: list[str]) -> str:
    frames = [line for line in lines if line.lstrip().startswith("File ")]
    where = frames[-1].rpartition("/")[2].replace('"', "") if frames else ""
    return f"{_masked(lines[-1])} at {re.sub(r', line [0-9]+', '', where)}"


def _first_difference(first: str, other: str) -> str:
    lines = difflib.unified_diff(first.splitlines(), other.splitlines(), n=0, lineterm="")
    changed = [line for line in lines if line[0] in "+-" and not line.startswith(("+++", "---"))]
    gone = next((line for line in changed if line[0] == "-"), "")
    come = next((line for line in changed if line[0] == "+"), "")
    names = _OPERATION.search(gone or come)
    tokens = set(_TOKEN.findall(gone)) ^ set(_TOKEN.findall(come))
    differing = " ".join(sorted(map(_masked, tokens))[:4])
    return f"{(names[1] or names[2]) if names else 'text'}: {differing}"[:110]


def _masked(text: str) -> str:
    return re.sub(r"0x[0-9A-Fa-f]+|\d+|%[\w.]+", "N", text)[:110]
