"""Objects between processes: a pickle whose tensors and arrays travel beside it, as raw memory.

A small message goes through the connection as it is. A large one is written into an anonymous memory file, whose
descriptor is passed over; the receiver maps it, and its tensors live in the mapping without a copy. The file has no
name, so nothing is left behind however a process ends.
"""

import copyreg
import io
import mmap
import os
import pickle
import struct
import tempfile
import weakref
from multiprocessing.reduction import DupFd, ForkingPickler, recv_handle, send_handle

import strata

_HEAD = struct.Struct("<BQ")  # kind of message, size of what follows or of the file
_COUNT = struct.Struct("<QQ")  # size of the pickle, number of buffers; one size per buffer follows
_INLINE, _FILE = 0, 1
_ALIGN = 64
# Each mapping keeps a descriptor open, so a caller that hoards batches gets copies from this many on.
_MAX_MAPPINGS = 256
_mappings = weakref.WeakSet()


def _memory_of(t):
    """The bytes of a contiguous CPU tensor, without NumPy."""
    import ctypes

    return (ctypes.c_char * (t.numel() * t.element_size())).from_address(t.data_ptr())


def _rebuild_tensor(buffer, dtype, shape, requires_grad):
    dtype = getattr(strata, dtype)
    t = strata.empty(shape, dtype=dtype) if buffer is None else strata.frombuffer(buffer, dtype=dtype).reshape(shape)
    return t.requires_grad_() if requires_grad else t


class _Pickler(pickle.Pickler):
    """Protocol 5 with out-of-band buffers, also for tensors, plus what multiprocessing knows to send."""

    def __init__(self, file, buffers):
        super().__init__(file, protocol=5, buffer_callback=buffers.append)
        self.dispatch_table = copyreg.dispatch_table | ForkingPickler._extra_reducers
        self.keep = []

    def reducer_override(self, obj):
        if type(obj) is not strata.Tensor or obj.device.type != "cpu":
            return NotImplemented
        if obj.requires_grad and not obj.is_leaf:
            raise RuntimeError(
                "DataLoader: a tensor with history (requires_grad=True, not a leaf) cannot go to another process; "
                "call .detach() on it first"
            )
        memory = None
        if obj.numel():
            dense = obj.detach().contiguous()
            self.keep.append(dense)
            memory = pickle.PickleBuffer(_memory_of(dense))
        dtype = str(obj.dtype).rsplit(".", 1)[-1]
        return _rebuild_tensor, (memory, dtype, tuple(obj.shape), obj.requires_grad)


class _Message:
    """One pickled object: the head (sizes and pickle) and the raw buffers, which `keep` keeps alive."""

    def __init__(self, obj):
        buffers, file = [], io.BytesIO()
        pickler = _Pickler(file, buffers)
        pickler.dump(obj)
        self.keep = pickler.keep
        self.buffers = [b.raw() for b in buffers]
        payload = file.getbuffer()
        sizes = [b.nbytes for b in self.buffers]
        self.head = _COUNT.pack(len(payload), len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes) + payload
        self.size = len(self.head)
        for size in sizes:
            self.size = _aligned(self.size) + size

    def pieces(self):
        """What is to be written one after the other, with the gaps that align each buffer."""
        yield self.head
        at = len(self.head)
        for b in self.buffers:
            gap = _aligned(at) - at
            if gap:
                yield bytes(gap)
            yield b
            at += gap + b.nbytes

    def to_file(self):
        """Descriptor of a memory file with the message."""
        fd = _memory_file()
        try:
            _write(fd, [memoryview(piece) for piece in self.pieces() if len(piece)])
        except BaseException:
            os.close(fd)
            raise
        return fd


def _write(fd, views):
    first = 0
    while first < len(views):
        done = os.writev(fd, views[first : first + 512])
        while first < len(views) and done >= len(views[first]):
            done -= len(views[first])
            first += 1
        if done:
            views[first] = views[first][done:]


def _aligned(n):
    return -(-n // _ALIGN) * _ALIGN


def _memory_file():
    if hasattr(os, "memfd_create"):
        return os.memfd_create("strata-data")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _parse(view, slice_buffer):
    """The object in a message; `slice_buffer(start, end)` makes the memory of one of its buffers."""
    length, count = _COUNT.unpack_from(view)
    at = _COUNT.size + 8 * count
    sizes = struct.unpack_from(f"<{count}Q", view, _COUNT.size)
    payload = view[at : at + length]
    at += length
    buffers = []
    for size in sizes:
        at = _aligned(at)
        buffers.append(slice_buffer(at, at + size))
        at += size
    return pickle.loads(payload, buffers=buffers)


def _map_file(fd, size, private=False):
    """The object in a memory file. `private`: writes of this process stay its own."""
    if private:
        area = mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE)
    else:
        area = mmap.mmap(fd, size, flags=mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))
    view = memoryview(area)
    if len(_mappings) < _MAX_MAPPINGS:
        _mappings.add(area)
        return _parse(view, lambda start, end: view[start:end])
    return _parse(view, lambda start, end: bytearray(view[start:end]))


def send(conn, obj, inline_limit):
    """Sends `obj`, through a memory file where it is larger than `inline_limit` bytes."""
    message = _Message(obj)
    if message.size <= inline_limit:
        conn.send_bytes(_HEAD.pack(_INLINE, message.size) + b"".join(message.pieces()))
        return
    fd = message.to_file()
    try:
        conn.send_bytes(_HEAD.pack(_FILE, message.size))
        send_handle(conn, fd, None)
    finally:
        os.close(fd)


def receive(conn):
    """The next object; EOFError where the other side is gone."""
    data = memoryview(conn.recv_bytes())
    kind, size = _HEAD.unpack_from(data)
    if kind == _INLINE:
        body = data[_HEAD.size :]
        return _parse(body, lambda start, end: bytearray(body[start:end]))
    fd = recv_handle(conn)
    try:
        return _map_file(fd, size)
    finally:
        os.close(fd)


class Shipment:
    """An argument of a worker process. Under fork it is simply there; else it is pickled once for all workers, which
    map the same tensors (each sees its own writes only)."""

    def __init__(self, obj):
        self.obj = obj
        self._fd = None
        self._close = None

    def __reduce__(self):
        # The pickle is made anew for each worker, as it may hold descriptors of that worker; the buffers are not.
        message = _Message(self.obj)
        if self._fd is None or os.fstat(self._fd).st_size != message.size:
            self.close()
            self._fd = message.to_file()
            self._close = weakref.finalize(self, os.close, self._fd)
        else:
            os.pwrite(self._fd, message.head, 0)
        return _arrive, (DupFd(self._fd), message.size)

    def close(self):
        if self._close is not None:
            self._close()
            self._fd = self._close = None


def _arrive(handle, size):
    fd = handle.detach()
    try:
        return Shipment(_map_file(fd, size, private=True))
    finally:
        os.close(fd)
