"""The advice at the end of a report: why nothing is recomputed, and options to try next."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ....analysis.explain.saved_values import PLAIN_STEP
from ....reports.wrapping import wrap_line
from ....search.budget.compiled_candidate import CompiledCandidate
from ....support.locations import base_name
from ....support.units import format_bytes
from ..compilation.variants import Variant
from .donation import Donation
from .redrawn_bits import RedrawnBits
from .report_records import ReportData

MOST_OF = 0.4
"""The share of the temporaries above which a report names a single saved value as their cause.

Together with the values that are computed from it, such a value makes up most of the temporaries.
"""
_IN_PARTS = (
    "{operation} at {position} alone saves {size}: compute that part of the model in microbatches, with jax.lax.map or "
    "jax.lax.scan"
)
NEARLY, MUCH_CHEAPER = 1.1, 0.67
"""A plan is proposed if, compared with the plan that runs, it needs at most the first factor times the memory, and at
most the second factor times the extra work."""
NOTABLE_WORK = 0.1
"""The minimum extra work, as a share of the step's work, for advice on a step whose memory reduction is a smaller
share.
"""
_NEARLY_AS_SMALL = "budget={share} needs {size}, hardly more than {least}, at {work} of the extra work of this plan"
_LITTLE_SAVED = (
    '{extra} more FLOPs for {saved} less memory: policy="dots_saveable" avoids most of these FLOPs, because it saves '
    "the matrix products; budget=0.9 finds the least work for a reduction of 10 %; jax.jit runs the plain step"
)
_LEAST = 'this is the least memory that the search finds; budget=0.5 or "8GiB" requires less extra work'
_LEAST_SO_FAR = (
    "this is the least memory that the search found before it was stopped: with a larger time_limit=, or without one, "
    "it may find a smaller plan"
)
FAR_BELOW = 0.8
"""If the step needs less than this share of its budget, the report explains why it needs less than the budget
allows."""
_NOTHING_BETWEEN = (
    "the search found no plan with less extra work that needs between {least} and the {limit} that the budget leaves "
    "for temporaries; the next larger compiled plan with less work needs {next}"
)
_MERGED = (
    "next: the model's own jax.checkpoint can be removed: this step runs without its copies, and recomputes values "
    "that recompute.jax chooses"
)
NOTABLE_DRAWS = 0.1
"""The minimum share of the extra work at which random bits that are drawn again are mentioned."""
_DRAWS = (
    "the copies draw random bits again, at least {share} of the extra work: save={names} saves the masks instead, "
    "which takes at least {size}"
)
_MAX_MASK_NAMES = 2
_DONATE = "next: {option} frees up to {size}; {caution}"


def next_steps(report: ReportData) -> Iterator[str]:
    """Yield advice on what to do next, and on how to show the details."""
    yield ""
    if report.search.refused:
        yield from wrap_line(f"why: {report.search.refused.splitlines()[0]}")
    elif (plain_reason := report.plain_reason) is not None:
        # A message without a remedy is printed whole.
        yield from wrap_line(f"why: {plain_reason.reason if plain_reason.remedy else plain_reason}")
        large = _large_value(report)
        remedy = plain_reason.remedy if large is None else _IN_PARTS.format(**large)
        if remedy:
            yield from wrap_line(f"next: {remedy}")
    elif (cheaper := _cheaper(report)) is not None:
        yield from wrap_line(f"next: {cheaper}")
    elif report.search.is_minimum:
        yield from wrap_line(f"next: {_LEAST if report.search.is_complete else _LEAST_SO_FAR}")
    elif (between := _nothing_between(report)) is not None:
        yield from wrap_line(f"next: {between}")
    elif report.search.candidates:
        yield "next: a larger budget requires less extra work; a smaller budget requires less memory"
    else:
        yield 'next: budget="min" may find less memory; budget=0.5 or "8GiB" finds the least work within that limit'
    if report.variant is Variant.MERGED:
        yield from wrap_line(_MERGED)
    if (draws := report.recomputed.draws) is not None and draws.share >= NOTABLE_DRAWS:
        yield from wrap_line(f"next: {_draws_advice(draws)}")
    if report.model.branch_advice:
        yield from wrap_line(f"next: {report.model.branch_advice}")
    if report.donation is not None:
        yield from wrap_line(_donation_advice(report.donation))
    yield 'more: print(report.details()) for charts and remarks, report.save("step.html") for a page'


def _draws_advice(draws: RedrawnBits) -> str:
    names = list(draws.mask_names)
    if len(names) > _MAX_MASK_NAMES:
        names = list(dict.fromkeys(name.rpartition("/")[2] for name in names))
    return _DRAWS.format(share=_percent(draws.share), names=json.dumps(names), size=format_bytes(draws.mask_bytes))


def _donation_advice(donation: Donation) -> str:
    return _DONATE.format(option=donation.option, size=format_bytes(donation.bytes), caution=donation.caution)


def _cheaper(report: ReportData) -> str | None:
    """Return advice on a plan with less work; None if the memory reduction is worth the work.

    With a budget, the advice names a plan that needs slightly more memory, but much less work. Without a budget, it
    names options with less work for steps whose memory reduction is small.
    """
    runs = _candidate_that_runs(report)
    return _option_with_less_work(report) if runs is None else _candidate_with_less_work(report, runs)


def _candidate_that_runs(report: ReportData) -> CompiledCandidate | None:
    """Return the candidate that has the size of the step that runs; None if there was no search, or if the size is
    unknown."""
    needs = report.chosen.temporaries
    candidates = report.search.candidates if needs is not None else ()
    return next((candidate for candidate in candidates if candidate.measured_bytes == needs), None)


def _candidate_with_less_work(report: ReportData, runs: CompiledCandidate) -> str | None:
    """Return advice on a candidate that needs slightly more memory than the step that runs, but much less work."""
    needs, plain = report.chosen.temporaries, report.plain.temporaries
    if not plain or needs is None or not report.plain.flops or report.chosen.flops is None:
        return None
    # Candidates of equal size differ only in their work.
    near = [
        (candidate.extra_flops, candidate.measured_bytes)
        for candidate in report.search.candidates
        if candidate.measured_bytes is not None
        and candidate.measured_bytes <= NEARLY * needs
        and candidate.extra_flops <= MUCH_CHEAPER * runs.extra_flops
    ]
    if not near:
        return None
    extra_flops, size = min(near, key=lambda candidate: candidate[0])
    return _NEARLY_AS_SMALL.format(
        share=_budget_of(size, plain),
        size=format_bytes(size),
        least=format_bytes(needs),
        work=_percent(extra_flops / runs.extra_flops),
    )


def _option_with_less_work(report: ReportData) -> str | None:
    """Return advice on options with less work, for a step without a budget whose memory reduction is small."""
    needs, plain, (plain_flops, flops) = report.chosen.temporaries, report.plain.temporaries, report.flops
    if report.search.candidates or not plain or needs is None or not plain_flops or flops is None:
        return None
    saved, extra = 1 - needs / plain, flops / plain_flops - 1
    if extra < NOTABLE_WORK or extra < saved:
        return None
    return _LITTLE_SAVED.format(extra=_percent(extra), saved=_percent(saved))


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _nothing_between(report: ReportData) -> str | None:
    """For a step that needs far less memory than its budget allows, return a message with the size of the next larger
    compiled plan with less work. Return None for any other step."""
    limit, needs, plain = report.search.temporaries_limit, report.chosen.temporaries, report.plain.temporaries
    runs = _candidate_that_runs(report)
    if limit is None or needs is None or plain is None or runs is None or needs >= FAR_BELOW * limit:
        return None
    larger = [
        candidate.measured_bytes
        for candidate in report.search.candidates
        if candidate.measured_bytes is not None
        and candidate.measured_bytes > limit
        and candidate.extra_flops < runs.extra_flops
    ]
    size = min([plain, *larger])
    following = f"{format_bytes(size)}{' (the plain step)' if size == plain else ''}"
    return _NOTHING_BETWEEN.format(least=format_bytes(needs), limit=format_bytes(limit), next=following)


def _budget_of(needs: int, plain: int) -> str:
    """Return the smallest budget that allows `needs` bytes, as a share of the plain temporaries in whole percent:
    `0.35`."""
    return f"{-(-100 * needs // plain) / 100:g}"


def _large_value(report: ReportData) -> dict[str, str] | None:
    """Return the fields of the message `_IN_PARTS` for a value that is still saved and makes up most of the plain
    step's temporaries; None if there is no such value."""
    kept = [value for value in report.kept if value.reason != PLAIN_STEP]
    value = max(kept, key=lambda value: value.bytes, default=None)
    if value is None or value.bytes < MOST_OF * (report.plain.temporaries or 0):
        return None
    return {"operation": value.operation, "position": base_name(value.position), "size": format_bytes(value.bytes)}
