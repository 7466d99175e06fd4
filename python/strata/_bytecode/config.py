"""Settings of strata.compile that programs write, by PyTorch's names."""

from __future__ import annotations


class Config:
    """recompile_limit: entries of one place in a function, beyond which it runs as it is (cache_size_limit is another name of
    it). accumulated_recompile_limit: entries of all that has one code object (accumulated_cache_size_limit). The others
    change nothing."""

    def __init__(self) -> None:
        self.recompile_limit, self.accumulated_recompile_limit = 8, 256
        self.suppress_errors = self.verbose = self.capture_scalar_outputs = self.capture_dynamic_output_shape_ops = False
        self.automatic_dynamic_shapes = True

    @property
    def cache_size_limit(self) -> int:
        return self.recompile_limit

    @cache_size_limit.setter
    def cache_size_limit(self, value: int) -> None:
        self.recompile_limit = value

    @property
    def accumulated_cache_size_limit(self) -> int:
        return self.accumulated_recompile_limit

    @accumulated_cache_size_limit.setter
    def accumulated_cache_size_limit(self, value: int) -> None:
        self.accumulated_recompile_limit = value


config = Config()
