"""Programs on which the passes have failed once; each file states the check, the request, and the reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from xdsl.transforms.dead_code_elimination import region_dce

from recompute.driver.verification.verified import parse_and_verify

from .checks import CHECKS, check, run
from .requests import Request, step_of

FOLDER = Path(__file__).parent / "found"
HEADER = re.compile(r"// check: (?P<check>.*)\n// request: segments=(?P<segments>.*) target=(?P<target>.*)\n")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.mlir")), ids=lambda path: path.stem)
def test_found_cases_pass_their_check(path: Path) -> None:
    text = path.read_text()
    header = HEADER.match(text)
    assert header is not None, "the first two lines say what is checked"
    module = parse_and_verify(text, path.name)
    request = Request(header["segments"], header["target"])
    if header["check"] == "copies":
        assert run(module, request).recomputation.copies > 0
    elif header["check"] == "dead code":
        living = module.clone()
        region_dce(step_of(living).body)
        assert run(module, request).recomputation.copies == run(living, request).recomputation.copies
    else:
        only = {name: first for name, first in CHECKS.items() if name == header["check"]}
        assert check(module, request, only).problems == ()
