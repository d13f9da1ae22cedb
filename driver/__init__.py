"""The road that every rewrite takes: parse, verify, change, verify, prove, print. Below the tools and the frontends."""
