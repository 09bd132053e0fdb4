import gzip

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from onnx import TensorProto, helper

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.engine.runtimes.sessions import Replayer, live_part, load_session, replay, run_session
from tests.networks.building import Builder
from tests.networks.graphs import ONE_OF_EACH, models, numbers
from tests.shared import SHARED


def points_for(model: onnx.ModelProto, count: int, seed: int = 0) -> np.ndarray:
    size = int(np.prod([d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]))
    return np.random.default_rng(seed).uniform(-2, 2, size=(count, size)).astype(np.float32)


def test_what_onnxruntime_cannot_load_is_refused_and_prints_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    model = dense()
    model.graph.node[0].op_type = "Nope"
    content = model.SerializeToString().replace(b"Nope", b"N\xffpe")  # which its message repeats
    for optimised in (False, True):
        with pytest.raises(UnreadableFile, match="onnxruntime cannot load it"):
            load_session(content, "a network", optimised=optimised)
    assert capfd.readouterr() == ("", "")


def one_by_one(model: onnx.ModelProto, points: np.ndarray) -> np.ndarray:
    """What onnxruntime itself says, one run for each point."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    shape = session.get_inputs()[0].shape
    rows = [session.run(None, {"x": point.reshape(shape)})[0].reshape(-1) for point in points]
    return np.stack(rows)


def dense(opset: int = 17) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    builder = Builder((1, 4), opset=opset)
    hidden = builder.add("Relu", builder.add("MatMul", "x", builder.constant(numbers(rng, 4, 8))))
    return builder.model(builder.add("MatMul", hidden, builder.constant(numbers(rng, 8, 3))))


def test_batches_where_the_network_allows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    run = Replayer._run
    monkeypatch.setattr(
        Replayer,
        "_run",
        lambda self, session, points: runs.append(len(points)) or run(self, session, points),
    )
    points = points_for(dense(), 100)
    assert np.allclose(replay(dense().SerializeToString(), points), one_by_one(dense(), points), rtol=1e-5)
    assert 100 in runs and len(runs) < 10


@pytest.mark.parametrize("axis", [0, 1])
def test_networks_that_mix_the_rows_of_a_batch_are_run_point_by_point(axis: int) -> None:
    builder = Builder((1, 4), opset=13)
    total = builder.add("ReduceSum", "x", builder.integers([axis]))
    model = builder.model(builder.add("Sub", "x", total))
    points = points_for(model, 30)
    assert np.array_equal(replay(model.SerializeToString(), points), one_by_one(model, points))


def test_networks_that_fix_the_size_of_the_batch_are_run_point_by_point() -> None:
    builder = Builder((1, 4), opset=13)
    model = builder.model(builder.add("Reshape", "x", builder.integers([2, 2])))
    points = points_for(model, 30)
    replayer = Replayer(model.SerializeToString())
    assert np.array_equal(replayer(points), points)
    assert replayer._batched is None


def test_a_reshape_to_a_batch_of_one_keeps_a_larger_one() -> None:
    builder = Builder((1, 4), opset=13)
    square = builder.add("Reshape", "x", builder.integers([1, 2, 2]))
    turned = builder.add("Transpose", square, perm=[0, 2, 1])
    model = builder.model(builder.add("Reshape", turned, builder.integers([1, -1])))
    points = points_for(model, 30)
    replayer = Replayer(model.SerializeToString())
    assert np.array_equal(replayer(points), points[:, [0, 2, 1, 3]])
    assert replayer._batched is not None


@pytest.mark.parametrize("points", [3, 4, 5])
def test_a_reshape_whose_first_size_is_not_the_batch_is_run_point_by_point(points: int) -> None:
    builder = Builder((1, 4), opset=13)
    turned = builder.add("Transpose", "x", perm=[1, 0])
    model = builder.model(builder.add("Reshape", turned, builder.integers([1, 4])))
    given = points_for(model, points)
    replayer = Replayer(model.SerializeToString())
    assert np.array_equal(replayer(given), given)
    assert replayer._batched is None


def test_one_point_is_run_exactly_as_the_file_says() -> None:
    points = points_for(dense(), 50)
    replayer = Replayer(dense().SerializeToString())
    alone = np.concatenate([replayer(point[None]) for point in points])
    assert np.array_equal(alone, one_by_one(dense(), points))


def test_more_points_than_one_run_takes() -> None:
    points = points_for(dense(), 700)
    assert np.allclose(
        Replayer(dense().SerializeToString())(points), one_by_one(dense(), points), rtol=1e-5
    )


@pytest.mark.parametrize("name", [name for name in ONE_OF_EACH if name.endswith("@17")])
def test_every_operator(name: str) -> None:
    model = ONE_OF_EACH[name]
    points = points_for(model, 4)
    found = replay(model.SerializeToString(), points)
    assert np.allclose(found, one_by_one(model, points), rtol=1e-4, atol=1e-5)


@settings(deadline=None, max_examples=40)
@given(models())
def test_random_networks(model: onnx.ModelProto) -> None:
    points = points_for(model, 3)
    expected = one_by_one(model, points)
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    assert np.allclose(replay(model.SerializeToString(), points), expected, rtol=1e-3, atol=1e-3 * scale)


def test_open_batch_dimension() -> None:
    model = dense()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    points = points_for(dense(), 5)
    assert np.allclose(replay(model.SerializeToString(), points), one_by_one(dense(), points), rtol=1e-5)


def test_float64_networks() -> None:
    builder = Builder((1, 3), opset=17, dtype=np.float64)
    model = builder.model(builder.add("Mul", "x", builder.constant(np.array([0.1]))))
    points = np.array([[1, 2, 3]], np.float32)
    assert np.array_equal(replay(model.SerializeToString(), points), np.float32(points.astype(float) * 0.1))


def test_compressed_content() -> None:
    points = points_for(dense(), 3)
    content = dense().SerializeToString()
    assert np.array_equal(replay(gzip.compress(content), points), replay(content, points))


def test_no_points() -> None:
    assert replay(dense().SerializeToString(), np.empty((0, 4), np.float32)).shape == (0, 3)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_values_that_are_not_finite_pass_through(value: float) -> None:
    points = np.full((3, 4), value, np.float32)
    with np.errstate(all="ignore"):
        found = replay(dense().SerializeToString(), points)
        assert np.array_equal(found, one_by_one(dense(), points), equal_nan=True)


def test_leaves_the_standard_streams_alone(capfd: pytest.CaptureFixture[str]) -> None:
    builder = Builder((1, 4), opset=13)
    model = builder.model(builder.add("Reshape", "x", builder.integers([1, 2, 2])))
    replay(model.SerializeToString(), points_for(model, 3))
    with pytest.raises(UnreadableFile):
        Replayer(b"no network")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("content", [b"", b"no network", dense().SerializeToString()[:-20]])
def test_refuses_what_onnxruntime_cannot_load(content: bytes) -> None:
    with pytest.raises(UnreadableFile, match=r"^n\.onnx: onnxruntime cannot load it: [^\n]*$"):
        Replayer(content, name="n.onnx")


def test_refuses_several_inputs() -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in "xyz"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"])], "g", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    with pytest.raises(UnreadableFile, match="2 inputs and 1 outputs"):
        Replayer(model.SerializeToString())


def test_refuses_points_that_do_not_fit() -> None:
    replayer = Replayer(dense().SerializeToString(), name="n")
    with pytest.raises(InputError, match=r"n: points of shape \(2, 5\) do not fit a network of 4 inputs"):
        replayer(np.zeros((2, 5), np.float32))
    with pytest.raises(InputError, match="must be float32, not float64"):
        replayer(np.zeros((2, 4)))  # type: ignore[arg-type]


@pytest.mark.parametrize("op", ["Relu", "Asinh"])
def test_a_small_file_that_asks_for_much_memory_is_refused(op: str) -> None:
    builder = Builder((1, 4), opset=17)
    wide = builder.add("Expand", builder.add(op, "x"), builder.constant(np.array([2**28, 4]), np.int64))
    content = builder.model(builder.add("ReduceMax", wide, keepdims=0)).SerializeToString()
    with pytest.raises(InputError, match=r"n: onnxruntime failed: its tensors need more than 1,024 MB"):
        Replayer(content, name="n")
    points = points_for(dense(), 3)
    assert np.array_equal(replay(dense().SerializeToString(), points), one_by_one(dense(), points))


@pytest.mark.parametrize("shape", [(1, 2**28), (1,) * 65])
def test_refuses_inputs_that_are_too_large(shape: tuple[int, ...]) -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(UnreadableFile, match=r"its input of shape .* is too large"):
        Replayer(model.SerializeToString())


@pytest.mark.skipif(not SHARED.is_dir(), reason="no published benchmarks beside the project")
def test_published_networks_are_batched() -> None:
    for pattern in (
        "2021/cifar10_resnet/**/*2b*.onnx*",
        "2021/mnistfc/**/*.onnx*",
        "2026/acasxu_2023/**/*.onnx*",
    ):
        path = sorted(SHARED.glob(pattern))[0]
        replayer = Replayer(path.read_bytes(), name=str(path))
        points = np.random.default_rng(0).uniform(0, 1, (4, replayer.input_size)).astype(np.float32)
        found = replayer(points)
        alone = np.concatenate([replayer(point[None]) for point in points])
        assert np.allclose(found, alone, rtol=1e-3, atol=1e-4)
        assert replayer._batched is not None


def test_nodes_that_nothing_depends_on_are_not_run() -> None:
    """A Conv of no channels, of which onnxruntime never comes back, beside a ReLU."""
    builder = Builder((1, 2), opset=17)
    none = builder.add("Slice", "x", *(builder.integers([k]) for k in (0, 0, 1)))
    shape = builder.integers([2, 0, 3])
    weights = builder.constant(np.zeros((6, 0, 2), np.float32))
    builder.add("Conv", builder.add("Reshape", none, shape, allowzero=1), weights, group=3)
    content = builder.model(builder.add("Relu", "x")).SerializeToString()
    live = live_part(content)
    assert live is not None
    assert [node.op_type for node in onnx.load_model_from_string(live).graph.node] == ["Relu"]
    assert live_part(live) is None
    found = run_session(load_session(content, "n"), np.array([[-1.0, 2.0]], np.float32), "n")
    assert found.tolist() == [[0.0, 2.0]]
