"""Execution of MLIR programs by XLA on the CPU, as an independent reference for the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from recompute.interpreters.kernels.arrays import Array


def run_by_xla(text: str, inputs: Sequence[Array]) -> list[Array]:
    """Return the results of `main`, compiled by XLA. jaxlib's bindings have no types, hence the `Any`."""
    jax: Any = import_module("jax")
    xla_client: Any = import_module("jax._src.lib").xla_client
    device = jax.devices("cpu")[0]
    options = xla_client.CompileOptions()
    loaded = device.client.compile_and_load(text, xla_client.DeviceList((device,)), options)
    buffers = [jax.device_put(value, device) for value in inputs]
    results = loaded.execute_sharded(buffers).disassemble_into_single_device_arrays()
    return [np.asarray(result[0]) for result in results]
