"""The diagnostics among the lines of standard error, without the excerpts of the input below them."""

from __future__ import annotations


def diagnostics_of(errors: str) -> list[str]:
    """Return the lines of standard error without source lines and the carets below them."""
    lines = errors.splitlines()
    carets = [number for number, line in enumerate(lines) if line.strip() == "^"]
    excerpts = {number - 1 for number in carets} | set(carets)
    assert 0 not in excerpts, f"an excerpt without a diagnostic: {errors}"
    return [line for number, line in enumerate(lines) if number not in excerpts]
