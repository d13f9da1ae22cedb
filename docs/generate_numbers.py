"""Write the numbers of docs/measured.json into the pages that quote them.

    python docs/generate_numbers.py

`benchmarks/xla_memory/against_jax_checkpoint.py --write` measures these numbers, and then runs this script. A test
compares the pages with its output.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MEASURED = ROOT / "docs" / "measured.json"
PLAIN = "plain"
FORMS = {"jax": "jax.checkpoint", "ours": "ours", "unstaggered": "ours, stagger=false"}
# A ratio is bold if it is below this share of the ratio of `jax.checkpoint`.
CLEARLY_LESS = 0.9

TITLES = {
    "gpt": "GPT with dropout, loss and gradients",
    "gpt_train": "GPT with dropout, whole Adam step",
    "gpt_bf16": "GPT in bf16",
    "mlp": "MLP with dropout, gradient descent",
    "mindspore_attention": "MindSpore's ten attention blocks",
    "branches": "six blocks of eight branches",
    "resnet": "residual conv net",
    "unet": "U-Net",
    "mlp20": "MLP of twenty layers",
    "chain": "sin-exp-cos-tanh, ten blocks",
    "tied": "one encoder on two inputs",
    "paddle_fc": "Paddle's four layers",
    "paddle_fleet": "Paddle's Fleet page, five blocks with dropout",
}

# Page -> sentences with placeholders. A placeholder is a version, or an example, a form and a quantity.
QUOTES: Mapping[str, tuple[str, ...]] = {
    "README.md": (
        "`python -m recompute.benchmarks.xla_memory.against_jax_checkpoint` with jax {jax}:",
        "(`stagger=false`), the GPT needs {gpt unstaggered temporaries} of the plain step's temporaries",
        "allocates {gpt_train ours mib} of {gpt_train plain mib} MiB for the same step, or "
        "{gpt_train ours temporaries}.",
    ),
    "docs/coming_from_jax.md": (
        "Under XLA:CPU, a GPT with dropout needs {gpt jax temporaries} of the plain step's temporaries with "
        "`jax.checkpoint`. With `recompute` it needs {gpt ours temporaries}, or {gpt unstaggered temporaries} if the "
        "delay is disabled (`stagger=false`).",
        "as measured with jax {jax}",
        "| {gpt jax temporaries} of the plain step's temporaries, {gpt jax flops} of its FLOPs | "
        "{gpt ours temporaries} and {gpt ours flops} |",
    ),
    "docs/concepts.md": (
        "the GPT of the examples still needs {gpt unstaggered mib} MiB with recomputation, compared with "
        "{gpt plain mib} MiB for the plain step.",
        "With this pass, the GPT needs only {gpt ours mib} MiB.",
    ),
}


def numbers(measured: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]) -> dict[str, str]:
    """Return the number for each placeholder."""
    texts = dict[str, str]()
    for example, costs in measured["against_jax_checkpoint"].items():
        plain = costs[PLAIN]
        for short, name in {PLAIN: PLAIN, **FORMS}.items():
            texts[f"{example} {short} mib"] = f"{costs[name]['temp_bytes'] / 2**20:.0f}"
            texts[f"{example} {short} temporaries"] = f"{costs[name]['temp_bytes'] / plain['temp_bytes']:.3f}"
            texts[f"{example} {short} flops"] = f"{costs[name]['flops'] / plain['flops']:.3f}"
    return texts | {name: str(version) for name, version in measured["versions"].items()}


def table(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of the table in the README."""
    yield "| step | temporaries: `jax.checkpoint` per block | `recompute` | FLOPs: `jax.checkpoint` | `recompute` |"
    yield "|---|---|---|---|---|"
    for example, title in TITLES.items():
        checkpoint, rewritten = (texts[f"{example} {form} temporaries"] for form in ("jax", "ours"))
        shown = f"**{rewritten}**" if float(rewritten) < CLEARLY_LESS * float(checkpoint) else rewritten
        flops = [texts[f"{example} {form} flops"] for form in ("jax", "ours")]
        yield f"| {title} | {checkpoint} | {shown} | {' | '.join(flops)} |"


def with_table(page: str, lines: Iterator[str]) -> str:
    before, place, table_and_after = page.partition("<!-- against jax.checkpoint -->\n")
    _, end, after = table_and_after.partition("<!-- end -->")
    assert place and end, "the README has no place for the table"
    return f"{before}{place}{chr(10).join(lines)}\n{end}{after}"


def with_quotes(page: str, sentences: tuple[str, ...], numbers_of: Mapping[str, str]) -> str:
    """Return the page with current numbers in place of the placeholders. The page may break the sentences into lines
    anywhere.
    """
    for sentence in sentences:
        texts, holes = re.split(r"\{[^}]*\}", sentence), re.findall(r"\{([^}]*)\}", sentence)
        pattern = r"[\d.]*\d".join(map(_group, texts))
        match = re.search(pattern, page)
        assert match is not None, f"not on the page: {sentence}"
        filled = zip(match.groups(), [numbers_of[hole] for hole in holes] + [""], strict=True)
        page = page[: match.start()] + "".join(text + number for text, number in filled) + page[match.end() :]
    return page


def _group(text: str) -> str:
    return "(" + r"\s+".join(map(re.escape, text.split(" "))) + ")"


def pages() -> dict[Path, str]:
    """Return the new text of each page."""
    texts = numbers(json.loads(MEASURED.read_text()))
    page_texts = {
        ROOT / name: with_quotes((ROOT / name).read_text(), sentences, texts) for name, sentences in QUOTES.items()
    }
    return page_texts | {ROOT / "README.md": with_table(page_texts[ROOT / "README.md"], table(texts))}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
    sys.exit(0)
