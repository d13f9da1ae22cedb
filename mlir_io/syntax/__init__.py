"""The syntax of numbers and locations, which the parser, the printer and the workarounds for xDSL share."""
