"""4x4 convolutions of stride 2 and their transposes, summed in the vector registers of a processor with AVX-512.

oneDNN computes most of them at the speed of its matrix products, but not the transposed ones, which write every
second pixel, nor those of the few channels next to an image or of the few pixels next to the code. Here all are
products of one kind: a tile of pixels times 32 channels stays in registers while the pixels' neighbours stream by.

Maps are float32, channels last, and passed by their addresses. Where neighbours are read, the map has a frame of one
pixel of zeros, so that no pixel is a special case. Callers see to it that the processor has the registers, that the
smaller map of a layer has an even height and width, and that channels are a multiple of 32, or few on the image's side.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from torch import Tensor

from unweave.compiled import compiled

LANES = 16  # of a register: float32 numbers
BLOCK = 2 * LANES  # channels of a tile
FRAMED_BYTES = 1 << 18  # of framed samples whose weight gradients are summed together: they stay in the cache

RELU, LINEAR = np.float32(0), np.float32(-np.inf)  # the lowest value of an activation
_ONE = np.ones(1, np.float32)

Array = np.ndarray[Any, np.dtype[np.float32]]
NUMBER, ADDRESS, VECTOR = ir.FloatType(), ir.IntType(64), ir.VectorType(ir.FloatType(), LANES)


# --- whole layers: tensors in, tensors out --------------------------------------------------------------


def conv(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """ReLU of a convolution of x (n, C, 2H, 2W) with weight (O, C, 4, 4), stride 2 and padding 1: (n, O, H, W).

    Examples
    --------
    >>> import torch
    >>> x, weight, bias = torch.ones(1, 1, 4, 4), torch.ones(32, 1, 4, 4), torch.zeros(32)
    >>> conv(x, weight, bias)[0, 0].tolist()
    [[9.0, 9.0], [9.0, 9.0]]
    """
    n, channels, height, width = x.shape
    outputs = weight.shape[0]
    y = _empty(n, outputs, height // 2, width // 2)
    packed, start = _packed_for_stride_two(weight), bias.contiguous()

    def run(first: int, last: int, part: int) -> None:
        frame = _frames(1, height, width, channels)
        maps = x.data_ptr(), y.data_ptr(), _address(frame), _address(packed), start.data_ptr()
        _conv(*maps, first, last, height // 2, width // 2, channels, outputs)

    _in_parts(n, run)
    return y


def conv_transpose(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """ReLU of a transposed convolution of x (n, C, H, W) with weight (C, O, 4, 4), stride 2: (n, O, 2H, 2W).

    Examples
    --------
    >>> import torch
    >>> x, weight, bias = torch.ones(1, 32, 4, 4), torch.ones(32, 32, 4, 4), torch.zeros(32)
    >>> conv_transpose(x, weight, bias).shape
    torch.Size([1, 32, 8, 8])
    """
    n, channels, height, width = x.shape
    outputs = weight.shape[1]
    y = _empty(n, outputs, 2 * height, 2 * width)
    packed, start = _packed_for_doubling(weight), bias.contiguous()

    def run(first: int, last: int, part: int) -> None:
        frame = _frames(1, height, width, channels)
        maps = x.data_ptr(), y.data_ptr(), _address(frame), _address(packed), start.data_ptr()
        _conv_transpose(*maps, first, last, height, width, channels, outputs)

    _in_parts(n, run)
    return y


def conv_transpose_to_image(x: Tensor, weight: Tensor) -> Tensor:
    """As :func:`conv_transpose`, without bias and ReLU, for the few channels O of an image, and channels first.

    Examples
    --------
    >>> import torch
    >>> x, weight = torch.ones(1, 32, 4, 4), torch.ones(32, 1, 4, 4)
    >>> conv_transpose_to_image(x, weight).shape
    torch.Size([1, 1, 8, 8])
    """
    n, channels, height, width = x.shape
    outputs = weight.shape[1]
    frames = np.zeros((n, outputs, 2 * height + 2, 2 * width + 2), np.float32)
    rows = weight.detach().reshape(channels, -1).contiguous()
    zeros = np.zeros(rows.shape[1], np.float32)

    def run(first: int, last: int, part: int) -> None:
        patches = np.empty(height * width * rows.shape[1], np.float32)
        maps = x.data_ptr(), rows.data_ptr(), _address(patches), _address(zeros)
        _to_frames(*maps, patches, frames, first, last, height, width, channels)

    _in_parts(n, run)
    return torch.from_numpy(frames[:, :, 1:-1, 1:-1].copy())


def conv_gradients(
    x: Tensor, weight: Tensor, y: Tensor, gradient: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The gradients for x, weight and bias of y = ``conv(x, weight, bias)``, where ``wanted``.

    Examples
    --------
    >>> import torch
    >>> x, weight = torch.ones(1, 1, 4, 4), torch.ones(32, 1, 4, 4)
    >>> y, gradient = torch.ones(1, 32, 2, 2), torch.ones(1, 32, 2, 2)
    >>> conv_gradients(x, weight, y, gradient, (False, True, True))[1].shape
    torch.Size([32, 1, 4, 4])
    """
    n, channels, height, width = x.shape
    outputs = weight.shape[0]
    height, width = height // 2, width // 2
    group = _group((2 * height, 2 * width, channels), (height, width, outputs))
    packed = _packed_for_doubling(weight) if wanted[0] else None
    for_x = _empty(n, channels, 2 * height, 2 * width) if wanted[0] else None
    sums = _Sums(outputs, channels, outputs, wanted)
    zeros = np.zeros(channels, np.float32)

    def run(first: int, last: int, part: int) -> None:
        large_frames = _frames(group, 2 * height, 2 * width, channels)
        small_frames = _frames(group, height, width, outputs)
        maps = x.data_ptr(), y.data_ptr(), gradient.data_ptr(), _address(large_frames), _address(small_frames)
        others = _address(packed), _address(zeros), _address(_ONE), _address(for_x), *sums.addresses(part)
        _conv_gradients(*maps, *others, first, last, group, height, width, channels, outputs)

    _in_parts(n, run)
    return for_x, *sums.totals()


def conv_transpose_gradients(
    x: Tensor, weight: Tensor, y: Tensor | None, gradient: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The gradients for x, weight and bias of y = ``conv_transpose(x, weight, bias)``, where ``wanted``.

    With y = None they are those of ``conv_transpose_to_image``, which has no bias.

    Examples
    --------
    >>> import torch
    >>> x, weight, gradient = torch.ones(1, 32, 4, 4), torch.ones(32, 1, 4, 4), torch.ones(1, 1, 8, 8)
    >>> conv_transpose_gradients(x, weight, None, gradient, (True, True, False))[0].shape
    torch.Size([1, 32, 4, 4])
    """
    n, channels, height, width = x.shape
    outputs = weight.shape[1]
    group = _group((2 * height, 2 * width, outputs))
    packed = _packed_for_stride_two(weight) if wanted[0] else None
    for_x = _empty(n, channels, height, width) if wanted[0] else None
    sums = _Sums(channels, outputs, outputs, wanted)
    zeros = np.zeros(channels, np.float32)

    def run(first: int, last: int, part: int) -> None:
        frames = _frames(group, 2 * height, 2 * width, outputs)
        maps = x.data_ptr(), _address(y), gradient.data_ptr(), _address(frames)
        others = _address(packed), _address(zeros), _address(_ONE), _address(for_x), *sums.addresses(part)
        _conv_transpose_gradients(*maps, *others, first, last, group, height, width, channels, outputs)

    _in_parts(n, run)
    return for_x, *sums.totals()


class _Sums:
    """Gradients for a weight (small, large, 4, 4) and a bias, where wanted: one of each for every part of a batch."""

    def __init__(self, small: int, large: int, biases: int, wanted: Sequence[bool]) -> None:
        self.is_few = large % 8 != 0  # an image's channels: a row of four pixels is no whole tile
        shape = (4, 4, large, small) if self.is_few else (small, 4, 4, large)
        parts = torch.get_num_threads()
        zeros = partial(torch.zeros, dtype=torch.float32, device="cpu")
        self.weights = zeros(parts, *shape) if wanted[1] else None
        self.biases = zeros(parts, biases) if wanted[2] else None

    def addresses(self, part: int) -> tuple[int, int]:
        weight, bias = (None if sums is None else sums[part] for sums in (self.weights, self.biases))
        return _address(weight), _address(bias)

    def totals(self) -> tuple[Tensor | None, Tensor | None]:
        weight, bias = (None if sums is None else _total(sums) for sums in (self.weights, self.biases))
        if weight is not None:
            weight = weight.permute((3, 2, 0, 1) if self.is_few else (0, 3, 1, 2))
        return weight, bias


def _total(parts: Tensor) -> Tensor:
    return parts[0] if len(parts) == 1 else parts.sum(0)


def _in_parts(n: int, run: Callable[[int, int, int], None]) -> None:
    """Call ``run`` for each of torch's threads: with the bounds of its part of a batch, and its number."""
    threads = torch.get_num_threads()
    bounds = [n * part // threads for part in range(threads + 1)]
    parts = [(bounds[part], bounds[part + 1], part) for part in range(threads)]
    others = [_pool(os.getpid(), threads).submit(run, *part) for part in parts[1:]]
    run(*parts[0])
    for other in others:
        other.result()


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads beside the one that calls; a forked process has none of its parent's."""
    return ThreadPoolExecutor(threads - 1, "unweave-conv")


def _empty(*shape: int) -> Tensor:
    """Memory for a map, whatever torch's default type and device are; no view, so that it can be changed in place."""
    return torch.empty(shape, dtype=torch.float32, device="cpu", memory_format=torch.channels_last)


def _frames(samples: int, height: int, width: int, channels: int) -> Array:
    return np.zeros((samples, height + 2, width + 2, channels), np.float32)


def _group(*maps: tuple[int, int, int]) -> int:
    """How many samples with maps of these sizes are framed together."""
    numbers = sum((height + 2) * (width + 2) * channels for height, width, channels in maps)
    return max(1, FRAMED_BYTES // (4 * numbers))


def _address(array: Tensor | Array | None) -> int:
    if array is None:
        return 0
    return array.data_ptr() if isinstance(array, Tensor) else array.ctypes.data


def _packed_for_stride_two(weight: Tensor) -> Array:
    rows = _channels_last_rows(weight)
    packed = np.empty((4, 4, rows.shape[3], rows.shape[0]), np.float32)
    _pack_for_stride_two(rows, packed)
    return packed


def _packed_for_doubling(weight: Tensor) -> Array:
    rows = _channels_last_rows(weight)
    packed = np.empty((2, 2, 2, 2, rows.shape[0], rows.shape[3]), np.float32)
    _pack_for_doubling(rows, packed)
    return packed


def _channels_last_rows(weight: Tensor) -> Array:
    rows = weight.detach().contiguous(memory_format=torch.channels_last).permute(0, 2, 3, 1)
    return np.ascontiguousarray(rows.numpy())


# --- the same on addresses ------------------------------------------------------------------------------


@compiled
def _conv(x, y, frame, weight, bias, first, last, height, width, channels, outputs):
    for sample in range(first, last):
        _frame(x + 16 * sample * height * width * channels, 0, frame, 2 * height, 2 * width, channels)
        result = y + 4 * sample * height * width * outputs
        _stride_two(frame, weight, bias, RELU, result, height, width, channels, outputs)


@compiled
def _conv_transpose(x, y, frame, weight, bias, first, last, height, width, channels, outputs):
    for sample in range(first, last):
        _frame(x + 4 * sample * height * width * channels, 0, frame, height, width, channels)
        result = y + 16 * sample * height * width * outputs
        _doubling(frame, weight, bias, RELU, result, height, width, channels, outputs)


@compiled
def _conv_gradients(
    x, y, gradient, large_frames, small_frames, weight, zeros, one, for_x, for_weight, for_bias,
    first, last, group, height, width, channels, outputs,
):  # fmt: skip
    """``height`` and ``width`` are those of y."""
    large, small = 16 * (height + 1) * (width + 1) * channels, 4 * (height + 2) * (width + 2) * outputs
    row = 4 * (width + 2) * outputs
    inside, steps = small_frames + row + 4 * outputs, (small, row, 4 * outputs)
    for start in range(first, last, group):
        samples = min(group, last - start)
        for i in range(samples):
            at_y = 4 * (start + i) * height * width * outputs
            at_x = 16 * (start + i) * height * width * channels
            _frame(gradient + at_y, y + at_y, small_frames + i * small, height, width, outputs)
            if for_weight != 0:
                _frame(x + at_x, 0, large_frames + i * large, 2 * height, 2 * width, channels)
            if for_x != 0:
                small_frame, result = small_frames + i * small, for_x + at_x
                _doubling(small_frame, weight, zeros, LINEAR, result, height, width, outputs, channels)
        if for_bias != 0:
            _sum_pixels(one, inside, steps, (samples, height, width), outputs, for_bias)
        if for_weight != 0:
            size = samples, height, width
            _sum_products(inside, steps, outputs, large_frames, large, channels, size, for_weight)


@compiled
def _conv_transpose_gradients(
    x, y, gradient, frames, weight, zeros, one, for_x, for_weight, for_bias,
    first, last, group, height, width, channels, outputs,
):  # fmt: skip
    """``height`` and ``width`` are those of x."""
    large = 16 * (height + 1) * (width + 1) * outputs
    row, x_row = 8 * (width + 1) * outputs, 4 * width * channels
    for start in range(first, last, group):
        samples = min(group, last - start)
        for i in range(samples):
            at_y = 16 * (start + i) * height * width * outputs
            mask = 0 if y == 0 else y + at_y
            _frame(gradient + at_y, mask, frames + i * large, 2 * height, 2 * width, outputs)
            if for_x != 0:
                frame, result = frames + i * large, for_x + (start + i) * height * x_row
                _stride_two(frame, weight, zeros, LINEAR, result, height, width, outputs, channels)
        if for_bias != 0:
            inside, steps = frames + row + 4 * outputs, (large, row, 4 * outputs)
            _sum_pixels(one, inside, steps, (samples, 2 * height, 2 * width), outputs, for_bias)
        if for_weight != 0:
            small, steps = x + start * height * x_row, (height * x_row, x_row, 4 * channels)
            size = samples, height, width
            _sum_products(small, steps, channels, frames, large, outputs, size, for_weight)


@compiled
def _to_frames(x, weight, start, zeros, patches, frames, first, last, height, width, channels):
    """Framed images. ``weight`` (channels, 16 times those of the image): the 4x4 patch that a pixel adds to each.

    ``patches``, which starts at the address ``start``, holds those of one sample.
    """
    outputs = frames.shape[1]
    column, size = 4 * channels, 64 * outputs
    steps = column, 0, 0
    for sample in range(first, last):
        source = x + sample * height * width * column
        for block in range(0, size, 4 * LANES):
            for pixel in range(0, height * width, 4):
                here, there = source + pixel * column, start + block + pixel * size
                part = weight + block
                _tile_4x1(here, steps, 1, channels, part, size, there, (size, 0), zeros + block, LINEAR)
        for i in range(height):
            for j in range(width):
                for c in range(outputs):
                    patch = 16 * ((i * width + j) * outputs + c)
                    for a in range(4):
                        for b in range(4):
                            frames[sample, c, 2 * i + a, 2 * j + b] += patches[patch + 4 * a + b]


@compiled
def _stride_two(frame, weight, bias, floor, result, height, width, channels, outputs):
    """A convolution; ``height`` and ``width`` are those of the result. Weight: (4, 4, channels, outputs)."""
    row, column = 8 * (width + 1) * channels, 4 * outputs
    steps, result_steps = (8 * channels, 2 * row, row), (column, width * column)
    for o in range(0, column, 4 * BLOCK):
        layer = 4, 4 * channels, weight + o, column, bias + o, floor
        _tiles(frame, steps, layer, result + o, result_steps, height, width)


@compiled
def _doubling(frame, weight, bias, floor, result, height, width, channels, outputs):
    """A transposed convolution; ``height`` and ``width`` are those of the framed map.

    Every second row and column of the result, from (p, q) on, is a convolution with a quarter of the weights,
    (2, 2, channels, outputs); ``weight`` has the four one after the other.
    """
    row, column = 4 * (width + 2) * channels, 4 * outputs
    steps, result_steps = (4 * channels, row, row), (2 * column, 4 * width * column)
    for p in range(2):
        for q in range(2):
            start = frame + p * row + 4 * q * channels
            part = weight + 4 * (2 * p + q) * channels * column
            corner = result + (2 * p * width + q) * column
            for o in range(0, column, 4 * BLOCK):
                layer = 2, 2 * channels, part + o, column, bias + o, floor
                _tiles(start, steps, layer, corner + o, result_steps, height, width)


@compiled
def _tiles(x, steps, layer, y, y_steps, height, width):
    """All pixels of a map of 32 channels. A pixel's neighbours are ``segments`` runs of ``count`` numbers.

    ``steps`` are those from a column, a row and a segment to the next; ``y_steps`` from a column and a row.
    """
    segments, count, weight, step, bias, floor = layer
    columns = 8 if width % 8 == 0 else 4 if width % 4 == 0 else 2
    rows = 1 if columns == 8 else 2
    for i in range(0, height, rows):
        for j in range(0, width, columns):
            here, there = x + i * steps[1] + j * steps[0], y + i * y_steps[1] + j * y_steps[0]
            if columns == 8:
                _tile_8x1(here, steps, segments, count, weight, step, there, y_steps, bias, floor)
            elif columns == 4:
                _tile_4x2(here, steps, segments, count, weight, step, there, y_steps, bias, floor)
            else:
                _tile_2x2(here, steps, segments, count, weight, step, there, y_steps, bias, floor)


@compiled
def _sum_products(small, steps, small_channels, frames, frame_sample, channels, size, result):
    """The gradient for a weight: products of a map and its framed counterpart of twice the size, summed over pixels.

    ``steps`` are those from a sample, a row and a column of the map to the next. ``result`` is
    (small channels, 4, 4, channels), and (4, 4, channels, small channels) for the few channels of an image.
    """
    row = 8 * (size[2] + 1) * channels
    frame_steps = frame_sample, 2 * row, 8 * channels
    for a in range(4):
        if channels % 8 == 0:
            for o in range(0, small_channels, 8):
                for k in range(0, 4 * channels, BLOCK):
                    left, right = small + 4 * o, frames + a * row + 4 * k
                    there = result + 4 * ((16 * o + 4 * a) * channels + k)
                    _outer_8(left, steps, right, frame_steps, size, there, 64 * channels)
        else:
            for k in range(0, 4 * channels, 4):
                for o in range(0, small_channels, BLOCK):
                    left, right = frames + a * row + 4 * k, small + 4 * o
                    there = result + 4 * ((4 * a * channels + k) * small_channels + o)
                    _outer_4(left, frame_steps, right, steps, size, there, 4 * small_channels)


@compiled
def _sum_pixels(one, maps, steps, size, channels, result):
    """The gradient for a bias. ``one`` is the address of 1; ``steps`` and ``size`` are those of ``_sum_products``."""
    for o in range(0, 4 * channels, 4 * BLOCK):
        _outer_1(one, (0, 0, 0), maps + o, steps, size, result + o, 0)


@compiled
def _frame(source, mask, frame, height, width, channels):
    """Copy a map into its frame; numbers where ``mask`` is not positive become zero."""
    size = 4 * width * channels
    row = 4 * (width + 2) * channels
    for i in range(height):
        there = frame + (i + 1) * row + 4 * channels
        if mask == 0:
            _copy(there, source + i * size, size)  # type: ignore[call-arg]
        else:
            _copy_positive(there, source + i * size, mask + i * size, size)  # type: ignore[call-arg]


@compiled
def _pack_for_stride_two(rows, packed):
    """(outputs, 4, 4, channels) to (4, 4, channels, outputs)."""
    outputs, _, _, channels = rows.shape
    for a in range(4):
        for b in range(4):
            for c in range(channels):
                for o in range(outputs):
                    packed[a, b, c, o] = rows[o, a, b, c]


@compiled
def _pack_for_doubling(rows, packed):
    """(channels, 4, 4, outputs) to (2, 2, 2, 2, channels, outputs): p and q, and neighbours a and b of such a pixel.

    Pixel 2i + p of the result has as neighbours pixels i + p - 1 and i + p, by rows 3 - p and 1 - p of the weights.
    """
    channels, _, _, outputs = rows.shape
    for p in range(2):
        for q in range(2):
            for a in range(2):
                for b in range(2):
                    for c in range(channels):
                        for o in range(outputs):
                            packed[p, q, a, b, c, o] = rows[c, 3 - p - 2 * a, 3 - q - 2 * b, o]


# --- in registers ---------------------------------------------------------------------------------------

PAIR, THREE = types.UniTuple(types.int64, 2), types.UniTuple(types.int64, 3)
SIZE = types.int64


def _tile(columns: int, rows: int, vectors: int) -> Any:
    """A compiled function that computes a tile of ``columns`` x ``rows`` pixels and ``vectors`` x 16 channels.

    y[pixel] = max(floor, bias + sum over segments s and k < count of x[pixel + s * segment + k] * weight[s, k])
    """

    @intrinsic
    def tile(context, x, steps, segments, count, weight, step, y, y_steps, bias, floor):
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            x, steps, segments, count, weight, step, y, y_steps, bias, floor = arguments
            x_column, x_row, x_segment = cgutils.unpack_tuple(builder, steps)
            y_column, y_row = cgutils.unpack_tuple(builder, y_steps)
            code = _Code(builder)
            pixels = [(i, j) for i in range(rows) for j in range(columns)]
            starts = [code.load_vector(bias, v) for v in range(vectors)]
            sums = [[code.variable(start) for start in starts] for _ in pixels]
            offsets = [code.at(ir.Constant(ADDRESS, 0), (x_row, i), (x_column, j)) for i, j in pixels]
            segment, row = code.variable(x), code.variable(weight)
            with cgutils.for_range(builder, segments):
                here = builder.load(segment)
                with cgutils.for_range(builder, count) as loop:
                    there = builder.load(row)
                    weights = [code.load_vector(there, v) for v in range(vectors)]
                    number = code.at(here, (loop.index, 4))
                    for offset, sums_of_pixel in zip(offsets, sums, strict=True):
                        value = code.load_everywhere(builder.add(number, offset))
                        for total, vector in zip(sums_of_pixel, weights, strict=True):
                            code.add_product(total, value, vector)
                    builder.store(builder.add(there, step), row)
                builder.store(builder.add(here, x_segment), segment)
            lowest = code.everywhere(floor)
            for (i, j), sums_of_pixel in zip(pixels, sums, strict=True):
                pixel = code.at(y, (y_row, i), (y_column, j))
                for v, total in enumerate(sums_of_pixel):
                    value = builder.load(total)
                    too_low = builder.fcmp_ordered("<", value, lowest)  # false for NaN, which stays
                    code.store_vector(builder.select(too_low, lowest, value), pixel, v)
            return context.get_dummy_value()

        return types.void(SIZE, THREE, SIZE, SIZE, SIZE, SIZE, SIZE, PAIR, SIZE, types.float32), generate

    return tile


def _outer(items: int, vectors: int) -> Any:
    """A compiled function that adds products to a tile of ``items`` rows of ``vectors`` x 16 numbers.

    result[item] += sum over samples, rows and columns of left[item] (one number) * right
    """

    @intrinsic
    def outer(context, left, left_steps, right, right_steps, size, result, result_item):
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            left, left_steps, right, right_steps, size, result, result_item = arguments
            left_sample, left_row, left_column = cgutils.unpack_tuple(builder, left_steps)
            right_sample, right_row, right_column = cgutils.unpack_tuple(builder, right_steps)
            samples, height, width = cgutils.unpack_tuple(builder, size)
            code = _Code(builder)
            lines = [code.at(result, (result_item, i)) for i in range(items)]
            sums = [[code.variable(code.load_vector(line, v)) for v in range(vectors)] for line in lines]
            with cgutils.for_range(builder, samples) as sample, cgutils.for_range(builder, height) as row:
                here = code.at(left, (left_sample, sample.index), (left_row, row.index))
                there = code.at(right, (right_sample, sample.index), (right_row, row.index))
                with cgutils.for_range(builder, width) as column:
                    pixel = code.at(there, (right_column, column.index))
                    factors = [code.load_vector(pixel, v) for v in range(vectors)]
                    number = code.at(here, (left_column, column.index))
                    for item, line in enumerate(sums):
                        value = code.load_everywhere(code.at(number, (4, item)))
                        for total, vector in zip(line, factors, strict=True):
                            code.add_product(total, value, vector)
            for line, totals in zip(lines, sums, strict=True):
                for v, total in enumerate(totals):
                    code.store_vector(builder.load(total), line, v)
            return context.get_dummy_value()

        return types.void(SIZE, THREE, SIZE, THREE, THREE, SIZE, SIZE), generate

    return outer


class _Code:
    """Instructions on addresses and vectors of 16 numbers."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        kind = ir.FunctionType(VECTOR, [VECTOR] * 3)
        self.fma = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{LANES}f32")

    def variable(self, value: Any) -> Any:
        """A variable, which the compiler keeps in a register."""
        return cgutils.alloca_once_value(self.builder, value)

    def at(self, address: Any, *steps: tuple[Any, Any]) -> Any:
        """An address some steps further: pairs of a size and a number of times."""
        for size, times in steps:
            size, times = (ir.Constant(ADDRESS, n) if isinstance(n, int) else n for n in (size, times))
            address = self.builder.add(address, self.builder.mul(size, times))
        return address

    def load_vector(self, address: Any, number: int) -> Any:
        return self.builder.load(self._pointer(address, number), align=4)

    def store_vector(self, value: Any, address: Any, number: int) -> None:
        self.builder.store(value, self._pointer(address, number), align=4)

    def load_everywhere(self, address: Any) -> Any:
        """A vector that has the number at an address 16 times."""
        pointer = self.builder.inttoptr(address, NUMBER.as_pointer())
        return self.everywhere(self.builder.load(pointer, align=4))

    def everywhere(self, number: Any) -> Any:
        index = ir.IntType(32)
        undefined = ir.Constant(VECTOR, ir.Undefined)
        one = self.builder.insert_element(undefined, number, ir.Constant(index, 0))
        zeros = ir.Constant(ir.VectorType(index, LANES), [0] * LANES)
        return self.builder.shuffle_vector(one, undefined, zeros)

    def add_product(self, total: Any, first: Any, second: Any) -> None:
        value = self.builder.call(self.fma, [first, second, self.builder.load(total)])
        self.builder.store(value, total)

    def _pointer(self, address: Any, number: int) -> Any:
        return self.builder.inttoptr(self.at(address, (4 * LANES, number)), VECTOR.as_pointer())


# As many sums as hide the latency of an addition, and no more than there are registers.
_tile_8x1, _tile_4x2, _tile_2x2, _tile_4x1 = _tile(8, 1, 2), _tile(4, 2, 2), _tile(2, 2, 2), _tile(4, 1, 1)
_outer_8, _outer_4, _outer_1 = _outer(8, 2), _outer(4, 2), _outer(1, 2)


@intrinsic
def _copy(context, destination, source, size):
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        destination, source = (builder.inttoptr(address, byte) for address in arguments[:2])
        cgutils.raw_memcpy(builder, destination, source, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def _copy_positive(context, destination, source, mask, size):
    """Copy numbers, and zero where ``mask`` is not positive. ``size`` in bytes, a multiple of 64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        destination, source, mask, size = arguments
        code = _Code(builder)
        zeros = ir.Constant(VECTOR, [0.0] * LANES)
        vectors = builder.udiv(size, ir.Constant(ADDRESS, 4 * LANES))
        with cgutils.for_range(builder, vectors) as loop:
            here = builder.mul(loop.index, ir.Constant(ADDRESS, 4 * LANES))
            off = builder.fcmp_ordered("<=", code.load_vector(builder.add(mask, here), 0), zeros)
            value = builder.select(off, zeros, code.load_vector(builder.add(source, here), 0))
            code.store_vector(value, builder.add(destination, here), 0)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate
