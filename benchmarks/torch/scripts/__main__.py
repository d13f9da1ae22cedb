"""Run a corpus of typical training scripts under `recompute.torch`, and compare them with their eager runs.

    python -m recompute.benchmarks.torch.scripts                       # all scripts
    python -m recompute.benchmarks.torch.scripts 'autocast*' two_losses
    python -m recompute.benchmarks.torch.scripts --budget 70% --json judgements.json

Each script runs in its own process. The table goes to standard output. The exit status is 1 if a script gives wrong
results, crashes only under `recompute.torch`, or exceeds the time limit.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections import Counter
from dataclasses import asdict
from fnmatch import fnmatch
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from recompute.benchmarks.harness.parsers import benchmark_parser
from recompute.benchmarks.torch.scripts.all_scripts import scripts
from recompute.benchmarks.torch.scripts.judge import Judgement, ScriptVerdict, judge
from recompute.benchmarks.torch.scripts.script import Script

LIMIT_SECONDS = 600


def run(sender: Connection, script: Script, budget: str) -> None:
    """Judge a script in this process, and send the judgement to the parent process."""
    torch.set_num_threads(1)
    sender.send(judge(script, budget))


def judge_script(script: Script, budget: str) -> Judgement:
    """Judge a script in a forked process. If the process ends without a result, the verdict is `CRASH`."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=run, args=(sender, script, budget))
    process.start()
    sender.close()
    try:
        if receiver.poll(LIMIT_SECONDS):
            return receiver.recv()
        return Judgement(script.name, ScriptVerdict.TIMEOUT, f"no result after {LIMIT_SECONDS} s")
    except EOFError:
        process.join()
        return Judgement(script.name, ScriptVerdict.CRASH, f"the process ended with exit status {process.exitcode}")
    finally:
        process.kill()
        process.join()


def main() -> int:
    """Judge the requested scripts, print a table row for each, and return 1 if some verdict is a fault."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("names", nargs="*", help="patterns of script names; all by default")
    parser.add_argument(
        "--budget", default="min", help="budget of each graph (default: min, which adds the most copies), or none"
    )
    parser.add_argument("--json", type=Path, help="write the judgements to this file, as JSON")
    options = parser.parse_args()
    patterns = options.names or ["*"]
    chosen = [script for name, script in scripts().items() if any(fnmatch(name, pattern) for pattern in patterns)]
    if not chosen:
        print(f"error: no script matches: choose from {', '.join(scripts())}", file=sys.stderr)
        return 2
    print("| script | purpose | verdict | detail |\n|---|---|---|---|")
    judgements: list[Judgement] = []
    for script in chosen:
        result = judge_script(script, options.budget)
        judgements.append(result)
        detail = result.detail.replace("|", "/")
        print(f"| `{script.name}` | {script.purpose} | {result.verdict.value} | {detail} |", flush=True)
    counts = Counter(result.verdict for result in judgements)
    print(", ".join(f"{count} {verdict.value}" for verdict, count in counts.items()), file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps([asdict(result) for result in judgements], indent=1))
    return 1 if any(result.verdict.is_fault for result in judgements) else 0


if __name__ == "__main__":
    sys.exit(main())
