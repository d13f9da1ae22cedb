import pytest

from recompute.reports.bytes import human_bytes


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
def test_human_bytes(count: int, text: str):
    assert human_bytes(count) == text
