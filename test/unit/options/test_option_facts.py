"""The signatures of the entry points agree with the options that the dataclasses declare for them."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from xdsl.passes import ModulePass

from recompute.driver.option_checks import OPTION_CHECKS
from recompute.driver.pipelines.pipeline import passes_of
from recompute.options.keywords import CommonKeywords, RewriteKeywords, SelectionKeywords
from recompute.options.option_facts import EntryPoint, option_facts_of, options_with
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.rewriting.plan import PlanPass
from recompute.rewriting.recompute import RecomputePass
from recompute.universe import PASSES, TARGETS

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("pass_class", "entry_point"),
    [(RecomputePass, EntryPoint.RECOMPUTE_PASS), (PlanPass, EntryPoint.PLAN_PASS)],
)
def test_passes_have_the_declared_options(pass_class: type[ModulePass], entry_point: EntryPoint) -> None:
    # The plan of a pass is the name of a file, which is empty without one.
    own = {field.name: field.default or None for field in fields(pass_class)}
    declared = {field.name: field.default or None for field in options_with(RecomputeOptions, entry_point)}
    assert own.keys() - {field.name for field in fields(Selection)} == declared.keys()
    assert {name: own[name] for name in declared} == declared


def test_jit_has_the_declared_options() -> None:
    pytest.importorskip("jax", reason="the frontend for JAX")
    from recompute.frontends.jax.keywords.keywords import OWN_KEYWORDS

    declared = {field.name for field in options_with(RecomputeOptions, EntryPoint.JIT)}
    assert CommonKeywords.__annotations__.keys() == declared
    assert {*declared, *(field.name for field in fields(Selection)), "measure", "search"} == OWN_KEYWORDS


def test_rewrite_accepts_every_option_as_a_keyword() -> None:
    every = {field.name for field in (*fields(Selection), *fields(RecomputeOptions))}
    assert RewriteKeywords.__annotations__.keys() == every
    assert every <= OPTION_CHECKS.keys()
    assert SelectionKeywords.__annotations__.keys() == {field.name for field in fields(Selection)} - {"policy"}


def test_torch_has_the_declared_options() -> None:
    """The keywords are read from the source, because torch may be missing."""
    tree = ast.parse((ROOT / "frontends" / "torch" / "partition" / "options.py").read_text())
    (keywords,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Keywords")
    names = {ast.unparse(line.target) for line in keywords.body if isinstance(line, ast.AnnAssign)}
    declared = {field.name for field in options_with(RecomputeOptions, EntryPoint.TORCH)}
    assert names - {field.name for field in fields(Selection)} == {*declared, "reserve"}


def test_integer_options_have_the_expected_minimum() -> None:
    minima = {
        field.name: option_facts_of(field).minimum
        for field in (*fields(Selection), *fields(RecomputeOptions))
        if option_facts_of(field).minimum is not None
    }
    assert minima == {"segment_count": 0, "copies": 1, "attempts": 1, "workers": 1}
    with pytest.raises(ValueError, match="copies must be at least 1, not 0"):
        RecomputeOptions(copies=0)


@pytest.mark.parametrize("name", [*PASSES, *TARGETS])
def test_float_option_accepts_a_whole_number(name: str) -> None:
    """A float option accepts `60`, although xDSL reads it as an int."""
    kind = ({**PASSES, **TARGETS})[name]()
    types: list[Any] = [str(field.type).split(" | ") for field in fields(kind)]
    assert all("int" in alternatives for alternatives in types if "float" in alternatives)


def test_time_limit_accepts_whole_seconds() -> None:
    for text in ("60", "0.5"):
        (parsed,) = passes_of(f"recompute{{budget=min time-limit={text}}}")
        assert isinstance(parsed, RecomputePass)
        assert RecomputeOptions.of_pass(parsed).time_limit == float(text)
    with pytest.raises(ValueError, match="option 'time-limit' expects a number, not fast"):
        passes_of("recompute{time-limit=fast}")
