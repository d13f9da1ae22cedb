"""The files and tests that mutation testing names exist."""

from __future__ import annotations

import pytest

from recompute.test.mutation.run import ROOT, TESTS


@pytest.mark.parametrize("source", TESTS)
def test_mutated_files_and_their_tests_exist(source: str) -> None:
    assert (ROOT / source).is_file()
    assert [test for test in TESTS[source] if not (ROOT / "test" / test.partition("::")[0]).exists()] == []
