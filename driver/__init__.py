"""The Python API, and the code that it shares with the tools and frontends.

The modules at the top contain the functions of the API and check their keywords. Each folder serves one task of them.
"""
