"""Models and weights from the network: nothing here downloads. Files that are in the folder already are found."""

from __future__ import annotations

import os
import re
from urllib.parse import urlparse as urlparse

from strata._missing import missing_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["download_url_to_file", "get_dir", "list", "load", "load_state_dict_from_url", "set_dir"]

# Names of files of weights end in the beginning of their digest.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")

_FILE = "download the file by other means and give it to strata.load"

download_url_to_file = missing_function(__name__, "download_url_to_file", _FILE)
list = missing_function(__name__, "list", "import the model's own package")  # noqa: A001
load = missing_function(__name__, "load", "import the model's own package, and load its weights with strata.load")

def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True, check_hash: bool = False,
    file_name: str | None = None, weights_only: bool = False,
) -> Any:  # fmt: skip
    """The file of that name in model_dir (by default `checkpoints` in get_dir()). NotImplementedError where it is not there."""
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    path = os.path.join(folder, file_name or os.path.basename(urlparse(url).path))
    if not os.path.exists(path):
        raise NotImplementedError(f"hub.load_state_dict_from_url is not provided: nothing is downloaded; put the file of {url} at {path}")
    from strata.serialization import load as read

    return read(path, map_location=map_location, weights_only=weights_only)


_folder: str | None = None


def _get_torch_home() -> str:
    """The folder of the environment, by PyTorch's variables."""
    cache = os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.expanduser(os.getenv("TORCH_HOME", cache))


def get_dir() -> str:
    """The folder where weights are looked for: what set_dir was given, or that of the environment."""
    return os.path.join(_get_torch_home(), "hub") if _folder is None else _folder


def set_dir(d: str | os.PathLike) -> None:
    """Sets the folder."""
    global _folder
    _folder = os.path.expanduser(os.fspath(d))
