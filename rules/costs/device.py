"""A table of devices with their peak rates, and a file format for other devices.

    {"device": {"name": "my machine", "products": {"f32": 5.1e10, "f64": 2.5e10}, "elementwise": 1e9,
                "transcendentals": 3e8, "bytes_per_second": 1.2e10}}

All rates are per second. The table contains published peak rates for dense products. Real programs do not reach them.
Sources:

    a100   NVIDIA A100 80GB SXM, data sheet (2021): TF32 156, BF16 and FP16 312, FP64 tensor core 19.5 TFLOP/s, INT8 624
           TOP/s; FP32 19.5 TFLOP/s without tensor cores; 2039 GB/s; PCIe Gen4, 64 GB/s in both directions together
    h100   NVIDIA H100 SXM, data sheet (2023), without sparsity: TF32 494.7, BF16 and FP16 989.4, FP64 tensor core 67
           TFLOP/s, FP8 and INT8 1978.9 T/s; FP32 67 TFLOP/s without tensor cores; 3.35 TB/s; PCIe Gen5, 128 GB/s both
           ways together
    h200   NVIDIA H200 SXM, data sheet (2024): the rates of the H100, 4.8 TB/s
    mi300x AMD Instinct MI300X, data sheet (2023), without sparsity: TF32 653.7, BF16 and FP16 1307.4, FP64 matrix 163.4
           TFLOP/s, FP8 and INT8 2614.9 T/s; FP32 vector 163.4 TFLOP/s; 5.3 TB/s; PCIe Gen5 x16, 128 GB/s both ways
    tpuv5e Google Cloud TPU v5e, system architecture page: BF16 197 TFLOP/s, INT8 394 TOP/s, 819 GB/s. Elementwise rates
           are not published, so only the bytes of such operations are counted. f32 products have the rate of bf16,
           XLA's default precision cpu    measured by `python -m recompute.benchmarks.cost_models.calibrate_device`:
           numpy on two shared cores of an AMD EPYC server

A transfer to or from the host uses one direction at a time, with half of the bidirectional bandwidth. For a device
without a published bandwidth (TPU v5e), the user must give the bandwidth of transfers.

On GPUs, f32 products have the rate of TF32, XLA's default precision. If a device has no rate for transcendentals, each
transcendental takes as long as a FLOP.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, cast

from ...support.strict_json import parse_strictly


class BadCost(ValueError):
    """Raised for an unknown cost model, and for an invalid cost or device file. The message gives the cause."""


MAX_RATE = 1e21
"""Maximum rate that a file may give, in FLOPs or bytes per second; no current machine is faster."""
ELEMENTS = ("f64", "f32", "bf16", "f16", "f8", "i8")
"""Element types for which a device may have a rate for products."""
_FIELDS = ("name", "products", "elementwise", "transcendentals", "bytes_per_second", "host_bytes_per_second")


@dataclass(frozen=True)
class Device:
    """Peak rates of a device, in FLOPs or bytes per second.

    Attributes:
        name: Name of the device.
        products: FLOPs per second of matrix products, by element type; contains at least `f32`.
        elementwise: FLOPs per second of all other operations; None if only the bytes of these operations are counted.
        bytes_per_second: Memory bandwidth.
        transcendentals: Transcendental functions per second; None if each takes as long as a FLOP.
        host_bytes_per_second: Bandwidth, in one direction, of transfers to and from the host; None if unknown.
    """

    name: str
    products: Mapping[str, float]
    elementwise: float | None
    bytes_per_second: float
    transcendentals: float | None = None
    host_bytes_per_second: float | None = None

    def product_rate(self, element: str) -> float:
        """Return the FLOPs per second of products with this element type. The type is spelled as in MLIR.

        A float type without a rate has the rate of the next wider type with a rate. An integer type other than i8 has
        the rate of f32.
        """
        kind = _kind(element)
        wider = {"f8": ("f8", "f16", "bf16"), "f16": ("f16", "bf16"), "bf16": ("bf16", "f16")}.get(kind, (kind,))
        return next((self.products[name] for name in wider if name in self.products), self.products["f32"])


def _kind(element: str) -> str:
    if element.startswith("complex<"):
        return _kind(element.removeprefix("complex<").removesuffix(">"))
    if element.startswith(("f8E", "f4E", "f6E")):
        return "f8"
    return "i8" if element in ("i8", "ui8", "i4", "ui4") else element


_NVIDIA = {"f64": 67e12, "f32": 494.7e12, "bf16": 989.4e12, "f16": 989.4e12, "f8": 1978.9e12, "i8": 1978.9e12}
_A100 = {"f64": 19.5e12, "f32": 156e12, "bf16": 312e12, "f16": 312e12, "i8": 624e12}
_AMD = {"f64": 163.4e12, "f32": 653.7e12, "bf16": 1307.4e12, "f16": 1307.4e12, "f8": 2614.9e12, "i8": 2614.9e12}
_TPU = {"f32": 197e12, "bf16": 197e12, "f16": 197e12, "i8": 394e12}
DEVICES: Mapping[str, Device] = {
    device.name: device
    for device in (
        Device("a100", _A100, 19.5e12, 2.039e12, host_bytes_per_second=32e9),
        Device("h100", _NVIDIA, 67e12, 3.35e12, host_bytes_per_second=64e9),
        Device("h200", _NVIDIA, 67e12, 4.8e12, host_bytes_per_second=64e9),
        Device("mi300x", _AMD, 163.4e12, 5.3e12, host_bytes_per_second=64e9),
        Device("tpuv5e", _TPU, None, 0.819e12),
        Device("cpu", {"f64": 4.9e10, "f32": 9.1e10}, 8.9e9, 2.6e10, 2.0e9),
    )
}


def read_device(path: str) -> Device:
    """Read a device file.

    Raises:
        BadCost: The file cannot be read or does not contain a valid device.
    """
    try:
        return device_from(parse_strictly(Path(path).read_text()), path)
    except OSError as error:
        raise BadCost(f"the device file {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise error if isinstance(error, BadCost) else BadCost(f"{path} is not valid JSON: {error}") from error


def device_from(data: object, where: str) -> Device:
    """Return the device that parsed JSON describes. `where`: the name of the file, for messages.

    Raises:
        BadCost: The data is not a valid device.
    """
    fields = as_object(as_object(data, where).get("device"), f"{where}: device")
    for name in fields.keys() - set(_FIELDS):
        raise BadCost(f"{where}: device has an unknown field '{name}'; expected one of {', '.join(_FIELDS)}")
    if not isinstance(name := fields.get("name"), str):
        raise BadCost(f"{where}: device.name must be a string")
    products = as_object(fields.get("products"), f"{where}: device.products")
    for element in products.keys() - set(ELEMENTS):
        words = f"unknown element type '{element}'; expected one of {', '.join(ELEMENTS)}"
        raise BadCost(f"{where}: device.products has an {words}")
    if "f32" not in products:
        raise BadCost(f"{where}: device.products needs a rate for f32")
    return Device(
        name=name,
        products={element: _rate(rate, f"{where}: device.products.{element}") for element, rate in products.items()},
        elementwise=_optional(fields, "elementwise", where),
        bytes_per_second=_rate(fields.get("bytes_per_second"), f"{where}: device.bytes_per_second"),
        transcendentals=_optional(fields, "transcendentals", where),
        host_bytes_per_second=_optional(fields, "host_bytes_per_second", where),
    )


def to_json(device: Device) -> str:
    """Return the device in the file format that `read_device` reads."""
    fields = {
        "name": device.name,
        "products": dict(device.products),
        "elementwise": device.elementwise,
        "transcendentals": device.transcendentals,
        "bytes_per_second": device.bytes_per_second,
        "host_bytes_per_second": device.host_bytes_per_second,
    }
    return json.dumps({"device": {name: value for name, value in fields.items() if value is not None}}, indent=2) + "\n"


def as_object(data: object, where: str) -> dict[str, Any]:
    """Return the value if it is a JSON object, else raise `BadCost`."""
    if not isinstance(data, dict):
        raise BadCost(f"{where} must be a JSON object")
    return cast(dict[str, Any], data)


def _optional(fields: Mapping[str, object], name: str, where: str) -> float | None:
    return None if fields.get(name) is None else _rate(fields[name], f"{where}: device.{name}")


def _rate(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value <= 0:
        raise BadCost(f"{where} must be a positive number, not {value!r}")
    if value > MAX_RATE:
        raise BadCost(f"{where} must be at most {MAX_RATE:g} per second, not {value!r}")
    return float(value)
