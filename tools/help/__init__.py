"""Describe the tools: print help on passes and options, shell completion scripts, and the dialect in IRDL."""
