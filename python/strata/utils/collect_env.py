"""What reports of faults are asked for: versions, and what `strata doctor` finds on this machine."""

from __future__ import annotations

import platform
import sys

import strata
from strata import doctor

__all__ = ["get_pretty_env_info", "main"]


def get_pretty_env_info() -> str:
    """A text of several lines, made for people."""
    head = [
        f"Strata version: {strata.__version__}",
        f"Python version: {sys.version}",
        f"Python platform: {platform.platform()}",
    ]
    return "\n".join([*head, "", doctor.report()])


def main() -> None:
    """Prints it."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
