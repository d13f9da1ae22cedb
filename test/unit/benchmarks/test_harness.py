"""The parts that benchmarks share: arguments, tables that are printed while rows are measured, and rows of budgets."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from recompute.benchmarks.harness.budget_rows import MAX_COMPILES, BudgetRow, RequestedBudget
from recompute.benchmarks.harness.command_line import (
    add_json,
    add_names,
    add_only,
    add_shares,
    benchmark_parser,
    report_missed,
    selected,
)
from recompute.benchmarks.harness.growth_exponent import growth_exponent
from recompute.benchmarks.harness.row_printer import print_rows

MODELS = ("gpt6", "gpt12", "unet")


def parser() -> ArgumentParser:
    result = benchmark_parser("Measure models.")
    add_names(result, "step", ("chain", "mlp"))
    add_only(result, "model", MODELS)
    add_shares(result, (0.8, 0.6))
    add_json(result)
    return result


def parsed(*words: str) -> Namespace:
    return parser().parse_args(words)


def test_names_and_patterns_select_in_order() -> None:
    assert parsed().names == []
    assert parsed("mlp", "chain").names == ["mlp", "chain"]
    assert selected(MODELS, parsed("--only", "unet", "--only", "gpt*").only) == ["gpt6", "gpt12", "unet"]
    assert selected(MODELS, parsed().only) == list(MODELS)


def test_shares_are_numbers_separated_by_commas() -> None:
    assert parsed().shares == (0.8, 0.6)
    assert parsed("--shares", "0.5,0.25").shares == (0.5, 0.25)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["loop"], "unknown step 'loop': choose from chain, mlp"),
        (["--only", "vit*"], "no model matches 'vit*': choose from gpt6, gpt12, unet"),
        (["--shares", "half"], "expected numbers"),
    ],
)
def test_wrong_argument_is_a_usage_error(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parsed(*words)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_missed_bars_give_exit_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_missed([]) == 0
    assert report_missed(["chain: too large"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "all requirements are met",
        "missed: chain: too large",
        "1 requirement is not met",
    ]


@dataclass(frozen=True)
class MeasuredRow:
    name: str
    size: int


def test_rows_are_printed_and_written_while_they_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.json"

    def measure() -> Iterator[MeasuredRow]:
        yield MeasuredRow("a", 1)
        assert capsys.readouterr().out.splitlines() == ["| name | size |", "|---|---|", "| a | 1 |"]
        assert json.loads(file.read_text()) == [{"name": "a", "size": 1}]
        yield MeasuredRow("b", 2)

    rows = print_rows(("name", "size"), measure(), lambda row: (row.name, row.size), file)
    assert [row.name for row in rows] == ["a", "b"]
    assert len(json.loads(file.read_text())) == 2


def test_exponent_of_linear_and_quadratic_growth() -> None:
    assert growth_exponent((10, 1000), (2, 200)) == pytest.approx(1)
    assert growth_exponent((10, 1000), (2, 20_000)) == pytest.approx(2)


WITHIN = BudgetRow("chain", "0.8", 0.8, 0.75, 1.1, None, 2, 3.0)
AT_CHECKPOINT = replace(WITHIN, budget="jax.checkpoint", theirs=1.2)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (WITHIN, []),
        (AT_CHECKPOINT, []),
        (replace(WITHIN, needs=0.81), ["chain, budget 0.8: 0.810 of the plain step's temporaries", "allowed 0.800"]),
        (replace(WITHIN, compiles=MAX_COMPILES + 1), [f"more than {MAX_COMPILES}"]),
        (replace(WITHIN, needs=None, work=None, refused="no plan"), []),
        (replace(AT_CHECKPOINT, needs=None, work=None, refused="no plan"), ["refused, although the step with"]),
        (replace(AT_CHECKPOINT, work=1.3), ["1.3 × the plain step's FLOPs, but 1.2 with jax.checkpoint"]),
    ],
)
def test_each_bar_of_a_budget_can_be_missed(row: BudgetRow, words: list[str]) -> None:
    missed = list(row.missed())
    assert len(missed) == bool(words)
    assert all(word in missed[0] for word in words)


def test_cells_of_a_budget_are_shares() -> None:
    assert WITHIN.cells() == ["chain", "0.8", "0.800", "0.750", "0.938", "1.100", "", "2", "3", ""]
    refused = replace(WITHIN, needs=None, work=None, refused="no plan")
    assert refused.cells() == ["chain", "0.8", "0.800", "", "", "", "", "2", "3", "no plan"]


def test_budget_of_jax_checkpoint_includes_all_of_its_bytes() -> None:
    request = RequestedBudget.of_checkpoint(1 / 3, 1.2)
    assert request.allowed is not None and request.allowed * 3 >= 1
    assert request.argument == request.allowed and request.theirs == 1.2
