"""Reasons that a segment or an operation is not recomputed, as text."""

from __future__ import annotations

FROM_CONSTANTS = "it is computed from constants alone, and keeping it costs nothing"
NO_GATE = "its values are needed as soon as the backward pass begins: no gradient has arrived that could gate them"
NOT_READ = "no gradient operation reads a value from it"
ALL_KEPT = (
    "all of its values are kept: they are outputs, which the operations after it read, or marked to be saved; "
    "mark operations, or recompute outputs too"
)
SKIPPED = "it is on the list of segments to skip"
LIVES_ON = "the function returns it, so it lives to the end anyway"
UPDATE_READS = "the update reads it, so it outlives the backward pass anyway"
NOTHING_FREED = "nothing is saved: all that it would compute again stays alive for others"
