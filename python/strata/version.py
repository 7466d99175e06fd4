"""The version of Strata."""

__version__ = "0.1.0"
