"""The result for a graph file, as JSON: copies by the ids of their nodes.

    {"recompute_copies": 1, "graph": "gpt", "budget_bytes": …, "peak_bytes": …, "extra_cost": …, "extra_percent": …,
     "bound_percent": …, "bound_by": "…", "solver": "…", "finished": true,
     "copies": [{"operation": "17", "before": "1841"}, …]}

`before`: the node in front of which the operation runs again, or `end`; nodes `copy:<id>` are copies of views.
"""

from __future__ import annotations

import json

from .result import Result

VERSION = 1


def result_text(result: Result, graph: str) -> str:
    problem = result.problem
    labels = (*problem.labels, "end")
    head = {
        "recompute_copies": VERSION,
        "graph": graph,
        "budget_bytes": result.budget,
        "peak_bytes": result.peak_bytes,
        "extra_cost": result.extra_cost,
        "extra_percent": result.percent,
        "bound_percent": result.bound_percent,
        "bound_by": result.bound_by,
        "solver": result.solver,
        "finished": result.finished,
    }
    copies = [json.dumps({"operation": labels[op], "before": labels[t]}) for t, op in sorted(result.pairs)]
    return json.dumps(head)[:-1] + ', "copies": [\n' + ",\n".join(copies) + "\n]}\n"
