"""Keys of the cache, and equality of a stored rewrite with a new one."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

import recompute
from recompute.analysis.step.direction import Direction
from recompute.analysis.step.phase_sources import PhaseSource, register_source
from recompute.analysis.step.phase_sources import registrations_undone as sources_undone
from recompute.driver.cache import cache_keys
from recompute.driver.cache.cache_keys import cache_key, options_key, own_version
from recompute.driver.cache.stored_rewrite import RewriteRecord, StoredRewrite, respell, spelling_of
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.selection import Selection
from recompute.proof import register_pure
from recompute.proof import registrations_undone as purity_undone
from recompute.proof.verdicts.verdict import Proof
from recompute.rules import pure, register, registrations_undone
from recompute.support.fingerprint import NoFingerprint
from recompute.support.remarks import Remark
from recompute.test.imports import ROOT

STEP = (ROOT / "examples" / "stablehlo" / "mlp.small.mlir").read_text()


def key(*parts: object) -> str:
    result = cache_key("rewrite", *parts)
    assert result is not None
    return result


def key_of_options(**fields: Any) -> str:
    return key(options_key(recompute.RecomputeOptions(**fields)))


def test_key_covers_input_kind_and_options(tmp_path: Path):
    file = tmp_path / "costs.json"
    file.write_text("{}")
    keys = [
        *(key(b"one"), key(b"two"), cache_key("plan", b"one"), key_of_options(), key_of_options(copies=3)),
        *(key_of_options(selection=Selection(segments="block*")), key_of_options(segment_budgets={"layer*": 0.3})),
        *(key_of_options(budget="50%"), key_of_options(loops="keep(50%)"), key_of_options(cost=str(file))),
    ]
    file.write_text("{ }")
    keys.append(key_of_options(cost=str(file)))
    assert len(set(keys)) == len(keys)
    assert key_of_options() == key_of_options()


def test_key_covers_registrations():
    def forward(op: Any) -> Direction | None:
        return None

    before = key(b"")
    with registrations_undone():
        register("acme.swish", pure())
        rules = key(b"")
        register("acme.swish", pure(flops=lambda op: 2))
        work = key(b"")
        register("acme.swish", pure(flops=lambda op: 3))
        more = key(b"")
    with purity_undone():
        register_pure("acme.swish")
        purity = key(b"")
    with sources_undone():
        register_source("acme", PhaseSource(forward, lambda op: "acme"))
        source = key(b"")
    assert len({before, rules, work, more, purity, source}) == 6
    assert key(b"") == before


def test_incomparable_options_have_no_key():
    unknown = object()
    with registrations_undone():
        register("acme.swish", pure(flops=lambda op: id(unknown)))
        assert cache_key("rewrite", b"") is None
    for options in (
        recompute.RecomputeOptions(planner=lambda graph: recompute.Plan()),
        recompute.RecomputeOptions(measure=lambda module: 0),
        recompute.RecomputeOptions(pipeline="recompute-inline"),
    ):
        with pytest.raises(NoFingerprint):
            options_key(options)


def test_key_covers_versions_and_numba(monkeypatch: pytest.MonkeyPatch):
    before = key(b"")
    versions = {**cache_keys.versions(), "xdsl": "0.0.1"}
    monkeypatch.setattr(cache_keys, "versions", lambda: versions)
    other = key(b"")
    monkeypatch.setattr(cache_keys, "is_compiled", lambda: None)
    assert len({before, other, key(b"")}) == 3


def test_version_changes_with_edited_sources(tmp_path: Path):
    root = tmp_path / "recompute"
    (root / "search").mkdir(parents=True)
    (root / "test").mkdir()
    for path in ("__init__.py", "search/choose.py", "test/test_it.py"):
        (root / path).write_text("a = 1\n")
    before = own_version(root)
    (root / "test" / "test_it.py").write_text("a = 2\n")
    assert own_version(root) == before
    (root / "search" / "choose.py").write_text("a = 2\n")
    assert own_version(root) != before


def test_version_of_a_wheel_is_its_digests(tmp_path: Path):
    """The version of a wheel consists of the digests in its record."""
    root, record = tmp_path / "recompute", tmp_path / "xdsl_recompute-0.1.0.dist-info" / "RECORD"
    root.mkdir()
    record.parent.mkdir()
    record.write_text("recompute/__init__.py,sha256=a,1\n")
    before = own_version(root)
    (root / "__init__.py").write_text("")
    assert own_version(root) == before
    record.write_text("recompute/__init__.py,sha256=b,1\n")
    assert own_version(root) != before


def test_stored_rewrite_equals_a_fresh_one():
    result = recompute.rewrite(STEP)
    placed = [Remark(op, f"remark on {op.name}") for op in result.module.walk()]
    futile = Remark(ModuleOp([]), "remark without a position", frees_nothing=True)
    fresh = replace(result, remarks=(*placed, futile))
    module, original = print_module(fresh.module, debuginfo=True), parse_module(STEP)
    record = RewriteRecord.from_json(json.loads(json.dumps(RewriteRecord.of(fresh).to_json())))
    stored = StoredRewrite(record, lambda: parse_module(module), lambda: original)
    assert fresh.copies > 0 and fresh.proof is not None
    assert stored.text == fresh.text and stored.plan_text == fresh.plan_text and stored.plans == fresh.plans
    assert list(map(str, stored.remarks)) == list(map(str, fresh.remarks))
    assert [remark.frees_nothing for remark in stored.remarks] == [*(False for _ in placed), True]
    assert (stored.proof, stored.copies, stored.extra_flops) == (fresh.proof, fresh.copies, fresh.extra_flops)
    assert stored.predicted_saving == fresh.predicted_saving
    assert stored.memory() == fresh.memory()
    with pytest.raises(AttributeError, match="'StoredRewrite' object has no attribute 'unknown'"):
        _ = stored.unknown  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType, reportAttributeAccessIssue]


def test_record_keeps_every_field_of_a_proof():
    others: dict[str, Any] = {
        "proved": True,
        "difference": None,
        "assumed_pure": ("acme.swish",),
        "composites": ("acme.gelu",),
    }
    values = {field.name: others.get(field.name, _non_default(field.default)) for field in fields(Proof)}
    proof = Proof(**values)
    record = RewriteRecord.of(replace(recompute.rewrite(STEP), proof=proof))
    assert RewriteRecord.from_json(json.loads(json.dumps(record.to_json()))).proof == proof


def _non_default(default: Any) -> Any:
    """A value that is not the default."""
    return not default if isinstance(default, bool) else default + 7 if isinstance(default, int) else "text"


def test_stored_rewrite_reads_its_module_once_on_demand():
    def fail() -> Any:
        raise AssertionError("nothing is read yet")

    stored = StoredRewrite(RewriteRecord.of(recompute.rewrite(STEP)), fail, fail)
    assert stored.copies and stored.predicted_saving
    with pytest.raises(AssertionError, match="nothing is read yet"):
        _ = stored.module


def test_spelling_keeps_attribute_order_and_value_names():
    """The stored text preserves the order of attributes and the names of values, which MLIR discards."""
    text = print_module(recompute.rewrite(STEP).module, debuginfo=True)
    module = parse_module(text)
    spelling = spelling_of(module)
    for op in module.walk():
        op.attributes = dict(sorted(op.attributes.items()))
        for result in op.results:
            result.name_hint = None
    assert print_module(module, debuginfo=True) != text
    assert print_module(respell(module, spelling), debuginfo=True) == text
