"""ChannelShuffle under the name that PyTorch has for its file."""

from __future__ import annotations

from .pixelshuffle import ChannelShuffle

__all__ = ["ChannelShuffle"]
