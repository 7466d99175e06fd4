"""State outside of the arguments that decides what a checkpointed region computes."""

import warnings
from contextlib import ExitStack, contextmanager

import strata
from strata.utils._pytree import tree_leaves


def _by_type(nest):
    """The tensors of a nest that are on devices other than the CPU, by the type of device."""
    found = {}
    for leaf in tree_leaves(nest):
        if isinstance(leaf, strata.Tensor) and leaf.device.type not in ("cpu", "meta"):
            found.setdefault(leaf.device.type, []).append(leaf)
    return found


def get_device_states(*args):
    """The numbers of the devices on which tensors among the arguments (nests of them) are, and the states of those
    devices' generators.

    They are of one type of device, the first tensor's; a warning tells of others. The CPU's tensors have no part in it.
    """
    found = _by_type(args)
    if not found:
        return [], []
    kind = next(iter(found))
    if len(found) > 1:
        kinds = ", ".join(found)
        warnings.warn(f"get_device_states: tensors are on devices of the types {kinds}; only {kind}'s states are given", stacklevel=2)
    devices = list(dict.fromkeys(t.get_device() for t in found[kind]))
    return devices, [strata.get_device_module(kind).get_rng_state(number) for number in devices]


def set_device_states(devices, states, *, device_type=None):
    """Puts back what get_device_states gave.

    device_type: of which type the devices are; the accelerator's where it is left out. Nothing is done for "meta".

    Raises:
        AttributeError: there are no devices of that type.
        ValueError: there are not as many states as devices.
    """
    if device_type is None:
        device_type = getattr(strata.accelerator.current_accelerator(), "type", "cpu")
    if device_type != "meta":
        for number, state in zip(devices, states, strict=True):
            strata.get_device_module(device_type).set_rng_state(state, number)


class Surroundings:
    """State outside the arguments that decides what a region computes: random numbers, autocast, the default device.

    nest: the arguments. The states of devices on which none of them is are not kept.
    """

    def __init__(self, nest, with_rng):
        found = _by_type(nest)
        self.rng = strata.get_rng_state() if with_rng else None
        self.devices = {kind: get_device_states(tensors) for kind, tensors in found.items()} if with_rng else {}
        cache = strata.is_autocast_cache_enabled()
        self.autocast = [
            (k, strata.get_autocast_dtype(k), strata.is_autocast_enabled(k), cache) for k in ("cpu", *sorted(found))
        ]
        self.default = strata.get_default_device()

    @contextmanager
    def restored(self):
        with ExitStack() as stack:
            for kind, dtype, enabled, cache in self.autocast:
                if enabled or strata.is_autocast_enabled(kind):
                    stack.enter_context(strata.autocast(kind, dtype=dtype, enabled=enabled, cache_enabled=cache))
            if self.default != strata.get_default_device():
                stack.enter_context(self.default)
            if self.rng is not None:
                stack.enter_context(strata.random.fork_rng())
                strata.set_rng_state(self.rng)
                for kind, (devices, states) in self.devices.items():
                    set_device_states(devices, states, device_type=kind)
            yield
