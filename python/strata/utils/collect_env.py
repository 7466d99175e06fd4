"""What reports of faults are asked for: versions, and what `strata doctor` finds on this machine."""

from __future__ import annotations

import platform
import subprocess
import sys

import strata

__all__ = ["get_pretty_env_info", "main"]


def get_pretty_env_info() -> str:
    """A text of several lines, made for people."""
    head = [
        f"Strata version: {strata.__version__}",
        f"Python version: {sys.version}",
        f"Python platform: {platform.platform()}",
    ]
    # In a process of its own, since it loads every plugin that is named.
    found = subprocess.run([sys.executable, "-m", "strata.doctor"], capture_output=True, text=True, check=False)
    return "\n".join([*head, "", found.stdout.rstrip()])


def main() -> None:
    """Prints it."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
