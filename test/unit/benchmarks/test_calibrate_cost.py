"""The calibration of a cost model writes a device file, from which costs can be estimated."""

from __future__ import annotations

from pathlib import Path

import pytest

from recompute.benchmarks.cost_models.calibrate_device import Sizes, copies, main, products
from recompute.rules.costs.cost import cost_named
from recompute.rules.costs.device import read_device

SMALL = Sizes(matrix=64, copied=1 << 16)


def test_calibration_writes_device_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "mine.json")
    main(["-o", path, "--name", "mine", "--rounds", "2", "--matrix", "64", "--copied", "65536"])
    device = read_device(path)
    assert device.name == "mine" and set(device.products) == {"f32", "f64"} and device.elementwise
    assert cost_named(f"roofline({path})").unit == "us on mine"
    assert "products f32" in capsys.readouterr().out


def test_unreadable_device_name_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["-o", str(tmp_path / "mine.txt")])


def test_measured_rates_have_plausible_magnitude() -> None:
    """Measured rates are plausible: a wrong unit would be off by a factor of a thousand."""
    assert 1e7 < products("float32", SMALL, 2).best < 1e13 and 1e7 < copies(SMALL, 2).best < 1e13
