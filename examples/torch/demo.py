"""Run all PyTorch examples. Each runs three training steps, and prints a report on the recomputed graph.

python examples/torch/demo.py
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NEEDED = {"gpt": "torch", "resnet": "torch", "unet": "torch", "bert": "transformers"}


def main() -> int:
    failed = 0
    for name, package in NEEDED.items():
        print(f"== {name}.py", flush=True)
        if importlib.util.find_spec(package) is None:
            print(f"skipped: {package} is not installed")
            continue
        failed |= subprocess.run([sys.executable, HERE / f"{name}.py"], check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
