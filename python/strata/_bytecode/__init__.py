"""Capture of Python functions from their bytecode: docs/compile.md."""
