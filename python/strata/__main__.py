"""`strata COMMAND`, or `python -m strata COMMAND`: doctor, warm and backend-test, each with its own `--help`."""

from __future__ import annotations

import importlib
import sys

COMMANDS = {
    "doctor": ("strata.doctor", "what was found on this machine, what is missing, and the line that mends it"),
    "warm": ("strata.warm", "compiles a device's kernels ahead"),
    "backend-test": ("strata.backend_test", "grades a device's plugin"),
}


def main() -> int:
    """Runs the command that the first argument names; 2 where there is none of that name."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name in COMMANDS:
        module = importlib.import_module(COMMANDS[name][0])
        sys.argv[:2] = [f"strata {name}"]
        return module.main()
    out = sys.stdout if name in ("", "-h", "--help") else sys.stderr
    if out is sys.stderr:
        print(f"strata: expected a command, got '{name}'", file=out)
    print("\n".join(["usage: strata COMMAND ...", *(f"  {c:14}{what}" for c, (_, what) in COMMANDS.items())]), file=out)
    return 0 if out is sys.stdout else 2


if __name__ == "__main__":
    sys.exit(main())
