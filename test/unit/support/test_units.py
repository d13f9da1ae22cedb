from typing import Any

import numpy as np
import pytest

from recompute.driver.option_checks import demand_plausible_budget
from recompute.options.loop_schedule import schedule_of
from recompute.options.offload_option import parse_offload
from recompute.support.units import budget_text, format_bytes, format_percent, parse_budget, parse_bytes, readable_bytes


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024**2 - 52, "1023.9 KiB"),
        (1024**2 - 51, "1.0 MiB"),
        (3 * 1024**3 // 2, "1.5 GiB"),
        (-2 * 1024**3, "-2.0 GiB"),
        # The last bit decides; a float would not have it.
        (1024**5 * 1_000_000 + 1024**5 // 20 + 1, "1000000.1 PiB"),
        (1024**5 * 1_000_000 + 1024**5 // 20, "1000000.0 PiB"),
    ],
)
def test_units_of_bytes_are_parsed(count: int, text: str):
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1000B", 1000),
        ("8GiB", 2**33),
        ("40 gib", 40 * 2**30),
        ("40Gi", 40 * 2**30),
        ("40G", 40 * 10**9),
        ("1TB", 10**12),
    ],
)
def test_every_option_accepts_the_same_units(text: str, count: int):
    assert parse_bytes(text) == parse_budget(text, 1) == count
    assert schedule_of(f"keep({text})").keep == schedule_of(f"binomial({text})").bytes == count
    assert parse_offload(f"{text}/s", "roofline(h100)").speed == count


@pytest.mark.parametrize("text", ["", "GB", "1.2.3 GB", "16 gigabytes", "-1GB", "50%", "4iB", "0", "1e400"])
def test_invalid_byte_counts_are_rejected(text: str):
    with pytest.raises(ValueError, match="invalid number of bytes"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "in_bytes"), [("8Gib", "8GiB"), ("8 Mb", "8MB"), ("1.5KIb", "1.5KiB"), ("40Tb", "40TB")]
)
def test_units_of_bits_are_rejected(text: str, in_bytes: str):
    """A budget is never in bits, and `Gb` usually is: the spelling is refused, not read as eight times as much."""
    message = f"invalid (number of bytes|budget) '{text}': a 'b' means bits; did you mean '{in_bytes}'\\?$"
    with pytest.raises(ValueError, match=message):
        parse_bytes(text)
    with pytest.raises(ValueError, match=message):
        parse_budget(text, 1)


def test_units_in_small_letters_are_bytes():
    assert parse_bytes("8gib") == parse_bytes("8gIb") == parse_bytes("8GIB") == 2**33


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("8", "'8%', '8MiB', '8GiB', or '8B' for bytes"),
        (" 80", "'80%', '80MiB', '80GiB', or '80B' for bytes"),
        ("1e9", "'1e9MiB', '1e9GiB', or '1e9B' for bytes"),
        ("2.", "'2.%', '2.MiB', '2.GiB', or '2.B' for bytes"),
    ],
)
def test_budget_in_bytes_needs_a_unit(text: str, remedy: str):
    with pytest.raises(ValueError, match=f"invalid budget '{text}': '{text.strip()}' has no unit: write {remedy}$"):
        parse_budget(text, 1)


def test_scalars_of_numpy_are_budgets():
    share: Any = np.float32(0.5)
    count: Any = np.int64(8)
    assert (budget_text(share), budget_text(count)) == ("0.5", "8B")
    demand_plausible_budget("budget", np.float32(0.5))
    with pytest.raises(TypeError, match="budget must be a str, a share"):
        demand_plausible_budget("budget", np.bool_(True))


@pytest.mark.parametrize(
    ("budget", "text"), [(8, "8B"), (0.5, "0.5"), ("0.5", "0.5"), ("1", "1"), ("60MB", "60MB"), ("50%", "50%")]
)
def test_budget_is_printed_as_given(budget: float | str, text: str):
    assert budget_text(budget) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB (1024 bytes)"), (2130792, "2.0 MiB (2130792 bytes)")],
)
def test_readable_bytes_include_the_exact_number(count: int, text: str):
    """The exact number of bytes is printed as well, so that it can be given as a budget."""
    assert readable_bytes(count) == text


@pytest.mark.parametrize("budget", [-1, 0])
def test_budget_below_one_byte_is_rejected_as_given(budget: int):
    with pytest.raises(ValueError, match=f"invalid budget {budget}: a budget must be positive"):
        budget_text(budget)


@pytest.mark.parametrize(
    ("percent", "text"),
    [(0.0, "0"), (25.9786, "26.0"), (14.3996, "14.4"), (0.1234567, "0.123"), (100.0, "100"), (1234.5, "1234"),
     (8.0, "8.0"), (-12.34, "-12.3"), (0.00001, "0.0")],
)  # fmt: skip
def test_percentages_have_three_significant_digits(percent: float, text: str):
    assert format_percent(percent) == text
