"""The parser and the printer of MLIR text: aliases, locations, exact numbers, and workarounds for xDSL."""
