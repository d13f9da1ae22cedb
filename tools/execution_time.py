"""The report of `--timing`, in the form of MLIR's `--mlir-timing`."""

from __future__ import annotations

from collections.abc import Iterator

from ..support.timing import TimedPart

_RULE = f"==={'-' * 73}==="
_TITLE = "... Execution time report ..."
_LEAST_REST = 0.001
"""The remainder of a part gets a row if it is more than this share of the whole."""


def report(whole: TimedPart, display: str) -> str:
    """The time of each part of a run.

    Args:
        whole: The measured run.
        display: "tree" for parts inside of parts, "list" for parts in order of their own time.
    """
    seconds = whole.seconds or 1e-9
    rows = _tree(whole, 0, seconds) if display == "tree" else _list(whole)
    lines = [f"  {time:8.4f} ({100 * time / seconds:5.1f}%)  {name}" for time, name in rows]
    return "\n".join(
        [
            *(_RULE, f"{_TITLE:^{len(_RULE)}}".rstrip(), _RULE),
            f"  Total Execution Time: {whole.seconds:.4f} seconds",
            "",
            "  ----Wall Time----  ----Name----",
            *lines,
            f"  {whole.seconds:8.4f} (100.0%)  Total",
        ]
    )


def _tree(part: TimedPart, depth: int, whole: float) -> Iterator[tuple[float, str]]:
    for inner in part.parts.values():
        yield inner.seconds, "  " * depth + inner.name
        yield from _tree(inner, depth + 1, whole)
    if part.parts and part.rest_seconds > _LEAST_REST * whole:
        yield part.rest_seconds, "  " * depth + "Rest"


def _list(whole: TimedPart) -> list[tuple[float, str]]:
    """The parts by the time in them and in none of their own parts, the longest first."""
    seconds = dict[str, float]()

    def collect(part: TimedPart) -> None:
        for inner in part.parts.values():
            seconds[inner.name] = seconds.get(inner.name, 0.0) + inner.rest_seconds
            collect(inner)

    collect(whole)
    rows = [(time, name) for name, time in seconds.items()]
    return sorted([*rows, (whole.rest_seconds, "Rest")], key=lambda row: -row[0])
