"""SummaryWriter: PyTorch's methods by which a program reports what TensorBoard shows."""

from __future__ import annotations

import os
import socket
import threading
import time

import strata
from strata import Tensor
from strata._missing import missing_function
from strata.utils.tensorboard import _values
from strata.utils.tensorboard._wire import double, integer, message, write_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["SummaryWriter"]
_WAY_OUT = "numbers, histograms, images, figures, text, curves, graphs and embeddings are"

_lock = threading.Lock()
_files = 0


class _EventFile:
    """One events file, which is written through at flush, and every `flush_secs` seconds at the next event."""

    def __init__(self, folder: str, flush_secs: float, suffix: str) -> None:
        global _files
        os.makedirs(folder, exist_ok=True)
        with _lock:
            _files += 1
            number = _files
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{number}{suffix}"
        self._file = open(os.path.join(folder, name), "wb")  # noqa: SIM115
        self._flush_secs, self._flushed = flush_secs, time.monotonic()
        self.write(message(3, "brain.Event:2"))

    def write(self, what: bytes, step: int | None = None, walltime: float | None = None) -> None:
        event = double(1, time.time() if walltime is None else walltime) + (b"" if step is None else integer(2, int(step))) + what
        with _lock:
            write_record(self._file, event)
        if time.monotonic() - self._flushed >= self._flush_secs:
            self.flush()

    def flush(self) -> None:
        self._file.flush()
        self._flushed = time.monotonic()

    def close(self) -> None:
        self._file.close()


class SummaryWriter:
    """Writes events to a file in `log_dir`, a new folder under runs/ unless given, with `comment` at its name's end.

    global_step of the methods: the place on the horizontal axis. walltime: seconds since 1970, now unless given. Values may be
    tensors, arrays or numbers. A context manager, which closes the file. Methods raise ValueError for values that do not fit.
    """

    def __init__(
        self,
        log_dir: str | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            log_dir = os.path.join("runs", time.strftime("%b%d_%H-%M-%S") + "_" + socket.gethostname() + comment)
        self.log_dir, self.purge_step, self.max_queue = str(log_dir), purge_step, max_queue
        self.flush_secs, self.filename_suffix = flush_secs, filename_suffix
        self.all_writers: dict[str, _EventFile] = {}
        first = self._file_of(self.log_dir)
        if purge_step is not None:  # what an earlier run wrote from that step on is void
            first.write(message(7, integer(1, 1)), purge_step)

    def _file_of(self, folder: str) -> _EventFile:
        if folder not in self.all_writers:
            self.all_writers[folder] = _EventFile(folder, self.flush_secs, self.filename_suffix)
        return self.all_writers[folder]

    def _add(self, summary: bytes, step: Any, walltime: float | None, folder: str | None = None) -> None:
        step = None if step is None else int(_values.number_of(step, "global_step"))
        self._file_of(folder or self.log_dir).write(message(5, summary), step, walltime)

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Any = None, walltime: float | None = None, new_style: bool = False, double_precision: bool = False
    ) -> None:
        """One number. new_style: as a tensor, of doubles where `double_precision`."""
        self._add(_values.scalar(tag, _values.number_of(scalar_value, "add_scalar"), new_style, double_precision), global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Any = None, walltime: float | None = None) -> None:
        """Several numbers in one chart: each tag has a file of its own, in a folder beside."""
        walltime = time.time() if walltime is None else walltime
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, main_tag.replace("/", "_") + "_" + tag)
            self._add(_values.scalar(main_tag, _values.number_of(value, "add_scalars")), global_step, walltime, folder)

    def add_histogram(
        self, tag: str, values: Any, global_step: Any = None, bins: Any = "tensorflow", walltime: float | None = None, max_bins: int | None = None
    ) -> None:
        """How values are distributed. bins: "tensorflow" (factors of 1.1), a number of equal bins, or edges."""
        if max_bins is not None:
            raise NotImplementedError("add_histogram: max_bins is not provided; give bins a number")
        self._add(_values.histogram(tag, values, bins), global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min: float, max: float, num: int, sum: float, sum_squares: float, bucket_limits: Any, bucket_counts: Any,  # noqa: A002
        global_step: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A histogram that is counted already: the right edge of each bucket and what it holds."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        limits, counts = _values.tensor_of(bucket_limits).tolist(), _values.tensor_of(bucket_counts).tolist()
        self._add(_values.histogram_raw(tag, min, max, num, sum, sum_squares, limits, counts), global_step, walltime)

    def add_image(self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None, dataformats: str = "CHW") -> None:
        """An image: floats from 0 to 1 or integers from 0 to 255, its dims as `dataformats` names them."""
        self._add(_values.image(tag, _values.pixels_of(img_tensor, dataformats, "add_image")), global_step, walltime)

    def add_images(self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None, dataformats: str = "NCHW") -> None:
        """Images of one size, side by side."""
        self._add(_values.image(tag, _values.pixels_of(img_tensor, dataformats, "add_images")), global_step, walltime)

    def add_figure(self, tag: str, figure: Any, global_step: Any = None, close: bool = True, walltime: float | None = None) -> None:
        """A figure of matplotlib, or several, as images."""
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        drawn = []
        for one in figure if isinstance(figure, list) else [figure]:
            canvas = FigureCanvasAgg(one)
            canvas.draw()
            drawn.append(strata.tensor(memoryview(canvas.buffer_rgba()).tolist(), dtype=strata.uint8)[..., :3])
            if close:
                pyplot.close(one)
        many = isinstance(figure, list)
        self.add_image(tag, strata.stack(drawn) if many else drawn[0], global_step, walltime, "NHWC" if many else "HWC")

    def add_text(self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None) -> None:
        """Text, which TensorBoard shows as Markdown."""
        self._add(_values.text(tag, text_string), global_step, walltime)

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: Any = None, num_thresholds: int = 127, weights: Any = None, walltime: float | None = None
    ) -> None:
        """Precision over recall. labels: 0 or 1. predictions: probabilities."""
        self._add(_values.pr_curve(tag, labels, predictions, min(num_thresholds, 127), weights), global_step, walltime)

    def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True) -> None:
        """The operators of a module for these inputs, as strata.export records them."""
        if input_to_model is None:
            raise ValueError("add_graph: expected input_to_model, a tensor or a tuple of the module's arguments, got None")
        given = (input_to_model,) if isinstance(input_to_model, Tensor) else tuple(input_to_model)
        graph = strata.export.export(model, given).graph
        if verbose:
            print(graph)
        self._file_of(self.log_dir).write(message(4, _values.graph(graph.nodes)))

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: dict[str, list] | None = None,
        run_name: str | None = None, global_step: Any = None,
    ) -> None:  # fmt: skip
        """A run's settings and what it reached, in a folder of its own: numbers, bools and text."""
        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        for summary in _values.hparams(hparam_dict, metric_dict, hparam_domain_discrete or {}):
            self._add(summary, None, None, folder)
        for name, value in metric_dict.items():
            self._add(_values.scalar(name, _values.number_of(value, "add_hparams")), global_step, None, folder)

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: Any = None, tag: str = "default", metadata_header: Any = None
    ) -> None:
        """Points for the projector: a matrix [points, dims], and of each point labels (`metadata`) and an image [points, C, H, W]."""
        points = _values.tensor_of(mat)
        if points.dim() != 2:
            raise ValueError("mat should be 2D, where mat.size(0) is the number of data points")
        place = f"{0 if global_step is None else int(global_step):05d}/{tag}"
        folder = os.path.join(self.log_dir, place)
        os.makedirs(folder, exist_ok=True)
        config = ["embeddings {", f'tensor_name: "{tag}:{place[:5]}"', f'tensor_path: "{place}/tensors.tsv"']
        self._rows(folder, "tensors.tsv", points.tolist())
        if metadata is not None:
            if len(metadata) != points.shape[0]:
                raise ValueError("#labels should equal with #data points")
            rows = [[label] if not isinstance(label, (list, tuple)) else label for label in metadata]
            self._rows(folder, "metadata.tsv", ([list(metadata_header)] if metadata_header else []) + rows)
            config.append(f'metadata_path: "{place}/metadata.tsv"')
        if label_img is not None:
            config += self._sprite(folder, place, _values.tensor_of(label_img), points.shape[0])
        with open(os.path.join(self.log_dir, "projector_config.pbtxt"), "a") as f:
            f.write("\n".join([*config, "}", ""]))

    def _rows(self, folder: str, name: str, rows: list) -> None:
        with open(os.path.join(folder, name), "w") as f:
            f.writelines("\t".join(str(x) for x in row) + "\n" for row in rows)

    def _sprite(self, folder: str, place: str, images: Tensor, points: int) -> list[str]:
        """One picture of all images, rows of as many as there are rows."""
        if images.shape[0] != points:
            raise ValueError("#images should equal with #data points")
        side = int(points**0.5 - 1e-9) + 1
        blank = images.new_zeros(side * side - points, *images.shape[1:])
        grid = strata.cat([images, blank]).reshape(side, side, *images.shape[1:]).permute(2, 0, 3, 1, 4)
        pixels = _values.pixels_of(grid.reshape(images.shape[1], side * images.shape[2], -1), "CHW", "add_embedding")
        with open(os.path.join(folder, "sprite.png"), "wb") as f:
            f.write(_values.png(pixels))
        sizes = [f"single_image_dim: {images.shape[3]}", f"single_image_dim: {images.shape[2]}"]
        return ["sprite {", f'image_path: "{place}/sprite.png"', *sizes, "}"]

    add_audio = missing_function("SummaryWriter", "add_audio", _WAY_OUT)
    add_custom_scalars = missing_function("SummaryWriter", "add_custom_scalars", _WAY_OUT)
    add_mesh = missing_function("SummaryWriter", "add_mesh", _WAY_OUT)
    add_video = missing_function("SummaryWriter", "add_video", _WAY_OUT)

    def flush(self) -> None:
        """Writes through what was added."""
        for file in self.all_writers.values():
            file.flush()

    def close(self) -> None:
        """Closes the files; a method that is called later begins new ones."""
        for file in self.all_writers.values():
            file.close()
        self.all_writers.clear()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
