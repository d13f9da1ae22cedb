"""Comparison of the outcomes with the judge's reading, which yields the findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .judge import Answer, Judge, canonical, processed
from .normal.rules import explanation, normal_form
from .spelling import resources_numbered, spelled_out, without_locations, without_opaque_bodies
from .tree import TreeError
from .trials import Outcome, message_kind

_LEFT_OUT = (
    "empty lists of attributes are as good as none",
    "properties of linalg may be written as attributes",
)
_NO_MLIR = "proved, though no MLIR"


def judged(outcomes: Sequence[Outcome], judge: Judge) -> None:
    """Add the judge's verdicts on printed outputs and on proofs."""
    _judge_outputs([actual for actual in outcomes if actual.printed is not None and actual.mutant.means[1].text], judge)
    for outcome in outcomes:
        if "proved" in outcome.counts or any(count.startswith("not proved") for count in outcome.counts):
            compare_verdict(outcome)
    _look_without_locations([outcome for outcome in outcomes if _NO_MLIR in dict(outcome.findings)], judge)
    doubtful = [outcome for outcome in outcomes if outcome.rules]
    texts = [answer.text or "" for outcome in doubtful for answer in outcome.mutant.means]
    for outcome, pair in zip(doubtful, _pairs(judge.ask(*map(processed, texts))), strict=True):
        outcome.counts.append(_after_pipeline(*pair))


def _look_without_locations(doubtful: Sequence[Outcome], judge: Judge) -> None:
    """Disregard texts that are invalid only because of a location."""
    texts = [text for item in doubtful for text in (item.mutant.before, item.mutant.after)]
    answers = judge.ask(*(canonical(spelled_out(without_locations(text))) for text in texts))
    for outcome, (before, after) in zip(doubtful, _pairs(answers), strict=True):
        if before.text is not None and before == after:
            outcome.findings = [finding for finding in outcome.findings if finding[0] != _NO_MLIR]
            outcome.counts.append("proved, no MLIR in locations only")


def _judge_outputs(printed: Sequence[Outcome], judge: Judge) -> None:
    answers = judge.ask(*(canonical(spelled_out(item.printed or "")) for item in printed))
    doubtful = [pair for pair in zip(printed, answers, strict=True) if not _means_the_same(*pair)]
    # Some of what jaxlib prints it cannot read.
    own = judge.ask(*(canonical(outcome.mutant.means[1].text or "") for outcome, _ in doubtful))
    for (outcome, answer), itself in zip(doubtful, own, strict=True):
        if itself.text is None:
            outcome.counts.append("jaxlib cannot read its own text")
        else:
            _explain_output(outcome, answer)


def _pairs(answers: Sequence[Answer]) -> Iterator[tuple[Answer, Answer]]:
    return zip(answers[::2], answers[1::2], strict=True)


def _after_pipeline(before: Answer, after: Answer) -> str:
    if before.text is None or after.text is None:
        return "explained: jaxlib's passes cannot run"
    same = "same" if before.text == after.text else "still different"
    return f"explained: {same} after jaxlib's inline,cse,symbol-dce"


def _means_the_same(outcome: Outcome, answer: Answer) -> bool:
    same = resources_numbered(answer.text or "") == resources_numbered(outcome.mutant.means[1].text or "")
    if same:
        outcome.counts.append("output means the same to jaxlib")
    return same


def _explain_output(outcome: Outcome, answer: Answer) -> None:
    meant = resources_numbered(outcome.mutant.means[1].text or "")
    means = resources_numbered(answer.text or "")
    spells = spelled_out(outcome.mutant.after) != outcome.mutant.after
    if means and _without_empty_lists(means) == _without_empty_lists(meant):
        outcome.counts.append("output leaves empty lists of attributes out")
    elif answer.error is not None and "not found for custom op" in answer.error:
        outcome.counts.append("output with operations that jaxlib does not know")
    elif spells and without_opaque_bodies(means) == without_opaque_bodies(meant):
        outcome.counts.append("output spells an alias out in other words")
    else:
        message = means or answer.error or "jaxlib crashes"
        words = f"--- output\n{outcome.printed}\n--- means\n{message}\n--- instead of\n{meant}"
        outcome.findings.append(("output means something else to jaxlib", words))


def _without_empty_lists(text: str) -> str:
    try:
        return normal_form(text, _LEFT_OUT)
    except TreeError:
        return text


def compare_verdict(outcome: Outcome) -> None:
    """Record whether the judge's reading of both texts permits the verdict."""
    before, after = (answer.text for answer in outcome.mutant.means)
    proved = "proved" in outcome.counts
    if before is None or after is None:
        if proved:
            errors = [message_kind(mean.error or "crash") for mean in outcome.mutant.means if mean.text is None]
            outcome.counts.append(f"proved, not readable for jaxlib: {errors[-1]}")
            if outcome.mutant.before != outcome.mutant.after and not _is_verification(outcome.mutant.means):
                outcome.findings.append((_NO_MLIR, "\n".join(mean.error or "" for mean in outcome.mutant.means)))
        return
    if before == after:
        outcome.counts.append("same text: proved" if proved else "same text: not proved")
    elif proved:
        _explain(outcome, before, after)


def _is_verification(answers: Sequence[Answer]) -> bool:
    """Return whether the text is valid MLIR whose operations fail to verify."""
    errors = [answer.error or "" for answer in answers if answer.text is None]
    return all("see current operation" in error or "invalid properties" in error for error in errors)


def _explain(outcome: Outcome, before: str, after: str) -> None:
    try:
        rules = explanation(before, after)
    except TreeError as error:
        outcome.findings.append(("harness: cannot be read as a tree", str(error)))
        return
    if rules is None:
        words = f"--- before\n{normal_form(before)}\n--- after\n{normal_form(after)}"
        outcome.findings.append(("wrong proof", words))
        return
    outcome.counts.append("different text: explained")
    outcome.rules = rules
