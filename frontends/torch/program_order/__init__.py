"""Steps that run in program order, as with the backend `aot_eager`: the executor, and peaks in that order."""
