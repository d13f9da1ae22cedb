"""Scopes that become segments, and detection of scopes that are entered again."""

from __future__ import annotations

import pytest

from recompute.analysis.request.segments import MAX_SCOPES, NoSuchSegment, find_segments
from recompute.analysis.step.order import functions_of
from recompute.analysis.step.phases import Phases, phases
from recompute.mlir_io.parser import parse_module


def step(*paths: str) -> Phases:
    """Return a chain with one operation for each forward path, and one gradient operation."""
    lines = [
        f'  %{i + 1} = stablehlo.sine %{i} : tensor<4xf32> loc("jit(f)/jvp({path})/sin{place or i}")'
        for i, (path, _, place) in enumerate(path.partition("@") for path in paths)
    ]
    last = len(paths)
    module = parse_module(
        "func.func @f(%0: tensor<4xf32>) -> tensor<4xf32> {\n"
        + "\n".join(lines)
        + f'\n  %g = stablehlo.negate %{last} : tensor<4xf32> loc("jit(f)/transpose(jvp())/neg")\n'
        + "  func.return %g : tensor<4xf32>\n}\n"
    )
    actual = phases(functions_of(module)[0])
    assert actual is not None
    return actual


def segments(paths: tuple[str, ...], pattern: str = "auto") -> list[str]:
    """Return the segment of each forward operation, in program order; "" for none."""
    results = step(*paths)
    chosen = find_segments(results, pattern)
    return [chosen.get(op, "") for op in results.order.operations if results.is_forward(op)]


def test_outermost_scopes_are_segments() -> None:
    assert segments(("a", "a", "b", "")) == ["a", "a", "b", ""]


def test_scopes_below_a_dominant_scope_are_segments() -> None:
    paths = ("model/a",) * 10 + ("model/b",) * 10 + ("loss",)
    assert set(segments(paths)) == {"model/a", "model/b", ""}


def test_without_a_dominant_scope_outermost_scopes_are_segments() -> None:
    assert set(segments(("model/a", "model/b", "loss", "loss"))) == {"model", "loss"}


def test_does_not_descend_into_repeated_layer() -> None:
    """A layer is recognized by repeated source positions, whatever its share of the step."""
    layer = tuple(f"layer/{part}@{part}" for part in ("attention", "mlp"))
    assert segments(layer * 3) == ["layer"] * 2 + ["layer#1"] * 2 + ["layer#2"] * 2


def test_loop_inside_scope_is_no_repetition() -> None:
    """A scope is one entry if one source position occurs three times and the others once."""
    assert segments(("a@q", "a@q", "a@q", "a@r", "a@s", "b")) == ["a"] * 5 + ["b"]


def test_unrolled_loop_inside_scope_is_no_repetition() -> None:
    """A scope is one entry if its repeated source positions lie between positions that occur once."""
    trip = ("a@q", "a@r", "a@s")
    assert segments(("a@first", *trip * 3, "a@last", "b")) == ["a"] * 11 + ["b"]


@pytest.mark.parametrize(("first", "last"), [(("a@once",), ()), ((), ("a@once",))])
def test_layers_repeat_despite_extra_operations_at_ends(first: tuple[str, ...], last: tuple[str, ...]) -> None:
    """The entries of a layer are separate even if the first or the last entry has more operations."""
    trip = ("a@q", "a@r", "a@s")
    result = segments((*first, *trip * 2, *last))
    assert result == ["a"] * (3 + len(first)) + ["a#1"] * (3 + len(last))


@pytest.mark.parametrize("pattern", ["block*", "model/block*", "block[01]"])
def test_patterns_match_a_path_or_its_last_name(pattern: str) -> None:
    paths = ("model/block0/attn", "model/block1/attn", "model/head")
    assert segments(paths, pattern) == ["model/block0", "model/block1", ""]


def test_error_of_unmatched_pattern_names_the_scopes() -> None:
    with pytest.raises(NoSuchSegment, match=r"no segment matches 'layer\*'; the scopes are: a, a/x, b"):
        segments(("a/x", "b"), "layer*")


def test_error_of_misspelt_pattern_names_similar_scopes() -> None:
    paths = [f"Net/blocks{number}/dense" for number in range(20)]
    message = str(NoSuchSegment("blokcs*", tuple(path.removesuffix("/dense") for path in paths)))
    assert message.startswith("no segment matches 'blokcs*'; similar segments are: blocks")
    assert message.count(", ") == MAX_SCOPES - 1
    message = str(NoSuchSegment("xyz", tuple(paths)))
    assert message.endswith("Net/blocks9/dense and 10 more") and message.count(", ") == MAX_SCOPES - 1
