"""The advice at the end of a report: why nothing is recomputed, and options to try next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....reports.wrapping import wrap_line
from ....support.locations import base_name
from ....support.units import format_bytes
from ..compilation.variants import Variant
from ..messages.why_plain import reason_in, remedy_in

if TYPE_CHECKING:
    from .donation import Donation
    from .step_report import Report

MOST_OF = 0.4
"""The share of the temporaries above which a single saved value is named as their cause.

Together with the values that are computed from it, such a value makes up most of the temporaries.
"""
_IN_PARTS = (
    "{operation} at {position} alone saves {size}: compute that part of the model in microbatches, with jax.lax.map or "
    "jax.lax.scan"
)
NEARLY, MUCH_CHEAPER = 1.1, 0.67
"""A plan is proposed if it needs at most the first factor times the memory, and at most the second factor times the
extra work."""
NOTABLE_WORK = 0.1
"""The minimum extra work, as a share of the step's work, at which a saving that is smaller than it is mentioned."""
_NEARLY_AS_SMALL = "budget={share} needs {size}, hardly more than {least}, at {work} of the extra work of this plan"
_LITTLE_SAVED = (
    '{extra} more FLOPs for {saved} less memory: policy="dots_saveable" avoids most of these FLOPs, because it saves '
    "the matrix products; budget=0.9 finds the least work for a saving of 10 %; jax.jit runs the plain step"
)
_LEAST = 'this is the least memory that the search finds; budget=0.5 or "8GiB" requires less extra work'
_LEAST_SO_FAR = (
    "this is the least memory that the search found before it was stopped: with a larger time_limit=, or without one, "
    "it may find a smaller plan"
)
_MERGED = (
    "next: the model's own jax.checkpoint can be removed: this step runs without its copies, and recomputes values "
    "that recompute.jax chooses"
)
_DONATE = "next: {option} saves up to {size}; {caution}"


def next_steps(report: Report) -> Iterator[str]:
    """Yield advice on what to do next, and on how to show the details."""
    yield ""
    if report.search.refused:
        yield from wrap_line(f"why: {report.search.refused.splitlines()[0]}")
    elif report.why is not None:
        yield from wrap_line(f"why: {reason_in(report.why)}")
        large = _large_value(report)
        remedy = remedy_in(report.why) if large is None else _IN_PARTS.format(**large)
        # A message without a remedy consists of the reason only.
        if remedy != reason_in(report.why):
            yield from wrap_line(f"next: {remedy}")
    elif (cheaper := _cheaper(report)) is not None:
        yield from wrap_line(f"next: {cheaper}")
    elif report.search.is_minimum:
        yield from wrap_line(f"next: {_LEAST if report.search.is_complete else _LEAST_SO_FAR}")
    elif report.search.candidates:
        yield "next: a larger budget requires less extra work; a smaller budget requires less memory"
    else:
        yield 'next: budget="min" may find less memory; budget=0.5 or "8GiB" finds the least work within that limit'
    if report.variant is Variant.MERGED:
        yield from wrap_line(_MERGED)
    if report.model.branch_advice:
        yield from wrap_line(f"next: {report.model.branch_advice}")
    if report.donation is not None:
        yield from wrap_line(_donation_advice(report.donation))
    yield 'more: print(report.details()) for charts and remarks, report.save("step.html") for a page'


def _donation_advice(donation: Donation) -> str:
    return _DONATE.format(option=donation.option, size=format_bytes(donation.bytes), caution=donation.caution)


def _cheaper(report: Report) -> str | None:
    """Return advice on a plan with less work; None if the work is worth the saving.

    With a budget, the advice names a plan that needs slightly more memory, but much less work. Without a budget, it
    names options with less work for steps whose saving is small.
    """
    plain, less, (plain_flops, flops) = report.plain, report.chosen, report.flops
    if not plain.temporaries or less.temporaries is None or not plain_flops or flops is None:
        return None
    needs, extra = less.temporaries, flops / plain_flops - 1
    runs = next((candidate for candidate in report.search.candidates if candidate.measured_bytes == needs), None)
    if runs is not None:
        # Candidates of equal size differ only in their work.
        near = [
            candidate
            for candidate in report.search.candidates
            if candidate.measured_bytes is not None
            and candidate.measured_bytes <= NEARLY * needs
            and candidate.extra_flops <= MUCH_CHEAPER * runs.extra_flops
        ]
        best = min(near, key=lambda candidate: candidate.extra_flops, default=None)
        if best is None or best.measured_bytes is None:
            return None
        return _NEARLY_AS_SMALL.format(
            share=_budget_of(best.measured_bytes, plain.temporaries),
            size=format_bytes(best.measured_bytes),
            least=format_bytes(needs),
            work=f"{best.extra_flops / runs.extra_flops:.0%}".replace("%", " %"),
        )
    saved = 1 - needs / plain.temporaries
    if report.search.candidates or extra < NOTABLE_WORK or extra < saved:
        return None
    return _LITTLE_SAVED.format(extra=f"{extra:.0%}".replace("%", " %"), saved=f"{saved:.0%}".replace("%", " %"))


def _budget_of(needs: int, plain: int) -> str:
    """Return the smallest budget that allows `needs` bytes, as a share of the plain temporaries in whole percent:
    `0.35`."""
    return f"{-(-100 * needs // plain) / 100:g}"


def _large_value(report: Report) -> dict[str, str] | None:
    """Return the fields of the message `_IN_PARTS` for a saved value that makes up most of the temporaries; None if
    there is no such value."""
    value = max(report.kept, key=lambda value: value.bytes, default=None)
    if value is None or value.bytes < MOST_OF * (report.plain.temporaries or 0):
        return None
    return {"operation": value.operation, "position": base_name(value.position), "size": format_bytes(value.bytes)}
