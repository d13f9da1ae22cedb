"""Stock xDSL fails on each reproducer as docs/upstream.md states, and this project reads them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from recompute.driver.verification.verified import verify_module
from recompute.mlir_io.parser import parse_module

PAGE = Path(__file__).resolve().parents[3] / "docs" / "upstream.md"
_CASE = re.compile(
    r"^### (?P<title>.+?)\n\n```mlir\n(?P<text>.+?)```\n\nxDSL 0\.74: `(?P<words>.+?)`$", re.MULTILINE | re.DOTALL
)
CASES = {match["title"]: (match["text"], match["words"]) for match in _CASE.finditer(PAGE.read_text())}
# In a process of its own: importing this project repairs xDSL.
ALONE = """
import json, sys
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.parser import Parser

answers = []
for text in json.load(sys.stdin):
    context = Context(allow_unregistered=True)
    for name, factory in get_all_dialects().items():
        context.register_dialect(name, factory)
    try:
        Parser(context, text).parse_module().verify()
        answers.append("")
    except Exception as error:
        answers.append(f"{type(error).__name__}: {error}")
assert not any(name.split(".")[0] == "recompute" for name in sys.modules)
print(json.dumps(answers))
"""


def test_reproducers_are_found() -> None:
    assert len(CASES) == PAGE.read_text().count("\n### ") >= 8


def test_stock_xdsl_fails_as_the_page_states() -> None:
    texts = json.dumps([text for text, _ in CASES.values()])
    completed = subprocess.run([sys.executable, "-c", ALONE], input=texts, capture_output=True, text=True, check=True)
    for (title, (_, words)), answer in zip(CASES.items(), json.loads(completed.stdout), strict=True):
        assert words in answer, f"{title}: {answer or 'xDSL reads it now: remove the workaround and the section'}"


@pytest.mark.parametrize("title", CASES)
def test_upstream_case_is_parsed_and_verified(title: str) -> None:
    verify_module(parse_module(CASES[title][0], "upstream.mlir"))
