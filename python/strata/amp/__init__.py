"""Mixed precision: `autocast` chooses dtypes operator by operator, `GradScaler` keeps small gradients alive."""

from strata.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from strata.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
