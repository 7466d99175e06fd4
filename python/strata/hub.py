"""Models and weights from the network: not provided, nothing here downloads."""

from __future__ import annotations

import re
from urllib.parse import urlparse as urlparse

from strata._missing import missing_function

__all__ = ["download_url_to_file", "get_dir", "list", "load", "load_state_dict_from_url", "set_dir"]

# Names of files of weights end in the beginning of their digest.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")

_FILE = "download the file by other means and give it to strata.load"

download_url_to_file = missing_function(__name__, "download_url_to_file", _FILE)
get_dir = missing_function(__name__, "get_dir", "there is no folder of downloads")
list = missing_function(__name__, "list", "import the model's own package")  # noqa: A001
load = missing_function(__name__, "load", "import the model's own package, and load its weights with strata.load")
load_state_dict_from_url = missing_function(__name__, "load_state_dict_from_url", _FILE)
set_dir = missing_function(__name__, "set_dir", "there is no folder of downloads")
