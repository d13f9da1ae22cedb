"""Measurements of a real system for one case, from the output of its two runs."""

from __future__ import annotations

from pathlib import Path

from recompute.test.conformance import mindspore_graph
from recompute.test.conformance.cases import OWN_NUMBERS, Case
from recompute.test.conformance.environments import SYSTEMS, Run, run
from recompute.test.conformance.measures import Array, Measures, absolute_change, relative_change


def measure(case: Case, folder: Path) -> tuple[Measures, list[Array]]:
    """Return the measurements, and the inputs of the recomputed run."""
    system = SYSTEMS[case.system]
    plain, recomputed = (run(system, case.name, options, folder) for options in ("plain", "recomputed"))
    result = of_mindspore if case.system == "mindspore" else of_paddle
    return result(case, plain, recomputed), recomputed.inputs


def of_mindspore(case: Case, plain: Run, recomputed: Run) -> Measures:
    graphs = [mindspore_graph.read_graph(ran.dump) for ran in (plain, recomputed)]
    peaks = [mindspore_graph.peak_bytes(ran.log) for ran in (plain, recomputed)]
    tokens, empty = mindspore_graph.gates(graphs[1])
    large = all(peaks)
    return Measures(
        version=recomputed.numbers["version"],
        clones=mindspore_graph.clones(graphs[1]),
        gates=tokens,
        empty_gates=empty,
        held=(mindspore_graph.held(graphs[0]), mindspore_graph.held(graphs[1])),
        peak_bytes=(peaks[0] or 0, peaks[1] or 0) if large else None,
        gradient_change=None if case.draws else relative_change(_gradients(case, plain), _gradients(case, recomputed)),
        mask_mismatches=recomputed.numbers.get("mask_mismatches"),
        running_stat_error=_statistics(case, plain, recomputed),
        results=tuple(recomputed.results),
        why_not={"peak_bytes": "the pool reports whole MiB", "gradient_change": OWN_NUMBERS},
    )


def of_paddle(case: Case, plain: Run, recomputed: Run) -> Measures:
    before, after = plain.numbers, recomputed.numbers
    return Measures(
        version=after["version"],
        clones=after.get("clones"),
        clones_after_cse=after.get("clones_after_cse"),
        held=(before["held"], after["held"]) if "held" in after else None,
        peak_bytes=(before["peak_bytes"], after["peak_bytes"]) if "peak_bytes" in after else None,
        gradient_change=relative_change(_gradients(case, plain), _gradients(case, recomputed)),
        mask_mismatches=after.get("mask_mismatches"),
        running_stat_error=_statistics(case, plain, recomputed),
        results=tuple(recomputed.results[: after.get("results")]),
        why_not={
            "gates": "it has none: the order of the program is all",
            "empty_gates": "it has none",
            "": "eager execution has no graph to count in",
        },
    )


def _gradients(case: Case, ran: Run) -> list[Array]:
    """Return loss and gradients: all results except the running statistics."""
    statistics = _statistic_indices(case, ran)
    return [array for index, array in enumerate(ran.results) if index not in statistics]


def _statistics(case: Case, plain: Run, recomputed: Run) -> float | None:
    indices = _statistic_indices(case, plain)
    if not case.statistics:
        return None
    return absolute_change(*([ran.results[index] for index in indices] for ran in (plain, recomputed)))


def _statistic_indices(case: Case, ran: Run) -> list[int]:
    """Return the indices of the running statistics. Paddle appends them to the results that it counts."""
    if not case.statistics or case.system == "mindspore":
        return list(case.statistics)
    return list(range(ran.numbers.get("results", 0), len(ran.results)))
