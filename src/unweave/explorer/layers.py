"""What a network computes, as a list of layers that a page can execute without PyTorch.

The network is run once, on one observation, and every operation that depends on its input is written down. What
depends on weights alone is computed here and becomes a constant. So it does not matter how a network is put together:
a user's own module works as the package's do, if its operations are among the kinds below or are made of them.

=============  ======================================================================================================
kind           what it computes of its inputs
=============  ======================================================================================================
constant       an array of the network
dense          x W^T + b, for each row of x
conv           a convolution, or a transposed one
normalise      (x - mean) / sqrt(variance + epsilon), over each of several groups
affine         x * scale + shift, per channel
map            a function of each entry: activations, exp, log, ...
pair           a function of two entries: sums, products, comparisons, ...
choose         the second or the third input, where the first is not 0 or is
take           some entries of the inputs, in any order: slices, joins, permutations, padding, repetition
reduce         the sum, mean, variance, maximum or minimum of each group
softmax        of each group
argmax         of each group
lookup         a row of a table for each entry
=============  ======================================================================================================
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from unweave.arrays import AnyArray
from unweave.errors import UnweaveError

Function = Callable[..., Mapping[str, Tensor]]


class UnsupportedNetworkError(UnweaveError):
    """A network has a layer that the page cannot execute.

    Examples
    --------
    >>> issubclass(uw.explorer.UnsupportedNetworkError, uw.UnweaveError)
    True
    """


@dataclass(frozen=True)
class Layer:
    """One operation.

    Parameters
    ----------
    kind
        what it computes: see the table of this module.
    inputs
        the numbers of the values that it reads.
    shape
        of its result.
    options
        numbers and words that JSON can hold.
    constants
        its arrays, by name.
    double
        whether it is computed in double precision.
    """

    kind: str
    inputs: tuple[int, ...]
    shape: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, AnyArray] = field(default_factory=dict)
    double: bool = False


@dataclass(frozen=True)
class Program:
    """A function as layers. The inputs are the values 0, 1, ...; the result of layer i is the value len(inputs) + i.

    Parameters
    ----------
    inputs
        the shape of each input.
    layers
        in the order of their execution.
    outputs
        the number of the value of each result, by its name.
    """

    inputs: tuple[tuple[int, ...], ...]
    layers: tuple[Layer, ...]
    outputs: dict[str, int]

    @property
    def num_weights(self) -> int:
        """How many numbers its constants have."""
        return sum(array.size for layer in self.layers for array in layer.constants.values())


def record(function: Function, examples: Sequence[Sequence[Tensor]], name: str) -> Program:
    """The layers of a function of tensors that have one row each.

    It is recorded on every example: a function that does other things for other inputs, or draws random numbers, is
    refused.

    Parameters
    ----------
    function
        of tensors, to tensors by name.
    examples
        two or more lists of its arguments, each (1, ...).
    name
        of the method, for errors.

    Examples
    --------
    >>> import torch
    >>> network = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    >>> program = record(lambda x: {"y": network(x)}, [[torch.zeros(1, 3)], [torch.ones(1, 3)]], "my network")
    >>> [layer.kind for layer in program.layers], program.outputs
    (['dense', 'map'], {'y': 2})
    """
    programs: list[Program] = []
    for inputs in examples:
        with torch.no_grad(), _Recorder(inputs, name) as recorder:
            outputs = dict(function(*inputs))
        programs.append(recorder.program(outputs))
    if any(not _same(programs[0], other) for other in programs[1:]):
        message = (
            "it does other things for other inputs: it draws random numbers, or decides by values what to do"
        )
        raise _unsupported(name, message)
    return programs[0]


def _unsupported(name: str, why: str) -> UnsupportedNetworkError:
    return UnsupportedNetworkError(
        f"{name} cannot run in a page: {why}. A page executes dense layers, convolutions and transposed ones, "
        "normalisation, AdaIN, activations, reshaping and arithmetic: write the layer with these, or use "
        "unweave.figures.traversals and the other pictures, which take any method"
    )


def _same(one: Program, other: Program) -> bool:
    if one.outputs != other.outputs or len(one.layers) != len(other.layers):
        return False
    for left, right in zip(one.layers, other.layers, strict=True):
        facts = [
            (layer.kind, layer.inputs, layer.shape, layer.options, list(layer.constants))
            for layer in (left, right)
        ]
        if facts[0] != facts[1]:
            return False
        arrays = zip(left.constants.values(), right.constants.values(), strict=True)
        if not all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in arrays):
            return False
    return True


# --- the recorder ---------------------------------------------------------------------------------


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Writes down every operation on what depends on the inputs."""

    def __init__(self, inputs: Sequence[Tensor], name: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.name = name
        self.input_shapes = tuple(tuple(tensor.shape) for tensor in inputs)
        self.layers: list[Layer] = []
        self.modules: list[str] = []
        self._numbers: dict[int, int | None] = {}
        self._seen: dict[Any, int] = {}
        self._alive: list[Tensor] = []  # an id is only unique while its object lives
        self._written: set[int] = set()  # memory into which values were written
        for number, tensor in enumerate(inputs):
            self.bind(tensor, number)

    def __enter__(self) -> Any:
        self._hooks = [
            nn.modules.module.register_module_forward_pre_hook(self._enter_module),
            nn.modules.module.register_module_forward_hook(self._leave_module, always_call=True),
        ]
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *error: Any) -> Any:
        for hook in self._hooks:
            hook.remove()
        return super().__exit__(*error)  # type: ignore[no-untyped-call]

    def _enter_module(self, module: nn.Module, inputs: Any) -> None:
        self.modules.append(type(module).__name__)

    def _leave_module(self, module: nn.Module, inputs: Any, output: Any) -> None:
        if self.modules:
            self.modules.pop()

    # --- values ---------------------------------------------------------------------------------------

    def bind(self, tensor: Tensor, number: int | None) -> None:
        """Let a tensor stand for a value; None: for one that is not known."""
        self._numbers[id(tensor)] = number
        self._alive.append(tensor)

    def is_live(self, value: Any) -> bool:
        """Whether an argument depends on the inputs."""
        return isinstance(value, Tensor) and (
            id(value) in self._numbers or self._memory(value) in self._written
        )

    def number(self, value: Any, like: Tensor | None = None) -> int:
        """The number of an argument's value; a constant becomes one."""
        if isinstance(value, Tensor) and self.is_live(value):
            number = self._numbers.get(id(value))
            if number is None:
                self.refuse("it writes into a part of a tensor, or reads what a layer does not give")
            return number
        array = constant_array(value)
        if isinstance(value, Tensor):
            self._alive.append(value)
        key = ("constant", array.shape, array.tobytes() if array.size <= 4096 else self._memory_key(value))
        return self.add("constant", (), array.shape, constants={"value": array}, key=key)

    def add(
        self,
        kind: str,
        inputs: Sequence[int],
        shape: Sequence[int],
        constants: Mapping[str, AnyArray] | None = None,
        double: bool = False,
        key: Any = None,
        **options: Any,
    ) -> int:
        """Write down a layer, or find the one that computes the same; the number of its result."""
        if key is None:
            key = (kind, tuple(inputs), tuple(shape), repr(sorted(options.items())))
            key += tuple(
                (name, array.shape, array.tobytes())
                for name, array in (constants or {}).items()
                if array.size < 1e6
            )
            key += tuple(id(array) for array in (constants or {}).values() if array.size >= 1e6)
        if key in self._seen:
            return self._seen[key]
        self.layers.append(Layer(kind, tuple(inputs), tuple(shape), options, dict(constants or {}), double))
        self._seen[key] = len(self.input_shapes) + len(self.layers) - 1
        return self._seen[key]

    def refuse(self, why: str) -> NoReturn:
        """Stop, naming the method and the module."""
        inside = f" (in {self.modules[-1]})" if self.modules else ""
        raise _unsupported(self.name, why + inside)

    def program(self, outputs: Mapping[str, Tensor]) -> Program:
        """What was written down, without layers that no output needs."""
        first = len(self.input_shapes)
        numbers = {name: self.number(tensor) for name, tensor in outputs.items()}
        needed = set(numbers.values())
        for index in range(len(self.layers) - 1, -1, -1):
            if first + index in needed:
                needed |= set(self.layers[index].inputs)
        kept = [index for index in range(len(self.layers)) if first + index in needed]
        new = {number: number for number in range(first)} | {
            first + old: first + i for i, old in enumerate(kept)
        }
        layers = [self.layers[index] for index in kept]
        return Program(
            self.input_shapes,
            tuple(
                Layer(
                    one.kind,
                    tuple(new[n] for n in one.inputs),
                    one.shape,
                    one.options,
                    one.constants,
                    one.double,
                )
                for one in layers
            ),
            {name: new[number] for name, number in numbers.items()},
        )

    @staticmethod
    def _memory(tensor: Tensor) -> int:
        return int(tensor.untyped_storage()._cdata)

    def _memory_key(self, value: Any) -> Any:
        return (value.data_ptr(), tuple(value.stride())) if isinstance(value, Tensor) else id(value)

    # --- operations -----------------------------------------------------------------------------------

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        leaves = tree_leaves((args, kwargs))
        self._alive += [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        name = func.overloadpacket.__name__
        if name in _SHAPES or not any(self.is_live(leaf) for leaf in leaves):
            return func(*args, **kwargs)
        in_place = name.endswith("_") and not name.endswith("__")
        if func._schema.is_mutable and not in_place and name not in _HANDLERS:
            self.refuse(f"{name} writes its result into a tensor")
        handler = _HANDLERS.get(name.removesuffix("_") if in_place else name)
        if handler is None and name in _MOVES:
            handler = _move
        if handler is None:
            return self._decomposed(func, args, kwargs)
        before = {"func": func, "args": args, "kwargs": kwargs}
        if in_place:
            return self._in_place(handler, before)
        result = func(*args, **kwargs)
        handler(self, result, **before)
        return result

    def _in_place(self, handler: Callable[..., None], call: dict[str, Any]) -> Any:
        """An operation that changes a tensor: from then on, other views of its memory are not known."""
        target = call["args"][0]
        scratch = target.clone()
        whole = {**call, "args": (scratch, *call["args"][1:])}
        number = self._numbers.get(id(target)) if id(target) in self._numbers else self.number(target)
        self.bind(scratch, number)
        result = call["func"](*call["args"], **call["kwargs"])
        changed = result.clone()
        handler(self, changed, **whole)
        memory = self._memory(target)
        for tensor in self._alive:
            if id(tensor) in self._numbers and tensor is not target and self._memory(tensor) == memory:
                self._numbers[id(tensor)] = None
        self._written.add(memory)
        self.bind(target, self._numbers[id(changed)])
        return result

    def _decomposed(self, func: Any, args: Any, kwargs: Any) -> Any:
        """An operation by those that it is made of."""
        made_of = _decompositions().get(func)
        if made_of is not None:
            with self:
                return made_of(*args, **kwargs)
        with self:
            result = func.decompose(*args, **kwargs)
        if result is NotImplemented:
            self.refuse(f"it has no layer for {func}")
        return result


@cache
def _decompositions() -> Mapping[Any, Callable[..., Any]]:
    return dict(torch._decomp.core_aten_decompositions())


def constant_array(value: Any) -> AnyArray:
    """A constant as an array of numbers.

    Examples
    --------
    >>> constant_array(2.0)
    array(2., dtype=float32)
    """
    array = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
    return np.array(array, dtype=np.float64 if array.dtype == np.float64 and array.ndim else np.float32)


# --- layers of operations ---------------------------------------------------------------------------

_Handler = Callable[..., None]
_HANDLERS: dict[str, _Handler] = {}


def _handles(*names: str) -> Callable[[_Handler], _Handler]:
    def register(handler: _Handler) -> _Handler:
        _HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


def _is_double(result: Tensor) -> bool:
    return result.dtype == torch.float64


@_handles("addmm")
def _addmm(recorder: _Recorder, result: Tensor, func: Any, args: Any, kwargs: Any) -> None:
    bias, x, weight = args
    if kwargs or recorder.is_live(bias):
        recorder.refuse("a dense layer's bias depends on the input")
    _dense(recorder, result, x, weight, bias)


@_handles("mm")
def _mm(recorder: _Recorder, result: Tensor, func: Any, args: Any, kwargs: Any) -> None:
    x, weight = args
    _dense(recorder, result, x, weight, None)


def _dense(recorder: _Recorder, result: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    if recorder.is_live(weight):
        recorder.refuse("it multiplies two matrices that both depend on the input")
    constants = {"weight": constant_array(weight.t())}
    if bias is not None:
        constants["bias"] = np.broadcast_to(constant_array(bias), result.shape[-1:]).copy()
    key = (
        "dense",
        recorder.number(x),
        recorder._memory_key(weight),
        tuple(weight.shape),
        None if bias is None else recorder._memory_key(bias),
    )
    recorder.bind(
        result, recorder.add("dense", [recorder.number(x)], result.shape, constants, _is_double(result), key)
    )


@_handles("convolution")
def _convolution(recorder: _Recorder, result: Tensor, func: Any, args: Any, kwargs: Any) -> None:
    x, weight, bias, stride, padding, dilation, transposed, _, groups = args
    if recorder.is_live(weight) or recorder.is_live(bias):
        recorder.refuse("a convolution's weights depend on the input")
    if result.ndim not in (3, 4) or result.shape[0] != 1:
        recorder.refuse("it has a convolution that is not over one image")
    shape = x.shape
    spatial = result.ndim - 2

    def both(values: Sequence[int], fill: int) -> list[int]:
        return [fill] * (2 - spatial) + list(values) * (1 if len(values) == spatial else spatial)

    kernel = both(weight.shape[2:], 1)
    inputs, outputs = shape[1], result.shape[1]
    # The rows of a convolution are its outputs, those of a transposed one its inputs.
    constants = {"weight": constant_array(weight).reshape(weight.shape[0], -1)}
    if bias is not None:
        constants["bias"] = constant_array(bias)
    number = recorder.add(
        "conv",
        [recorder.number(x)],
        result.shape,
        constants,
        _is_double(result),
        key=(
            "conv",
            recorder.number(x),
            recorder._memory_key(weight),
            tuple(result.shape),
            str((stride, padding, dilation)),
        ),
        transposed=bool(transposed),
        image=[inputs, *both(shape[2:], 1)],
        result=[outputs, *both(result.shape[2:], 1)],
        kernel=kernel,
        stride=both(stride, 1),
        padding=both(padding, 0),
        dilation=both(dilation, 1),
        groups=groups,
    )
    recorder.bind(result, number)


@_handles(
    "native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training", "batch_norm"
)
def _batch_norm(recorder: _Recorder, result: Any, func: Any, args: Any, kwargs: Any) -> None:
    name, overload = func.overloadpacket.__name__, func._overloadname
    x, weight, bias, *rest = args
    if name.endswith("no_training"):
        mean, variance, _, epsilon = rest
        training = False
    elif overload == "no_stats":
        (training, _, epsilon), mean, variance = rest, None, None
    else:
        mean, variance, training, _, epsilon = rest
    output, *others = result
    channels, inner = x.shape[1], math.prod(x.shape[2:])
    value = recorder.number(x)
    if training or mean is None:
        # Over the positions of each channel: instance normalisation has one image's channels in the batch's place.
        if x.shape[0] != 1:
            recorder.refuse("it normalises over a batch of images")
        value = recorder.add(
            "normalise", [value], x.shape, double=_is_double(output), size=inner, epsilon=epsilon
        )
        scale, shift = torch.ones(channels), torch.zeros(channels)
    else:
        scale = torch.rsqrt(variance + epsilon)
        shift = -mean * scale
    if weight is not None:
        scale, shift = scale * weight, shift * weight
    if bias is not None:
        shift = shift + bias
    if not (bool((scale == 1).all()) and bool((shift == 0).all())):
        value = _affine(recorder, value, output, scale, shift, inner)
    recorder.bind(output, value)
    for other in others:
        recorder.bind(other, None)


def _affine(recorder: _Recorder, value: int, output: Tensor, scale: Tensor, shift: Tensor, inner: int) -> int:
    constants = {"scale": constant_array(scale), "shift": constant_array(shift)}
    return recorder.add("affine", [value], output.shape, constants, _is_double(output), inner=inner)


@_handles("native_layer_norm")
def _layer_norm(recorder: _Recorder, result: Any, func: Any, args: Any, kwargs: Any) -> None:
    x, over, weight, bias, epsilon = args
    output, *others = result
    size = math.prod(over)
    value = recorder.add(
        "normalise", [recorder.number(x)], x.shape, double=_is_double(output), size=size, epsilon=epsilon
    )
    if weight is not None or bias is not None:
        scale = torch.ones(size) if weight is None else weight.flatten()
        shift = torch.zeros(size) if bias is None else bias.flatten()
        value = _affine(recorder, value, output, scale, shift, 1)
    recorder.bind(output, value)
    for other in others:
        recorder.bind(other, None)


@_handles("native_group_norm")
def _group_norm(recorder: _Recorder, result: Any, func: Any, args: Any, kwargs: Any) -> None:
    x, weight, bias, _, channels, inner, groups, epsilon = args
    output, *others = result
    value = recorder.add(
        "normalise",
        [recorder.number(x)],
        x.shape,
        double=_is_double(output),
        size=channels // groups * inner,
        epsilon=epsilon,
    )
    if weight is not None or bias is not None:
        scale = torch.ones(channels) if weight is None else weight
        shift = torch.zeros(channels) if bias is None else bias
        value = _affine(recorder, value, output, scale, shift, inner)
    recorder.bind(output, value)
    for other in others:
        recorder.bind(other, None)


# What reads the shape of a tensor, and not its entries.
_SHAPES = {"full_like", "zeros_like", "ones_like", "empty_like"} | {
    f"new_{kind}" for kind in ("zeros", "ones", "full", "empty", "empty_strided")
}

_MAPS = (
    *(
        "relu",
        "sigmoid",
        "tanh",
        "exp",
        "log",
        "sqrt",
        "rsqrt",
        "reciprocal",
        "neg",
        "abs",
        "sin",
        "cos",
        "erf",
    ),
    *("log1p", "expm1", "sign", "floor", "ceil", "round", "isfinite", "logical_not"),
)


@_handles(*_MAPS)
def _map(recorder: _Recorder, result: Tensor, func: Any, args: Any, kwargs: Any) -> None:
    name = func.overloadpacket.__name__.removesuffix("_")
    number = recorder.add("map", [recorder.number(args[0])], result.shape, double=_is_double(result), f=name)
    recorder.bind(result, number)


@_handles("leaky_relu", "elu", "softplus", "clamp", "hardtanh", "logit", "gelu", "silu")
def _parametric(recorder: _Recorder, result: Tensor, func: Any, args: Any, kwargs: Any) -> None:
    name = func.overloadpacket.__name__.removesuffix("_")
    names = [argument.name for argument in func._schema.arguments]
    given = {argument.name: argument.default_value for argument in func._schema.arguments[1:]}
    given |= dict(zip(names[1:], args[1:], strict=False)) | kwargs
    if any(recorder.is_live(value) for value in given.values()):
        recorder.refuse(f"the options of {name} depend on the input")
    options: dict[str, Any] = {
        key: (value.item() if isinstance(value, Tensor) else value)
        for key, value in given.items()
        if value is not None
    }
    if name == "hardtanh":
        name, options = "clamp", {"min": options["min_val"], "max": options["max_val"]}
    number = recorder.add(
        "map", [recorder.number(args[0])], result.shape, double=_is_double(result), f=name, **options
    )
    recorder.bind(result, number)


_PAIRS = {
    "add": "add", "sub": "sub", "rsub": "rsub", "mul": "mul", "div": "div", "pow": "pow", "maximum": "max",
    "minimum": "min", "logaddexp": "logaddexp", "gt": "gt", "ge": "ge", "lt": "lt", "le": "le", "eq": "eq",
    "ne": "ne", "logical_and": "mul", "bitwise_and": "mul",
}  # fmt: skip


@_handles(*_PAIRS)
def _pair(recorder: _Recorder, result: Tensor, func: Any, args: Any, kwargs: Any) -> None:
    name = func.overloadpacket.__name__.removesuffix("_")
    left, right, *rest = args
    alpha = rest[0] if rest else kwargs.get("alpha", 1)
    if kwargs.get("rounding_mode"):
        recorder.refuse(f"it has no layer for {func} with rounding")
    if alpha != 1:
        if name == "rsub":
            recorder.refuse(f"it has no layer for {func} with alpha")
        right = alpha * right if not recorder.is_live(right) else _scaled(recorder, right, alpha)
    operands = [_broadcast(recorder, operand, result.shape) for operand in (left, right)]
    recorder.bind(
        result, recorder.add("pair", operands, result.shape, double=_is_double(result), f=_PAIRS[name])
    )


def _scaled(recorder: _Recorder, value: Tensor, factor: float) -> Tensor:
    result = value * factor  # outside the mode: nothing is recorded
    inputs = [recorder.number(value), recorder.number(float(factor))]
    recorder.bind(result, recorder.add("pair", inputs, result.shape, double=_is_double(result), f="mul"))
    return result


def _broadcast(recorder: _Recorder, operand: Any, shape: Sequence[int]) -> int:
    """The number of an operand as large as the result, or of one entry."""
    size = operand.numel() if isinstance(operand, Tensor) else 1
    if size == math.prod(shape) or size == 1:
        return recorder.number(operand)
    if not recorder.is_live(operand):
        return recorder.number(operand.expand(shape).contiguous())
    index = torch.arange(size).view(operand.shape).expand(shape)
    return _take(recorder, [recorder.number(operand)], [size], index, shape, _is_double(operand))


@_handles("where")
def _where(recorder: _Recorder, result: Tensor, func: Any, args: Any, kwargs: Any) -> None:
    if len(args) != 3:
        recorder.refuse(
            "it asks where a condition holds, so that the size of its result depends on the input"
        )
    operands = [_broadcast(recorder, operand, result.shape) for operand in args]
    recorder.bind(result, recorder.add("choose", operands, result.shape, double=_is_double(result)))


_REDUCTIONS = {"sum": "sum", "mean": "mean", "amax": "max", "amin": "min", "var": "var", "max": "max", "min": "min",
               "all": "min", "any": "max"}  # fmt: skip


@_handles(*_REDUCTIONS)
def _reduce(recorder: _Recorder, result: Any, func: Any, args: Any, kwargs: Any) -> None:
    name = func.overloadpacket.__name__
    if not isinstance(result, Tensor):  # values and where they are
        result, position = result
        recorder.bind(position, None)
    x = args[0]
    dims = args[1] if len(args) > 1 else kwargs.get("dim")
    if name == "max" and isinstance(dims, Tensor):
        recorder.refuse(f"it has no layer for {func}")
    dims = (
        list(range(x.ndim)) if dims is None or dims == [] else [dims] if isinstance(dims, int) else list(dims)
    )
    value, size = _groups_last(recorder, x, dims)
    options: dict[str, Any] = {"f": _REDUCTIONS[name], "size": size}
    if name == "var":
        correction = kwargs.get("correction", 1)
        options["correction"] = 1 if correction is None else correction
    recorder.bind(result, recorder.add("reduce", [value], result.shape, double=_is_double(result), **options))


def _groups_last(recorder: _Recorder, x: Tensor, dims: Sequence[int]) -> tuple[int, int]:
    """The number of x with some dimensions moved to the end, and their common size."""
    dims = [dim % max(x.ndim, 1) for dim in dims]
    size = math.prod(x.shape[dim] for dim in dims) if x.ndim else 1
    order = [dim for dim in range(x.ndim) if dim not in dims] + sorted(dims)
    if order == list(range(x.ndim)):
        return recorder.number(x), size
    index = torch.arange(x.numel()).view(x.shape).permute(order)
    return _take(recorder, [recorder.number(x)], [x.numel()], index, index.shape, _is_double(x)), size


@_handles("_softmax", "_log_softmax")
def _softmax(recorder: _Recorder, result: Tensor, func: Any, args: Any, kwargs: Any) -> None:
    x, dim, _ = args
    value, size = _groups_last(recorder, x, [dim])
    moved = [length for index, length in enumerate(x.shape) if index != dim % x.ndim] + [size]
    double = _is_double(result)
    number = recorder.add("softmax", [value], moved, double=double, size=size)
    if func.overloadpacket.__name__ == "_log_softmax":
        number = recorder.add("map", [number], moved, double=double, f="log")
    if list(moved) != list(x.shape):
        back = torch.arange(x.numel()).view(moved).movedim(-1, dim)
        number = _take(recorder, [number], [x.numel()], back, x.shape, double)
    recorder.bind(result, number)


@_handles("argmax")
def _argmax(recorder: _Recorder, result: Tensor, func: Any, args: Any, kwargs: Any) -> None:
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    value, size = _groups_last(recorder, args[0], list(range(args[0].ndim)) if dim is None else [dim])
    recorder.bind(result, recorder.add("argmax", [value], result.shape, size=size))


@_handles("index")
def _index(recorder: _Recorder, result: Tensor, func: Any, args: Any, kwargs: Any) -> None:
    table, indices = args
    if not any(recorder.is_live(index) for index in indices):
        return _move(recorder, result, func, args, kwargs)
    if recorder.is_live(table) or len(indices) != 1:
        recorder.refuse("it takes entries by an index that depends on the input")
    rows = constant_array(table).reshape(table.shape[0], -1)
    number = recorder.add(
        "lookup", [recorder.number(indices[0])], result.shape, {"table": rows}, _is_double(result)
    )
    recorder.bind(result, number)
    return None


@_handles("_local_scalar_dense")
def _scalar(recorder: _Recorder, result: Any, func: Any, args: Any, kwargs: Any) -> None:
    """A number that Python code asks for, as in a check: another one in another example shows as another program."""


@_handles("_to_copy", "clone", "detach", "alias", "lift_fresh", "contiguous", "view", "_unsafe_view", "reshape",
          "_reshape_alias", "unsqueeze", "squeeze", "flatten")  # fmt: skip
def _same_entries(recorder: _Recorder, result: Tensor, func: Any, args: Any, kwargs: Any) -> None:
    if result.dtype in (torch.int64, torch.int32, torch.uint8) and args[0].is_floating_point():
        value = recorder.add("map", [recorder.number(args[0])], result.shape, f="trunc")
    else:
        value = recorder.number(args[0])
    recorder.bind(result, value)


_MOVES = {
    *("slice", "select", "split", "split_with_sizes", "unbind", "chunk", "narrow", "unfold", "diagonal"),
    *("permute", "transpose", "t", "flip", "roll", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle"),
    *("expand", "repeat", "cat", "stack", "index_select", "index_copy", "slice_scatter", "select_scatter"),
    *("constant_pad_nd", "reflection_pad2d", "replication_pad2d"),
    *("upsample_nearest2d", "_upsample_nearest_exact2d"),
}


def _move(recorder: _Recorder, result: Any, func: Any, args: Any, kwargs: Any) -> None:
    """An operation that only moves entries: done to their numbers, it shows where each entry comes from."""
    sources: list[Tensor] = []

    def numbered(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(numbered(entry) for entry in value)
        if not isinstance(value, Tensor) or (value.dtype == torch.int64 and not recorder.is_live(value)):
            return value
        start = sum(source.numel() for source in sources)
        sources.append(value)
        entries = torch.arange(start, start + value.numel(), dtype=torch.float64).view(value.shape)
        return entries.as_strided(value.shape, _contiguous_strides(value.shape))

    name = func.overloadpacket.__name__
    options = list(args)
    fill = 0.0
    if name == "constant_pad_nd":
        fill = float(options[2]) if len(options) > 2 else 0.0
        options = [*options[:2], -1.0]
    moved = func(*numbered(options), **{key: numbered(value) for key, value in kwargs.items()})
    inputs = [recorder.number(source) for source in sources]
    sizes = [source.numel() for source in sources]
    outputs = [result] if isinstance(result, Tensor) else list(result)
    for output, index in zip(outputs, [moved] if isinstance(moved, Tensor) else moved, strict=True):
        recorder.bind(output, _take(recorder, inputs, sizes, index, output.shape, _is_double(output), fill))


def _take(
    recorder: _Recorder,
    inputs: Sequence[int],
    sizes: Sequence[int],
    index: Tensor,
    shape: Sequence[int],
    double: bool,
    fill: float = 0.0,
) -> int:
    """Entries of several values, as if these were joined; -1 is ``fill``."""
    flat = index.reshape(-1).to(torch.int64).numpy()
    offsets = list(itertools.accumulate(sizes, initial=0))
    for number, start, stop in zip(inputs, offsets, offsets[1:], strict=False):
        if flat.size and flat.min() >= start and flat.max() < stop:  # entries of one value alone
            return _take_one(recorder, number, stop - start, flat - start, shape, double)
    return recorder.add(
        "take", inputs, shape, {"index": flat.astype(np.int32)}, double, fill=fill, sizes=list(sizes)
    )


def _take_one(
    recorder: _Recorder, number: int, size: int, flat: AnyArray, shape: Sequence[int], double: bool
) -> int:
    count = len(flat)
    if np.array_equal(flat, np.arange(flat[0], flat[0] + count)):
        if count == size:
            return number
        return recorder.add("take", [number], shape, None, double, start=int(flat[0]))
    times = count // size if count % size == 0 else 0
    if times and np.array_equal(flat, np.repeat(np.arange(size), times)):
        return recorder.add("take", [number], shape, None, double, each=times)
    return recorder.add(
        "take", [number], shape, {"index": flat.astype(np.int32)}, double, fill=0.0, sizes=[size]
    )


def _contiguous_strides(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[index + 1 :]) for index in range(len(shape))]
