"""Pages of the documentation, their fenced blocks, and the files that their commands read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference.md"
"""Generated from the code: its examples are those of the docstrings."""
_OUTSIDE_DOCS = "README.md", "CONTRIBUTING.md", "benchmarks/README.md"
PAGES = [*(ROOT / name for name in _OUTSIDE_DOCS), *sorted(set(DOCS.rglob("*.md")) - {REFERENCE})]
_BLOCK = re.compile(r"^( *)```(\S*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_FILE_LINK = re.compile(r"\[`?([\w./-]+\.(?:md|py|mlir|json|yml|toml|ipynb))`?\]\(([^)\s#]+)")
_INLINE = re.compile(r"`((?:python|make|recompute-\w+|xdsl-opt) [^`]+)`")


@dataclass(frozen=True)
class Block:
    """Fenced block: its page relative to the root, its line, its language and its text."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    def commands(self) -> list[str]:
        """Commands of a shell block, without comments and with continued lines joined."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(name_of(page), text.count("\n", 0, match.start()) + 1, match[2], _dedented(match[3], len(match[1])))
        for match in _BLOCK.finditer(text)
    ]


def _dedented(text: str, indent: int) -> str:
    return "".join(line[min(indent, len(line) - len(line.lstrip(" "))) :] for line in text.splitlines(keepends=True))


def prose(page: Path) -> str:
    """Return the page with its fenced blocks replaced by empty lines."""
    return _BLOCK.sub(lambda match: "\n" * match[0].count("\n"), page.read_text())


def inline_commands(page: Path) -> list[str]:
    """Return the commands within sentences, such as `make test`."""
    return _INLINE.findall(" ".join(prose(page).split()))


def headings(page: Path) -> list[tuple[int, str]]:
    """Return the headings of a page with their levels, 1 for the title."""
    return [(len(marks), text) for marks, text in re.findall(r"^(#+) (.+)$", prose(page), re.MULTILINE)]


def anchors(page: Path) -> set[str]:
    """Return the fragments to which links to the page may refer, as code hosts and the site derive them from
    headings."""
    return {re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-") for _, text in headings(page)}


def links(page: Path) -> list[str]:
    """Return the targets of a page's links and images, without those on other hosts."""
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)) if not target.startswith("http")]


def links_with_file_names(page: Path) -> list[tuple[str, str]]:
    """Return text and target, without its anchor, of the page's links whose text is the name of a file."""
    return _FILE_LINK.findall(prose(page))


def words(command: str) -> list[str]:
    return shlex.split(command, comments=True)


def training_step(scope: str, layers: int = 3) -> str:
    """Return a step of elementwise layers and a head, with scopes `<scope>0`, `<scope>1`, … and `head`.

    Layer i computes %a<i> to %d<i>, which the backward pass reads, and its output %h<i>.
    """
    lines = [
        "func.func @step(%x: tensor<1024xf32>, %ct: tensor<1024xf32>) -> (tensor<f32>, tensor<1024xf32>) {",
        *_forward(scope, layers),
        *_backward(scope, layers),
        "  func.return %loss, %g0 : tensor<f32>, tensor<1024xf32>",
        "}",
    ]
    return "\n".join([*lines, ""])


_INSIDE = {"a": "sine", "b": "exponential", "c": "tanh", "d": "cosine"}
"""Names of the values inside a layer, and their operations."""


def _forward(scope: str, layers: int) -> Iterator[str]:
    value = "%x"
    for index in range(layers):
        for name, operation in [*_INSIDE.items(), ("h", "tanh")]:
            location = f'loc("jit(f)/jvp({scope}{index})/{operation}")'
            yield f"  %{name}{index} = stablehlo.{operation} {value} : tensor<1024xf32> {location}"
            value = f"%{name}{index}"
    yield f'  %y = stablehlo.exponential {value} : tensor<1024xf32> loc("jit(f)/jvp(head)/exp")'
    yield '  %zero = stablehlo.constant dense<0.0> : tensor<f32> loc("jit(f)/jvp(head)/reduce_sum")'
    yield (
        "  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : "
        '(tensor<1024xf32>, tensor<f32>) -> tensor<f32> loc("jit(f)/jvp(head)/reduce_sum")'
    )


def _backward(scope: str, layers: int) -> Iterator[str]:
    yield f'  %g{layers} = stablehlo.multiply %ct, %y : tensor<1024xf32> loc("jit(f)/transpose(jvp(head))/mul")'
    for index in reversed(range(layers)):
        gradient = f"%g{index + 1}"
        for name in reversed(_INSIDE):
            result = f"%g{index}" if name == "a" else f"%d{name}{index}"
            location = f'loc("jit(f)/transpose(jvp({scope}{index}))/mul")'
            yield f"  {result} = stablehlo.multiply {gradient}, %{name}{index} : tensor<1024xf32> {location}"
            gradient = result
