"""The network as a differentiable function of torch tensors, from the same graph as every semantics.

Importing this module imports torch, which takes seconds: import it only when gradients are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as nnf
from numpy.typing import NDArray
from torch import Tensor

from dokimos.core.errors import UnsupportedOp
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.propagation import Rule, given, propagate

#: How much memory the tensors of one batch may take; smaller ones also stay closer to the processor.
BATCH_BYTES = 64 * 2**20

_CONVOLUTIONS: Mapping[int, Callable[..., Tensor]] = MappingProxyType(
    {1: nnf.conv1d, 2: nnf.conv2d, 3: nnf.conv3d}
)


def to_torch(
    network: Network,
    *,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
    table: Mapping[str, Rule[Tensor]] | None = None,
) -> Callable[[Tensor], Tensor]:
    """The function [k, input_size] -> [k, output_size], both flat and row by row, in `dtype`.

    It is differentiable by torch's autograd wherever its operators are; where Relu, Max, Clip and the like
    have no derivative, torch chooses a subgradient. Each row is computed on its own (`torch.vmap`),
    whatever the network does with its batch dimension. `table` may have other rules than `TABLE`, for
    example with other derivatives. Raises UnsupportedOp, when called, for a form of an operator that torch
    has no counterpart for.
    """
    lift = lifted_constants(network, dtype=dtype, device=device)
    rules = TABLE if table is None else table

    def one(x: Tensor) -> Tensor:
        value = x.reshape(network.input_shape)
        values = propagate(network, value, lift=lift, table=rules, semantics="gradient")
        return values[network.output].reshape(-1)

    batched: Callable[[Tensor], Tensor] = torch.vmap(one)

    def function(points: Tensor) -> Tensor:
        if points.ndim != 2 or points.shape[1] != network.input_size:
            raise ValueError(f"points of shape {tuple(points.shape)} are not [k, {network.input_size}]")
        points = points.to(device=device, dtype=dtype)
        return batched(points) if len(points) else points.new_zeros((0, network.output_size))

    return function


def lifted_constants(
    network: Network, *, dtype: torch.dtype, device: torch.device | str = "cpu"
) -> Callable[[NDArray[Any]], Tensor]:
    """What turns each constant of the network into a tensor, made once."""
    constants = {
        id(array): torch.as_tensor(np.array(array)).to(device=device, dtype=dtype)
        for array in network.constants.values()
    }
    return lambda array: constants[id(array)]


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread: sums have a fixed order, and processes do not disturb each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _elementwise(function: Callable[[Tensor], Tensor]) -> Rule[Tensor]:
    return lambda node, arguments: function(given(arguments)[0])


def _folded(function: Callable[[Tensor, Tensor], Tensor]) -> Rule[Tensor]:
    return lambda node, arguments: reduce(function, given(arguments))


def _with_node(function: Callable[[Node, Tensor], Tensor]) -> Rule[Tensor]:
    return lambda node, arguments: function(node, given(arguments)[0])


def _gemm(node: Node, arguments: Sequence[Tensor | None]) -> Tensor:
    a, b, *c = given(arguments)
    a = a.mT if node.integer("transA") else a
    b = b.mT if node.integer("transB") else b
    product = _times(node.real("alpha"), a @ b)
    return product + _times(node.real("beta"), c[0]) if c else product


def _times(factor: float, x: Tensor) -> Tensor:
    """The product; what 1 changes nothing of need not be computed, nor differentiated."""
    return x if factor == 1 else factor * x


def _batch_normalization(node: Node, arguments: Sequence[Tensor | None]) -> Tensor:
    x, *parameters = given(arguments)
    shape = [1, -1] + [1] * (x.ndim - 2)
    scale, bias, mean, variance = (p.reshape(shape) for p in parameters)
    return (x - mean) / torch.sqrt(variance + node.real("epsilon")) * scale + bias


def _padded(x: Tensor, begins: Sequence[int], ends: Sequence[int], fill: float) -> Tensor:
    """`x` with its last axes padded (cropped where negative); torch counts axes from the last one."""
    widths = [w for pair in zip(reversed(begins), reversed(ends), strict=True) for w in pair]
    return nnf.pad(x, widths, value=fill) if any(widths) else x


def _pad(node: Node, x: Tensor) -> Tensor:
    pads = node.integers("pads")
    return _padded(x, pads[: x.ndim], pads[x.ndim :], node.real("value"))


def _conv(node: Node, arguments: Sequence[Tensor | None]) -> Tensor:
    x, weights, *bias = given(arguments)
    rank = weights.ndim - 2
    if rank not in _CONVOLUTIONS:
        raise UnsupportedOp("Conv", f"torch has no convolution over {rank} dimensions.")
    pads = node.integers("pads")
    begins, ends = pads[:rank], pads[rank:]
    is_even = begins == ends and min(begins) >= 0  # then torch need not copy what it pads
    return _CONVOLUTIONS[rank](
        x if is_even else _padded(x, begins, ends, 0.0),
        weights,
        bias[0] if bias else None,
        stride=node.integers("strides"),
        padding=begins if is_even else 0,
        dilation=node.integers("dilations"),
        groups=node.integer("group"),
    )


def _windows(node: Node, x: Tensor, fill: float) -> Tensor:
    """The windows of a pooling node: [N, C, *positions, *kernel], padding filled with `fill`."""
    kernel, pads = node.integers("kernel"), node.integers("pads")
    rank = len(kernel)
    x = _padded(x, pads[:rank], pads[rank:], fill)
    for axis, (size, stride, dilation) in enumerate(
        zip(kernel, node.integers("strides"), node.integers("dilations"), strict=True), start=2
    ):
        x = x.unfold(axis, (size - 1) * dilation + 1, stride)[..., ::dilation]
    return x


def _window_axes(node: Node) -> tuple[int, ...]:
    return tuple(range(-len(node.integers("kernel")), 0))


def _max_pool(node: Node, x: Tensor) -> Tensor:
    return _windows(node, x, -float("inf")).amax(_window_axes(node))


def _average_pool(node: Node, x: Tensor) -> Tensor:
    axes = _window_axes(node)
    total = _windows(node, x, 0.0).sum(axes)
    if node.integer("count_include_pad"):
        return total / prod(node.integers("kernel"))
    return total / _windows(node, torch.ones_like(x), 0.0).sum(axes)


def _slice(node: Node, x: Tensor) -> Tensor:
    for start, end, axis, step in zip(
        *(node.integers(name) for name in ("starts", "ends", "axes", "steps")), strict=True
    ):
        # A negative end that reaches before the first element means "to the very start" in ONNX.
        stop = None if step < 0 and end < -x.shape[axis] else end
        chosen = range(x.shape[axis])[slice(start, stop, step)]
        x = x.index_select(axis, torch.tensor(list(chosen), dtype=torch.int64, device=x.device))
    return x


def _gather(node: Node, x: Tensor) -> Tensor:
    axis = node.integer("axis")
    size = x.shape[axis]
    indices = torch.tensor([i % size for i in node.integers("indices")], dtype=torch.int64, device=x.device)
    taken = x.index_select(axis, indices)
    return taken.reshape(*x.shape[:axis], *node.integers("indices_shape"), *x.shape[axis + 1 :])


def _expand(node: Node, x: Tensor) -> Tensor:
    return torch.broadcast_to(x, np.broadcast_shapes(tuple(x.shape), node.integers("shape")))


def _reduced(function: Callable[..., Tensor]) -> Callable[[Node, Tensor], Tensor]:
    def rule(node: Node, x: Tensor) -> Tensor:
        axes = node.integers("axes")
        # To torch, no axes mean all of them.
        return function(x, axes, keepdim=bool(node.integer("keepdims"))) if axes else x

    return rule


#: What each core operator does to torch tensors without a batch of its own.
TABLE: Mapping[str, Rule[Tensor]] = MappingProxyType(
    {
        "Add": _folded(torch.add),
        "AveragePool": _with_node(_average_pool),
        "BatchNormalization": _batch_normalization,
        "Clip": _with_node(lambda node, x: torch.clamp(x, node.real("min"), node.real("max"))),
        "Concat": lambda node, arguments: torch.cat(given(arguments), dim=node.integer("axis")),
        "Conv": _conv,
        "Cos": _elementwise(torch.cos),
        "Div": _folded(torch.div),
        "Erf": _elementwise(torch.erf),
        "Exp": _elementwise(torch.exp),
        "Expand": _with_node(_expand),
        "Floor": _elementwise(torch.floor),
        "Gather": _with_node(_gather),
        "Gemm": _gemm,
        "LeakyRelu": _with_node(lambda node, x: torch.where(x >= 0, x, node.real("alpha") * x)),
        "MatMul": _folded(torch.matmul),
        "Max": _folded(torch.maximum),
        "MaxPool": _with_node(_max_pool),
        "Min": _folded(torch.minimum),
        "Mul": _folded(torch.mul),
        "Neg": _elementwise(torch.neg),
        "Pad": _with_node(_pad),
        "Pow": _with_node(lambda node, x: torch.pow(x, node.real("exponent"))),
        "ReduceMean": _with_node(_reduced(torch.mean)),
        "ReduceSum": _with_node(_reduced(torch.sum)),
        "Relu": _elementwise(torch.relu),
        "Reshape": _with_node(lambda node, x: x.reshape(node.integers("shape"))),
        "Round": _elementwise(lambda x: (x - x.detach()) + torch.round(x).detach()),
        "Sigmoid": _elementwise(torch.sigmoid),
        "Sign": _elementwise(torch.sign),
        "Sin": _elementwise(torch.sin),
        "Slice": _with_node(_slice),
        "Softmax": _with_node(lambda node, x: torch.softmax(x, dim=node.integer("axis"))),
        "Sub": _folded(torch.sub),
        "Tanh": _elementwise(torch.tanh),
        "Transpose": _with_node(lambda node, x: x.permute(node.integers("perm"))),
        "Truncate": _elementwise(torch.trunc),
    }
)


# Adam, bit for bit as torch has it by default, without the compiler that `torch.optim` loads


_FIRST, _SECOND, _LEAST = 0.9, 0.999, 1e-8


class Adam:
    """Moves tensors along running means of their gradients (Kingma and Ba, 2015).

    `rate` may be changed between steps. What `state` gives can be saved with torch.
    """

    def __init__(self, tensors: Iterable[Any], *, rate: float) -> None:
        self.rate = rate
        self._tensors = list(tensors)
        self._steps = [0] * len(self._tensors)
        self._means = [each.detach().clone().zero_() for each in self._tensors]
        self._squares = [each.clone() for each in self._means]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for each in self._tensors:
            each.grad = None

    def step(self) -> None:
        """Move each tensor that has a gradient."""
        for number, tensor in enumerate(self._tensors):
            gradient = tensor.grad
            if gradient is None:
                continue
            self._steps[number] += 1
            count, mean, square = self._steps[number], self._means[number], self._squares[number]
            mean.lerp_(gradient, 1 - _FIRST)
            square.mul_(_SECOND).addcmul_(gradient, gradient, value=1 - _SECOND)
            spread = (square.sqrt() / (1 - _SECOND**count) ** 0.5).add_(_LEAST)
            tensor.detach().addcdiv_(mean, spread, value=-(self.rate / (1 - _FIRST**count)))

    def state(self) -> dict[str, list[Any]]:
        """How many steps each tensor has made, and the means."""
        return {"steps": self._steps, "means": self._means, "squares": self._squares}

    def resume(self, state: dict[str, list[Any]]) -> None:
        """Continue from a state. Raises ValueError or KeyError if it is not that of such tensors."""
        for own, kept in ((self._means, state["means"]), (self._squares, state["squares"])):
            if [each.shape for each in own] != [each.shape for each in kept]:
                raise ValueError("the state belongs to other tensors")
        self._steps = list(state["steps"])
        self._means, self._squares = ([each.clone() for each in state[key]] for key in ("means", "squares"))
