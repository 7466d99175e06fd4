"""Plugins of devices that installed packages offer."""

from __future__ import annotations


def files() -> list[str]:
    """The shared objects that entry points of the group `strata.devices` give: each names a function without arguments
    that returns the file's path, or a string."""
    import warnings
    from importlib.metadata import entry_points

    found = []
    for entry in entry_points(group="strata.devices"):
        try:
            value = entry.load()
            found.append(str(value() if callable(value) else value))
        except Exception as error:
            warnings.warn(f"the plugin {entry.name!r} of a package can't be found: {error}", stacklevel=2)
    return found
