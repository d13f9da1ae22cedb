"""The Python API, and the steps of a rewrite that it shares with the tools: parsing, pipelines, verification, proof,
memory queries and the keys of the disk cache."""
