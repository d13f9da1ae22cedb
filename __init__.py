"""Trade computation for memory in training, as MLIR passes in xDSL."""
