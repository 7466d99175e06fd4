"""Export to other runtimes: not provided yet."""

from __future__ import annotations

from strata._missing import missing_function

export = missing_function(__name__, "export", "save model.state_dict() with strata.save and export it from PyTorch")


def is_in_onnx_export() -> bool:
    """False: nothing is being exported."""
    return False
