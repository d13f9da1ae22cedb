"""The state of the garbage collector is restored when a tool ends, whether it succeeds or fails."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from recompute.support.garbage import THRESHOLDS, rare_collections
from recompute.tools import recompute_check, recompute_opt


def test_collections_are_rare_inside_context() -> None:
    before = gc.get_threshold()
    with rare_collections():
        assert gc.get_threshold() == THRESHOLDS
    assert gc.get_threshold() == before


def test_collector_is_restored_after_tool_failure(tmp_path: Path) -> None:
    before, missing = gc.get_threshold(), str(tmp_path / "missing.mlir")
    assert recompute_opt.main([missing]) == 1 and recompute_check.main([missing, missing]) == 2
    with pytest.raises(SystemExit):
        recompute_check.main(["--no-such-option"])
    assert gc.get_threshold() == before


def test_tools_run_inside_the_context(tmp_path: Path) -> None:
    module, rules, seen = (tmp_path / name for name in ("m.mlir", "rules.py", "seen"))
    module.write_text("func.func @f() { func.return }")
    rules.write_text(f"import gc\nwith open({str(seen)!r}, 'a') as file:\n    print(gc.get_threshold(), file=file)\n")
    assert recompute_opt.main([str(module), "--load-rules", str(rules), "-o", str(tmp_path / "out.mlir")]) == 0
    assert recompute_check.main([str(module), str(module), "--load-rules", str(rules)]) == 0
    assert seen.read_text().splitlines() == [str(THRESHOLDS)] * 2
