"""The console scripts answer requests that need no dialect at once, and pass on all others."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

TOOLS = ("opt", "check", "run", "plan")


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


@pytest.mark.parametrize("tool", TOOLS)
def test_version_loads_no_dialect(tool: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = f"import sys\nsys.argv = ['x', '--version']\nfrom recompute.tools.start import {tool}\n{tool}()"
    quick = run(f"{program}\nassert not {{'xdsl', 'numpy', 'argparse'}} & sys.modules.keys()")
    assert quick.returncode == 0, quick.stderr
    with pytest.raises(SystemExit):
        import_module(f"recompute.tools.recompute_{tool}").main(["--version"])
    assert quick.stdout == capsys.readouterr().out and quick.stdout.startswith(f"recompute-{tool} ")


def test_other_requests_are_passed_on() -> None:
    results = run("import sys\nsys.argv = ['x', '--nonsense']\nfrom recompute.tools.start import opt\nopt()")
    assert results.returncode == 2 and "unknown option '--nonsense'" in results.stderr
