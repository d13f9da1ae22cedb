"""Measure one step in its own process, and print the result as JSON.

    python -m recompute.benchmarks.peers.measure_peer 'linen gpt' --what costs

Each step needs its own process, because the number of devices must be set before JAX starts, and because a device
reports the peak of its whole process.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict, is_dataclass
from typing import Any

from recompute.benchmarks.harness.command_line import add_size, benchmark_parser
from recompute.benchmarks.harness.xla_flags import flags_with_host_devices
from recompute.benchmarks.peers.all_peers import PEERS
from recompute.benchmarks.peers.compiler_settings import DEFAULT


def main() -> None:
    """Print the measurement that the command line requests as JSON."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("step", choices=PEERS, help="the step to measure")
    parser.add_argument(
        "--what", choices=("costs", "distances", "peak"), default="costs", help="the measurement (default: %(default)s)"
    )
    add_size(parser)
    parser.add_argument("--form", help="with --what peak: the form of the step to measure")
    parser.add_argument(
        "--setting", default=DEFAULT, help="with --what peak: the compiler setting (default: %(default)s)"
    )
    options = parser.parse_args()
    print(json.dumps(measurement(options), default=plain_data))


def measurement(options: argparse.Namespace) -> Any:
    """Measure a step according to the options. JAX starts here, with the number of devices that the step needs."""
    peer = PEERS[options.step]
    # Platforms other than CPU ignore the flag.
    os.environ["XLA_FLAGS"] = flags_with_host_devices(peer.devices)
    import jax

    from recompute.benchmarks.peers import form_costs, result_distances

    if jax.device_count() < peer.devices:
        return {"platform": jax.default_backend(), "skipped": f"the step needs {peer.devices} devices"}
    if options.what == "distances":
        return result_distances.distances(peer, options.size)
    if options.what == "peak":
        return form_costs.peak_bytes(peer, options.size, options.form, options.setting)
    return {**form_costs.costs(peer, options.size), "jax": jax.__version__}


def plain_data(value: Any) -> Any:
    """Return a dataclass instance as a dictionary, for JSON."""
    assert is_dataclass(value) and not isinstance(value, type), (
        f"expected a dataclass instance, not {type(value).__name__}"
    )
    return asdict(value)


if __name__ == "__main__":
    main()
