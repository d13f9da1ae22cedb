"""Hashes of the tools' output for the examples, which a refactoring must not change.

    python -m recompute.test.golden.outputs             # compare with outputs.json
    python -m recompute.test.golden.outputs --write     # after a change of behaviour, with its reason in the commit

Programs are hashed without locations, and reports only by their numbers, so that wording may change. The numbers
depend on the versions of JAX, XLA, NumPy and the solvers, which `outputs.json` records.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from recompute.tools import recompute_check, recompute_opt

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "stablehlo"
FILE = Path(__file__).with_name("outputs.json")
PACKAGES = "jax jaxlib numpy scipy highspy numba xdsl".split()
EXAMPLES = sorted(path.name.removesuffix(".small.mlir") for path in FOLDER.glob("*.small.mlir"))
JAX_MODELS = ("chain", "mlp", "unet")
BUDGET = "90%"

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
SOURCE = re.compile(r'"source": "[^"]*"|\S+:\d+:\d+')
Hashes = dict[str, str]


def environment() -> dict[str, str]:
    """Return the versions of the packages on which the numbers depend."""
    return {package: version(package) for package in PACKAGES}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _numbers(text: str) -> str:
    """Return the hash of the numbers in a text, without those of source positions."""
    return _hash(" ".join(NUMBER.findall(SOURCE.sub("", text))))


def _run(tool: Callable[[Sequence[str]], int], *arguments: str) -> str:
    """Return the standard output of a tool. Raises `AssertionError` for a nonzero exit status."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = tool(list(arguments))
    assert code == 0, (arguments, code, errors.getvalue())
    return output.getvalue()


def of_example(name: str) -> Hashes:
    """Return the hashes for an example: default, budget and plan of the pass, explanation, memory timeline and
    proof."""
    source = str(FOLDER / f"{name}.small.mlir")
    with tempfile.TemporaryDirectory() as folder:
        plan, result = f"{folder}/plan.json", f"{folder}/result.mlir"
        _run(recompute_opt.main, "-p", "recompute", "--emit-plan", plan, "-o", result, source)
        report = _run(recompute_opt.main, "-t", "memory-timeline{format=json}", result)
        return {
            "default": _hash(Path(result).read_text()),
            "plan": _hash(json.dumps(json.loads(Path(plan).read_text()))),
            "from plan": _hash(_run(recompute_opt.main, "-p", f"recompute{{plan={plan}}}", source)),
            "budget": _hash(_run(recompute_opt.main, "-p", f"recompute{{budget={BUDGET}}}", source)),
            "explain": _numbers(_run(recompute_opt.main, "-t", "explain{format=json}", source)),
            "timeline": _numbers(report),
            "check": _numbers(_run(recompute_check.main, source, result)),
        }


def of_jax(name: str) -> Hashes:
    """Return the hashes of what `recompute.jax.jit` compiles, and of the numbers in its report."""
    import recompute

    step: Any = import_module(f"recompute.examples.models.{name}").build("small")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jitted: Any = recompute.jax.jit(step.function, donate_argnums=step.donated)
        text = jitted.lower(*step.arguments).as_text()
        return {"jax": _hash(text), "jax report": _numbers(str(jitted.report(*step.arguments)))}


def outputs(examples: Sequence[str] = EXAMPLES) -> Iterator[tuple[str, Hashes]]:
    for name in examples:
        yield name, of_example(name) | (of_jax(name) if name in JAX_MODELS else {})


def main() -> int:
    result = dict[str, Hashes]()
    for name, hashes in outputs():
        result[name] = hashes
        print(name, *hashes.values(), file=sys.stderr)
    written = {"environment": environment(), "outputs": result}
    if "--write" in sys.argv:
        FILE.write_text(json.dumps(written, indent=1) + "\n")
        return 0
    expected = json.loads(FILE.read_text())
    for name, hashes in result.items():
        if changed := [key for key in hashes if hashes[key] != expected["outputs"][name].get(key)]:
            print(f"{name}: changed: {', '.join(changed)}")
    return int(written != expected)


if __name__ == "__main__":
    sys.exit(main())
