"""The fast path for common tokens returns the same tokens as xDSL's own lexer."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

from recompute.mlir_io.lexer import Lexer

ROOT = Path(__file__).resolve().parents[3]
TEXTS = [*sorted((ROOT / "test" / "filecheck").rglob("*.mlir")), ROOT / "examples" / "stablehlo" / "unet.small.mlir"]
PIECES = """
a _a a.b$c A9 %a %9 %9a %-x %a.b %$ % @a @"ab" #a !a ^a a:b :: -> - --> ... {-# #-} { } ( ) [ ] < > = == + * ? | / //
/x 1 1.5e3 0x1F 8x4xf32 "s" "" a//b
""".split()


def tokens(lexer: MLIRLexer) -> list[tuple[MLIRTokenKind, int, int] | str]:
    """Return all tokens with their positions; the message of an error ends the list."""
    matches: list[tuple[MLIRTokenKind, int, int] | str] = []
    try:
        while not matches or matches[-1][0] is not MLIRTokenKind.EOF:
            token = lexer.lex()
            matches.append((token.kind, token.span.start, token.span.end))
    except ParseError as error:
        matches.append(error.msg)
    return matches


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_tokens_of_files_match_xdsl(path: Path) -> None:
    text = path.read_text()
    actual = tokens(Lexer(Input(text, "a")))
    assert len(actual) > 20 and not isinstance(actual[-1], str)
    assert actual == tokens(MLIRLexer(Input(text, "a")))


def test_tokens_of_all_pairs_match_xdsl() -> None:
    for between in ("", " ", "\n// c\n", "\t"):
        for piece in PIECES:
            for other in PIECES:
                text = f"{piece}{between}{other}"
                assert tokens(Lexer(Input(text, "a"))) == tokens(MLIRLexer(Input(text, "a"))), text
