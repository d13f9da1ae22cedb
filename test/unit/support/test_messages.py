"""Parts of messages: numbers with their noun, and similar names."""

from __future__ import annotations

from recompute.support.counted import counted, counted_are
from recompute.support.suggestions import similar_names


def test_nouns_agree_with_their_number():
    assert [counted(count, "more segment") for count in (0, 1, 2)] == [
        "0 more segments",
        "1 more segment",
        "2 more segments",
    ]
    assert counted(2, "copy", "copies") == "2 copies"


def test_verbs_agree_with_their_number() -> None:
    assert [counted_are(count, "operation") for count in (0, 1, 2)] == [
        "0 operations are",
        "1 operation is",
        "2 operations are",
    ]


def test_similar_names_are_in_order_of_similarity():
    """Similar names are sorted by similarity, and equally similar names by program order."""
    names = ["layer0", "layer1", "layer2", "lyr", "head"]
    assert similar_names("layerx", names) == ["layer0", "layer1", "layer2"]
    assert similar_names("layer2x", names) == ["layer2", "layer0", "layer1"]
    assert similar_names("q", names) == []
