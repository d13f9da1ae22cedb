"""The pipeline of every rewrite: parse, verify, transform, verify, prove, print; and queries on memory."""
