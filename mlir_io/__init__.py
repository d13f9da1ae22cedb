"""Reading and printing MLIR text: parser, printer, aliases, numbers, and workarounds for xDSL."""
