"""Run the command-line tools without their console scripts.

    python -m recompute opt step.mlir -p recompute

`opt`, `check`, `run` and `plan` are `recompute-opt`, `recompute-check`, `recompute-run` and `recompute-plan`; `docs`
prints the directory of the documentation, which is installed with the package.
"""

from __future__ import annotations

import sys
from pathlib import Path

from . import __version__
from .tools import start

TOOLS = {"opt": start.opt, "check": start.check, "run": start.run, "plan": start.plan}
DOCS = "docs"
USAGE = f"usage: python -m recompute [--version] {{{','.join([*TOOLS, DOCS])}}} ..."


def main() -> int:
    match sys.argv[1:]:
        case ["--version" | "-v"]:
            print(f"recompute {__version__}")
            return 0
        case ["--help" | "-h"]:
            print(f"{USAGE}\n\nEach tool has its own help: python -m recompute opt --help")
            return 0
        case ["docs"]:
            print(Path(__file__).parent / DOCS)
            return 0
        case [tool, *arguments] if tool in TOOLS:
            sys.argv = [f"recompute-{tool}", *arguments]
            return TOOLS[tool]()
        case arguments:
            reason = f"unknown tool '{arguments[0]}'" if arguments else "no tool is named"
            print(f"{USAGE}\nrecompute: error: {reason}: expected {', '.join([*TOOLS, DOCS])}", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
