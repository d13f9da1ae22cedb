"""The reasons why segments or values are not recomputed. A message may list several segments before the reason, so the
text of a reason does not refer to a segment as "it"."""

from __future__ import annotations

from enum import StrEnum


class SkipReason(StrEnum):
    """A reason why a segment or a value is not recomputed, with its text for messages. Code distinguishes the members,
    and never compares their text."""

    NO_GATE = "the backward pass begins with these values, so recomputing them would free nothing"
    FROM_CONSTANTS = "all values are computed only from constants, and keeping them costs nothing"
    NOT_READ_BY_GRADIENT = "no gradient operation reads any of the values"
    ONLY_KEPT_READ = (
        "gradient operations read only values that are kept: outputs (later operations read them), returned "
        "values, and values marked to be saved"
    )
    ALL_OUTPUTS = (
        "every value is an output (later operations read it), and outputs are saved unless the option outputs is set"
    )
    ALL_TO_SAVE = "marks, checkpoints or the policy demand that every value is saved"
    ALL_KEPT = (
        "every value is an output (later operations read it), or marks, checkpoints or the policy demand that it is "
        "saved; outputs are saved unless the option outputs is set"
    )
    SKIPPED = "listed among the segments to skip"
    LIVES_ON = "the function returns it, so it lives to the end anyway"
    NOTHING_FREED = "no memory would be freed: all values that would be recomputed stay alive for other uses"

    @classmethod
    def parse(cls, text: str) -> SkipReason | str:
        """Return the reason with this text, or the text itself if it is none of these reasons."""
        return next((reason for reason in cls if reason.value == text), text)


FREES_NOTHING = (
    SkipReason.NO_GATE,
    SkipReason.NOT_READ_BY_GRADIENT,
    SkipReason.ONLY_KEPT_READ,
    SkipReason.ALL_OUTPUTS,
    SkipReason.ALL_TO_SAVE,
    SkipReason.ALL_KEPT,
)
"""Reasons why copies of a segment would free no memory, found before these copies are planned."""


def frees_nothing(reason: str | None) -> bool:
    """Return whether the reason is one of `FREES_NOTHING`."""
    return isinstance(reason, SkipReason) and reason in FREES_NOTHING
