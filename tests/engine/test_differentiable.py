import numpy as np
import onnx
import pytest
from hypothesis import given, settings

from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.graph import CORE_OPS, Network, Node
from dokimos.networks.reading.onnx_file import read_onnx
from tests.networks.building import Builder
from tests.networks.graphs import ONE_OF_EACH, models, numbers

torch = pytest.importorskip("torch", reason="torch, which gradients need, is not installed")

from dokimos.engine.differentiable import TABLE, to_torch  # noqa: E402

#: Operators that are smooth where their step puts them, so that differences approach gradients.
SMOOTH = (
    *(
        "Add/constant",
        "AveragePool",
        "BatchNormalization",
        "Concat",
        "Conv",
        "Conv/grouped",
        "Conv/dilated",
    ),
    *(
        "Conv/line",
        "Div/constant",
        "Expand",
        "Flatten",
        "Gather",
        "Gemm",
        "Gemm/scaled",
        "MatMul",
        "MatMul/left",
    ),
    *("Mul/constant", "Neg", "Pad", "Pad/crop", "ReduceMean", "ReduceSum", "Reshape", "Sigmoid", "Slice"),
    *("Slice/backward", "Sub/constant", "Tanh", "Transpose/perm"),
)


def points_for(network: Network, count: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(-2, 2, (count, network.input_size)).astype(np.float32)


def test_every_core_operator_has_a_rule() -> None:
    assert set(TABLE) == set(CORE_OPS)


@pytest.mark.parametrize("name", [name for name in ONE_OF_EACH if name.endswith(("@8", "@22"))])
def test_agrees_with_onnxruntime(name: str) -> None:
    content = ONE_OF_EACH[name].SerializeToString()
    network = read_onnx(content)
    points = points_for(network, 3)
    found = to_torch(network)(torch.from_numpy(points))
    assert found.dtype == torch.float64
    assert found.shape == (3, network.output_size)
    assert np.allclose(found.numpy(), replay(content, points), rtol=1e-4, atol=1e-5)


@settings(deadline=None, max_examples=40)
@given(models())
def test_random_networks_agree_with_onnxruntime(model: onnx.ModelProto) -> None:
    content = model.SerializeToString()
    network = read_onnx(content)
    points = points_for(network, 2)
    expected = replay(content, points)
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    found = to_torch(network)(torch.from_numpy(points)).numpy()
    assert np.allclose(found, expected, rtol=1e-3, atol=1e-3 * scale)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_agree_with_differences(name: str) -> None:
    function = to_torch(read_onnx(ONE_OF_EACH[f"{name}@17"].SerializeToString()))
    point = torch.from_numpy(np.random.default_rng(2).uniform(-2, 2, (1, 40)))
    jacobian = torch.autograd.functional.jacobian(function, point)[0, :, 0, :]
    step = 1e-5
    shifts = step * torch.eye(40, dtype=torch.float64)
    differences = (function(point + shifts) - function(point - shifts)).T / (2 * step)
    assert torch.allclose(jacobian, differences, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "gradient"),
    [
        ("Relu", [0.0, 1.0]),
        ("LeakyRelu/alpha", None),
        ("Clip", [0.0, 0.0]),
        ("MaxPool", None),
        ("Max", [0, 1]),
    ],
)
def test_gradients_of_kinked_operators_exist(name: str, gradient: list[float] | None) -> None:
    function = to_torch(read_onnx(ONE_OF_EACH[f"{name}@17"].SerializeToString()))
    point = torch.linspace(-2.1, 1.9, 40, dtype=torch.float64)[None].requires_grad_()
    (found,) = torch.autograd.grad(function(point).sum(), point)
    assert torch.isfinite(found).all() and found.abs().sum() > 0
    if name == "Relu":
        assert [found[0, 0], found[0, -1]] == gradient


def test_rows_do_not_touch_each_other() -> None:
    builder = Builder((1, 4), opset=13)
    total = builder.add("ReduceSum", "x", builder.integers([0]))
    network = read_onnx(builder.model(builder.add("Mul", "x", total)).SerializeToString())
    points = torch.tensor([[1.0, 2, 3, 4], [5, 6, 7, 8]])
    assert torch.equal(to_torch(network, dtype=torch.float32)(points), points**2)


def test_gradients_of_many_rows_at_once() -> None:
    rng = np.random.default_rng(0)
    builder = Builder((1, 4), opset=13)
    weights = numbers(rng, 4, 1)
    network = read_onnx(
        builder.model(builder.add("MatMul", "x", builder.constant(weights))).SerializeToString()
    )
    points = torch.zeros((7, 4), dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(to_torch(network)(points).sum(), points)
    assert np.array_equal(found.numpy(), np.tile(weights.T.astype(float), (7, 1)))


def test_no_rows() -> None:
    network = read_onnx(ONE_OF_EACH["Relu@17"].SerializeToString())
    assert to_torch(network)(torch.empty((0, 40))).shape == (0, 40)


def test_refuses_points_that_do_not_fit() -> None:
    network = read_onnx(ONE_OF_EACH["Relu@17"].SerializeToString())
    with pytest.raises(ValueError, match=r"points of shape \(2, 3\) are not \[k, 40\]"):
        to_torch(network)(torch.zeros((2, 3)))


def test_no_axes_reduce_nothing() -> None:
    node = Node("ReduceSum", ("x",), "y", {"axes": (), "keepdims": 1})
    x = torch.ones((1, 3))
    assert torch.equal(TABLE["ReduceSum"](node, [x]), x)
