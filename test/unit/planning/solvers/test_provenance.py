"""The provenance of copies, as text."""

from recompute.planning.solvers.provenance import Improvement, Provenance


def test_steps_are_listed_in_order() -> None:
    provenance = (
        Provenance("greedy").with_improvement(Improvement.RUIN_AND_RECREATE).with_improvement(Improvement.WINDOWS)
    )
    assert str(provenance) == "greedy + ruin and recreate + windows"


def test_repeated_step_is_listed_once_at_its_last_place() -> None:
    provenance = (
        Provenance("chen").with_improvement(Improvement.RUIN_AND_RECREATE).with_improvement(Improvement.BLOCK_TRANSFER)
    )
    assert (
        str(provenance.with_improvement(Improvement.BLOCK_TRANSFER)) == "chen + ruin and recreate + alike in all blocks"
    )
    assert (
        str(provenance.with_improvement(Improvement.RUIN_AND_RECREATE))
        == "chen + alike in all blocks + ruin and recreate"
    )


def test_copies_of_views_are_counted() -> None:
    assert str(Provenance("greedy", copied_views=3)) == "greedy, 3 copies of views"
