"""Makers of compilers for strata.compile."""
