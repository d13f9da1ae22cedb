"""Parse pipelines, and run their passes on a module. `pipeline.py` is the entry point."""
