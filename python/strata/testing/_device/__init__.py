"""Grading a device's plugin: `python -m strata.backend_test`."""
