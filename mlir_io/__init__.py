"""Parsing and printing of MLIR text: parser, printer, aliases, exact numbers, and workarounds for xDSL."""
