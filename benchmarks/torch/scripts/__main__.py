"""Run a corpus of typical training scripts under `recompute.torch`, and compare them with their eager runs.

    python -m recompute.benchmarks.torch.scripts                       # all scripts
    python -m recompute.benchmarks.torch.scripts 'autocast*' two_losses
    python -m recompute.benchmarks.torch.scripts --budget 70% --json judgements.json

Results: verdicts, printed only. Time: about 15 minutes.

Each script runs in its own process. The table goes to standard output. The exit status is 1 if a script gives wrong
results, crashes only under `recompute.torch`, or exceeds the time limit.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections import Counter
from multiprocessing.connection import Connection

from recompute.benchmarks.harness.command_line import (
    add_json,
    benchmark_parser,
    report_missed,
    report_progress,
    selected,
)
from recompute.benchmarks.harness.row_printer import print_rows
from recompute.benchmarks.torch.configure import configure_torch
from recompute.benchmarks.torch.scripts.all_scripts import scripts
from recompute.benchmarks.torch.scripts.judge import Judgement, ScriptVerdict, judge
from recompute.benchmarks.torch.scripts.script import Script

LIMIT_SECONDS = 600


def run(sender: Connection, script: Script, budget: str) -> None:
    """Judge a script in this process, and send the judgement to the parent process."""
    configure_torch()
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


def cells(result: Judgement) -> list[str]:
    """Return the cells of the table row that shows this judgement."""
    purpose = scripts()[result.script].purpose
    return [f"`{result.script}`", purpose, result.verdict.value, result.detail.replace("|", "/")]


def main() -> int:
    """Judge the requested scripts, print a table row for each, and return 1 if some verdict is a fault."""
    parser = benchmark_parser(__doc__)
    patterns = "shell patterns of the names of scripts (default: all)"
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help=patterns)
    budget = "the budget of each compiled graph, `min` (which adds the most copies) or `none` (default: %(default)s)"
    parser.add_argument("--budget", default="min", help=budget)
    add_json(parser)
    options = parser.parse_args()
    names = selected(scripts(), options.patterns)
    if not names:
        parser.error(f"no script matches: choose from {', '.join(scripts())}")
    judged = (judge_script(scripts()[name], options.budget) for name in names)
    judgements = print_rows(("script", "purpose", "verdict", "detail"), judged, cells, options.json)
    counts = Counter(result.verdict for result in judgements)
    report_progress(", ".join(f"{count} {verdict.value}" for verdict, count in counts.items()))
    faults = [result for result in judgements if result.verdict.is_fault]
    return report_missed([f"{fault.script}: {fault.verdict.value}: {fault.detail}" for fault in faults])


if __name__ == "__main__":
    sys.exit(main())
