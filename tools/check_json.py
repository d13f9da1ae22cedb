"""The verdict of `recompute-check --json`: one object in one line for each pair of programs.

    {"verdict": "not proved", "reason": "result #0 of @f differs: …", "where": "result #0 of @f", "before":
     "stablehlo.sine at a.mlir:2:8", "after": "stablehlo.cosine at b.mlir:2:8", "path": [], "locations": [{"file":
     "a.mlir", "line": 2, "column": 8}, …], "hint": "", "assumptions": [], …, "exit_code": 1}

`docs/command_line.md` lists the fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..proof.verdicts.verdict import Proof
from .execution import Execution

_LOCATION = re.compile(r"\bat (?P<file>[^\s,;()]+?):(?P<line>\d+):(?P<column>\d+)")


def json_verdict(proof: Proof, hint: str, execution: Execution | None, exit_code: int) -> str:
    """Return the verdict on a pair of programs as a JSON object in one line.

    Args:
        proof: The result of the proof.
        hint: The declaration that may make the proof succeed; "" if there is none.
        execution: The comparison of the results; None if the programs are not executed.
        exit_code: The exit code for this pair.
    """
    difference = proof.difference
    verdict: dict[str, Any] = {
        "verdict": "proved" if proof.proved else "not proved",
        "reason": proof.reason,
        "where": proof.where,
        "before": "" if difference is None else difference.before,
        "after": "" if difference is None else difference.after,
        "path": [] if difference is None else list(difference.path),
        "locations": _locations(proof.reason),
        "hint": hint,
        "assumptions": list(proof.assumptions),
        "rules_for_loops": proof.tier == 2,
        "same_text": proof.identical,
    }
    if proof.proved:
        verdict |= {
            "results": proof.results,
            "operations_before": proof.operations_before,
            "operations_after": proof.operations_after,
        }
    if execution is not None:
        verdict["execution"] = _execution(execution)
    return json.dumps(verdict | {"exit_code": exit_code})


def _locations(reason: str) -> list[Mapping[str, str | int]]:
    """Return the positions that a reason names, in order of occurrence and without duplicates."""
    positions = dict.fromkeys(
        (match["file"], int(match["line"]), int(match["column"])) for match in _LOCATION.finditer(reason)
    )
    return [{"file": file, "line": line, "column": column} for file, line, column in positions]


def _execution(execution: Execution) -> Mapping[str, Any]:
    verdict = "different" if not execution.equal else "equal" if execution.stopped_after is None else "stopped"
    record: dict[str, Any] = {"verdict": verdict, "inputs": [kind for kind, _ in execution.runs]}
    last = execution.runs[-1][1].difference if execution.runs else None
    if last is None:
        return record
    return record | {
        "result": last.result,
        "index": list(last.index),
        "before": last.before,
        "after": last.after,
        "elements": last.elements,
    }
