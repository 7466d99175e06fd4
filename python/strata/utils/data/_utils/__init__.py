"""Parts of the data loader under the names that PyTorch has for their files."""

from __future__ import annotations

from strata import _lazy

_lazy.aliases(globals(), {"collate": ".._collate", "worker": ".._worker"})
