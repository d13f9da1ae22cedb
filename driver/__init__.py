"""The Python API, and the code that it shares with the tools and frontends.

The modules at the top level contain the API functions and check their keywords. Each folder contains the code for one
of their tasks.
"""
