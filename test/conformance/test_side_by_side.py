"""The comparison without the real systems: what it reads and counts, and how it fails."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from recompute.test.conformance import mindspore_graph, ours_measured, side_by_side
from recompute.test.conformance.cases import CASES, Case
from recompute.test.conformance.environments import SYSTEMS, CaseFailed, System, run
from recompute.test.conformance.measures import Measures, relative_change, shown
from recompute.test.conformance.side_by_side import Comparison, table

# Two cells sin, exp as MindSpore writes them: one gate that waits for nothing, one for the gradient %7.
DUMP = """
  %0(CNode_1) = PrimFunc_Sin(%para1_x) cnode_attrs: {recompute: Bool(1)} cnode_primal_attrs: {unique_id: "1"}
      # Fullname with scope: (recompute_Default/0-Chain/Sin-op0)
  %1(CNode_2) = PrimFunc_Exp(%0) cnode_attrs: {recompute: Bool(0)}
      # Fullname with scope: (recompute_Default/0-Chain/Exp-op0)
  %2(CNode_3) = MakeTuple()
      # Fullname with scope: (Default/MakeTuple-op0)
  %3(CNode_4) = Depend(%para1_x, %2) cnode_attrs: {recompute_depend: Bool(1)}
      # Fullname with scope: (Default/Depend-op0)
  %4(CNode_5) = PrimFunc_Sin(%3) cnode_attrs: {recompute_sub_graph: U64(0), duplicated: Bool(1)}
      # Fullname with scope: (recompute_Default/0-Chain/Sin-op1)
  %7(CNode_6) = PrimFunc_Mul(%4, %1) cnode_attrs: {target_grad: Bool(1)}
      # Fullname with scope: (Gradients/recompute_Default/0-Chain/Grad_Exp/Mul-op0)
  %8(CNode_7) = MakeTuple(%7)
      # Fullname with scope: (Default/MakeTuple-op1)
  %9(CNode_8) = Depend(%para1_x, %8) cnode_attrs: {recompute_depend: Bool(1)}
      # Fullname with scope: (Default/Depend-op1)
"""


def test_mindspore_dump_is_parsed(tmp_path: Path) -> None:
    (tmp_path / "31_validate_0035.ir").write_text(DUMP)
    graph = mindspore_graph.read_graph(tmp_path)
    assert mindspore_graph.clones(graph) == 1
    assert mindspore_graph.gates(graph) == (2, 1)
    # %1 is read by the gradient; the original %0 is not.
    assert mindspore_graph.held(graph) == 1


def test_peak_is_the_highest_in_the_log() -> None:
    log = "x peak used mem:62M, in used\ny peak used mem:8M\nActual peak memory usage: none"
    assert mindspore_graph.peak_bytes(log) == 62 * 2**20
    assert mindspore_graph.peak_bytes("nothing") is None


def test_every_counterpart_has_a_net_and_ours_is_measured() -> None:
    for case in CASES:
        assert (ours_measured.NETS / f"{case.net}.mlir").exists() if case.net else case.without
    case = next(case for case in CASES if case.name == "dropout")
    measurement = ours_measured.measure(case, [])
    assert (
        measurement.mask_mismatches == 0 and measurement.clones and measurement.gates and measurement.empty_gates == 0
    )
    assert measurement.gradient_change == 0


def test_differences_are_relative_to_the_largest_number() -> None:
    assert relative_change([np.array([0.0, 4.0])], [np.array([1.0, 4.0])]) == 0.25
    assert relative_change([], []) is None


def test_missing_measure_shows_its_reason() -> None:
    measures = Measures(peak_bytes=(2**21, 100), why_not={"gates": "it has none", "": "eager"})
    assert shown(measures, "gates") == "n/a: it has none"
    assert shown(measures, "held") == "n/a: eager"
    assert shown(measures, "peak_bytes") == "2 MiB → 100 B"


def test_difference_beyond_the_tolerance_fails() -> None:
    case = Case("one", "paddle", "a test", "layers", compared=1)
    theirs, ours = (Measures(results=(np.array([value]),)) for value in (1.0, 1.001))
    assert not Comparison(case, theirs, ours).agrees
    assert Comparison(case, theirs, theirs).agrees
    assert "DIFFERENT beyond 1e-05" in list(table([Comparison(case, theirs, ours)]))[-1]


def fake_python(folder: Path, says: str) -> None:
    """Create an environment whose interpreter only fails with this message."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 3\n")
    (folder / "bin" / "python").chmod(0o755)


def test_missing_network_prints_one_line_and_exits_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_python(tmp_path / "venv", "ERROR: No matching distribution found")
    monkeypatch.setattr(sys, "executable", "true")
    monkeypatch.setitem(SYSTEMS, "paddle", System("not-there==1.0", str(tmp_path / "venv"), "paddle_run.py", {}))
    assert side_by_side.main(["--only", "layers"]) == 1
    assert capsys.readouterr().err == "error: cannot install not-there==1.0: ERROR: No matching distribution found\n"
    assert not (tmp_path / "venv" / ".installed").exists()


def test_failing_case_is_named(tmp_path: Path) -> None:
    fake_python(tmp_path / "venv", "AssertionError: no")
    with pytest.raises(CaseFailed, match="layers, plain: AssertionError: no"):
        run(System("x", str(tmp_path / "venv"), "paddle_run.py", {}), "layers", "plain", tmp_path)
