"""Describe the tools: help on passes and options, shell completion, and the dialect in IRDL."""
