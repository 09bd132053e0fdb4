"""Reviews: their pieces, their sentences, their parts, and what a network sees of them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dokimos.constructions.data.packages import PackagedFile
from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import load_domain, shipped_laws
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.engine.results import LawSettings
from dokimos.laws.examples.training import relu_network, train_layers
from dokimos.laws.language.parser import read_law
from dokimos.laws.models.files import onnx_model
from dokimos.laws.models.lookup import load_model
from dokimos_studies.laws import review_data, sentence_encoder, sentence_readers
from dokimos_studies.laws.domains import reviews
from dokimos_studies.laws.review_data import Memory, put_together, sentences_of, source_sentences
from dokimos_studies.laws.sentence_encoder import Encoder, average, encoder_network, tensors
from dokimos_studies.laws.sentence_readers import READERS, kept_readers, train_readers
from dokimos_studies.laws.tokenizer import WordPiece

#: Pieces of texts with marks, accents, scripts and characters that are hard to see.
WORDPIECE = json.loads((Path(__file__).parents[1] / "corpus" / "wordpiece.json").read_text())
VOCABULARY = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nplay\n##ing\n##s\n!\n'\ncafe\n中\nt\ndon\n"


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Playing plays!", ["play", "##ing", "play", "##s", "!"]),
        ("CAFÉ", ["cafe"]),
        ("don't", ["don", "'", "t"]),
        ("中play\u200b", ["中", "play"]),
        ("unheard of", ["[UNK]", "[UNK]"]),
        ("play" * 30, ["[UNK]"]),
        ("", []),
        (" \n\t", []),
    ],
)
def test_words_become_pieces(text: str, pieces: list[str]) -> None:
    known = VOCABULARY.split("\n")
    numbers = WordPiece(VOCABULARY).numbers(text, most=256)
    assert [known[number] for number in numbers] == ["[CLS]", *pieces, "[SEP]"]


@pytest.mark.no_cover
@pytest.mark.parametrize("case", WORDPIECE["texts"], ids=lambda case: ascii(case["text"])[:30])
def test_pieces_of_all_kinds_of_text(case: dict[str, Any]) -> None:
    known = WORDPIECE["vocabulary"]
    numbers = WordPiece("\n".join(known)).numbers(case["text"], most=256)
    assert [known[number] for number in numbers] == case["pieces"]


def test_a_missing_package_gets_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(InputError, match=r"needs tokenizers; .* pip install 'tokenizers>="):
        WordPiece(VOCABULARY)


def test_no_network_is_needed() -> None:
    script = (
        "import socket, sys\n"
        "def refuse(*_, **__):\n    raise AssertionError('a connection')\n"
        "socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse\n"
        "from dokimos_studies.laws.tokenizer import WordPiece\n"
        f"print(WordPiece({VOCABULARY!r}).numbers('play', most=9))\n"
        "print([name for name in sys.modules if name.startswith('huggingface')])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[2, 4, 3]", "[]"]


def test_only_so_many_pieces_count() -> None:
    numbers = WordPiece(VOCABULARY).numbers("play " * 50, most=10)
    assert len(numbers) == 10 and numbers[0] == 2 and numbers[-1] == 3


def _random_weights(words: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    width, inner = sentence_encoder.WIDTH, 1536
    shapes = {
        "embeddings.word_embeddings.weight": (words, width),
        "embeddings.position_embeddings.weight": (512, width),
        "embeddings.token_type_embeddings.weight": (2, width),
        "embeddings.LayerNorm.weight": (width,),
        "embeddings.LayerNorm.bias": (width,),
    }
    for layer in range(6):
        name = f"encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes[f"{name}.attention.{part}.weight"] = (width, width)
            shapes[f"{name}.attention.{part}.bias"] = (width,)
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"{name}.{part}.weight"] = shapes[f"{name}.{part}.bias"] = (width,)
        shapes |= {
            f"{name}.intermediate.dense.weight": (inner, width),
            f"{name}.intermediate.dense.bias": (inner,),
            f"{name}.output.dense.weight": (width, inner),
            f"{name}.output.dense.bias": (width,),
        }
    return {
        name: rng.normal(scale=0.08, size=shape).astype(np.float32) + ("Norm.weight" in name)
        for name, shape in shapes.items()
    }


def _safetensors(weights: dict[str, Any]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, values in weights.items():
        end = at + values.nbytes
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(each.tobytes() for each in weights.values())


def test_tensors_are_read() -> None:
    weights = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(2, dtype=np.float32)}
    found = tensors(_safetensors(weights))
    assert list(found) == ["a", "b"] and all((found[name] == weights[name]).all() for name in found)


def test_the_encoder_is_bert_as_torch_computes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    words = VOCABULARY.count("\n")
    weights = _random_weights(words)
    files = {"vocab.txt": VOCABULARY.encode(), "model.safetensors": _safetensors(weights)}
    monkeypatch.setattr(PackagedFile, "fetch", lambda file: files[Path(file.member).name])
    texts = ["play", "playing plays ! don't play cafe", "plays"]
    found = Encoder()(texts)
    pieces = WordPiece(VOCABULARY)
    for row, text in enumerate(texts):
        wanted = _by_torch(torch, weights, pieces.numbers(text, most=256))
        assert np.allclose(found[row], wanted, atol=2e-5)
    assert encoder_network(weights) == encoder_network(weights)


def _by_torch(torch: Any, weights: dict[str, Any], numbers: list[int]) -> Any:
    """The encoder by torch's own layers, for one sentence."""
    tensor = {name: torch.from_numpy(values) for name, values in weights.items()}
    norm = torch.nn.functional.layer_norm
    width = sentence_encoder.WIDTH
    hidden = tensor["embeddings.word_embeddings.weight"][numbers]
    hidden = hidden + tensor["embeddings.position_embeddings.weight"][: len(numbers)]
    hidden = hidden + tensor["embeddings.token_type_embeddings.weight"][0]
    hidden = norm(
        hidden, (width,), tensor["embeddings.LayerNorm.weight"], tensor["embeddings.LayerNorm.bias"], 1e-12
    )[None]
    means = []
    for index in range(6):
        name = f"encoder.layer.{index}"
        layer = torch.nn.TransformerEncoderLayer(
            width, 12, 1536, dropout=0, activation="gelu", layer_norm_eps=1e-12, batch_first=True
        ).eval()
        attention = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        state = {
            "self_attn.in_proj_weight": torch.cat([tensor[f"{each}.weight"] for each in attention]),
            "self_attn.in_proj_bias": torch.cat([tensor[f"{each}.bias"] for each in attention]),
        }
        for own, theirs in {
            "self_attn.out_proj": "attention.output.dense",
            "linear1": "intermediate.dense",
            "linear2": "output.dense",
            "norm1": "attention.output.LayerNorm",
            "norm2": "output.LayerNorm",
        }.items():
            state |= {f"{own}.{kind}": tensor[f"{name}.{theirs}.{kind}"] for kind in ("weight", "bias")}
        layer.load_state_dict(state)
        with torch.no_grad():
            hidden = layer(hidden)
        means.append(hidden[0].mean(dim=0).numpy())
    return np.concatenate([mean / np.linalg.norm(mean) for mean in means[2:]])


def test_means_of_groups() -> None:
    vectors = np.array([[1.0, 0], [3, 0], [0, 8]], dtype=np.float32)
    assert average(vectors, [[0, 1], [], [2], [0, 2]]).tolist() == [[2, 0], [0, 0], [0, 8], [0.5, 4]]
    assert average(vectors, [[], []]).tolist() == [[0, 0], [0, 0]]


def _rows() -> list[tuple[str, int]]:
    made = []
    for number in range(40):
        for label, word in ((1, "good"), (0, "bad")):
            text = f"This film is {word}, number {number}.<br /><br />It was really {word} {number}! Short."
            made.append((text, label))
    return [*made, made[0]]


def test_no_review_is_in_both_sets() -> None:
    train, test = source_sentences(_rows())
    for part, word in ((0, "good"), (1, "bad")):
        assert all(word in sentence and "<" not in sentence for sentence in train[part] + test[part])
        numbers = [{sentence.rstrip(".!").split()[-1] for sentence in each[part]} for each in (train, test)]
        assert numbers[0] and numbers[1] and not numbers[0] & numbers[1]
        assert len(train[part]) + len(test[part]) == 80 and "Short." not in train[part]


def test_the_longer_part_is_the_label() -> None:
    train, _ = source_sentences(_rows())
    made = put_together(train, 50, np.random.default_rng(0))
    sizes = np.array([[len(sentences_of(part)) for part in parts] for parts in made.parts])
    assert ((sizes[:, 0] < sizes[:, 1]) == (made.labels == 1)).all() and (sizes[:, 0] != sizes[:, 1]).all()
    assert sizes.min() == 1 and made.labels.mean() == 0.5
    assert all("good" in positive and "good" not in negative for positive, negative in made.parts)


def test_parts_joined_have_the_sentences_of_both() -> None:
    assert sentences_of("One.\nTwo.\n" + "Three.\n") == ["One.", "Two.", "Three."]
    assert sentences_of("") == []


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stands in for the encoder: a vector that says whether a sentence is good or bad; what it encoded."""
    seen: list[str] = []

    def encode(new: Any) -> Any:
        seen.extend(new)
        vectors = np.zeros((len(new), sentence_encoder.VECTOR), dtype=np.float32)
        vectors[:, 0] = ["good" in sentence for sentence in new]
        vectors[:, 1] = ["bad" in sentence for sentence in new]
        return vectors

    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path))
    monkeypatch.setattr(review_data, "_encoder", lambda: encode)
    monkeypatch.setattr(reviews, "_MEMORY", Memory())
    reviews._reviews.cache_clear()
    reviews._readers.cache_clear()
    yield seen
    reviews._reviews.cache_clear()
    reviews._readers.cache_clear()
    vars(reviews.STUDY).pop("split", None)


def test_sentences_are_encoded_once(counted: list[str]) -> None:
    memory = Memory()
    memory.learn(["good a", "bad b", "good a"], keep=True)
    memory.learn(["bad b", "good c"])
    assert counted == ["good a", "bad b", "good c"]
    assert memory.vectors[memory.rows(["bad b", "good c"])][:, :2].tolist() == [[0, 1], [1, 0]]
    again = Memory()
    again.learn(["good a", "bad b"], keep=True)
    assert len(counted) == 3 and (again.vectors == memory.vectors[:2]).all()


@pytest.fixture
def plain_readers(counted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands in for the readers: the vectors as they are."""
    monkeypatch.setattr(reviews, "_readers", cache(lambda: lambda vectors: vectors))


@pytest.mark.no_cover
def test_readers_tell_good_from_bad_and_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path))
    rng = np.random.default_rng(0)
    labels = np.arange(3000) % 2
    vectors = rng.normal(size=(3000, 6)).astype(np.float32)
    vectors[:, 2] += 6 * labels - 3
    readers = kept_readers(vectors, labels)
    found = readers(vectors)
    assert found.shape == (3000, READERS) and np.abs(found).max() <= 1
    assert ((found < 0) == (labels == 1)[:, None]).mean() > 0.95
    assert len({tuple(each) for each in found.T}) == READERS  # each has its own mind
    (file,) = (tmp_path / "models").iterdir()
    monkeypatch.setattr(sentence_readers, "train_readers", None)
    assert (kept_readers(vectors, labels)(vectors) == found).all()
    assert file.suffix == ".npz"


def test_a_reader_says_the_shares_of_its_network(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    layers = [
        [[rng.normal(size=(16, 5)), rng.normal(size=16)], [rng.normal(size=(2, 16)), rng.normal(size=2)]]
        for _ in range(READERS)
    ]
    monkeypatch.setattr(sentence_readers, "train_layers", lambda *_, seed, **__: layers[seed])
    vectors = rng.normal(size=(7, 5)).astype(np.float32)
    found = train_readers(vectors, np.zeros(7, dtype=np.int64))(vectors)
    for reader, (first, last) in enumerate(layers):
        scores = np.maximum(vectors @ first[0].T + first[1], 0) @ last[0].T + last[1]
        shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        assert np.allclose(found[:, reader], shares[:, 0] - shares[:, 1], atol=1e-5)


@pytest.mark.usefixtures("plain_readers")
def test_a_network_sees_the_mean_over_both_parts() -> None:
    records = np.array([["good x\ngood y\n", "bad z\n"], ["", "bad z\n"], ["", ""]], dtype=object)
    seen = reviews.encode(records)[:, :2]
    assert np.allclose(seen, [[2 / 3, 1 / 3], [0, 1], [0, 0]])
    assert reviews.text(records[0]) == "+ good x\n+ good y\n- bad z"


def test_laws_run_on_the_domain(counted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "text,label,source\n" + "".join(f'"{text}",{label},rotten_tomatoes\n' for text, label in _rows())
    monkeypatch.setattr(PackagedFile, "fetch", lambda file: rows.encode())
    monkeypatch.setattr(review_data, "_MADE", 400)
    monkeypatch.setattr(review_data, "_TEST_MADE", 60)
    domain = load_domain("reviews")
    assert domain.inputs is not None and domain.labels is not None and domain.model is not None
    model = load_model(domain.model(), domain)
    assert (model.predict(domain.inputs()) == domain.labels()).mean() > 0.9
    laws = [read_law(path) for path in shipped_laws("reviews")]
    results = [run_law(law, model=model, domain=domain, settings=LawSettings(budget=200)) for law in laws]
    assert all(each.tested and not each.failed for each in results)

    def reversed_model(records: Any) -> Any:
        return 1 - model.predict(records)

    reversed_model.batched = True  # type: ignore[attr-defined]
    wrong = [
        run_law(law, model=reversed_model, domain=domain, settings=LawSettings(budget=200)) for law in laws
    ]
    assert all(each.is_violated for each in wrong)


@pytest.mark.usefixtures("plain_readers")
def test_networks_of_torch_see_the_same() -> None:
    torch = pytest.importorskip("torch")
    domain = load_domain("reviews")
    vectors = np.eye(2, sentence_encoder.VECTOR, dtype=np.float64).repeat(20, axis=0)
    network = relu_network(
        train_layers(vectors, np.arange(2).repeat(20), hidden=(4,), epochs=60, together=True)
    )
    linear = torch.nn.Linear(sentence_encoder.VECTOR, 2, bias=False)
    with torch.no_grad():
        linear.weight.copy_(torch.eye(2, sentence_encoder.VECTOR))
    from dokimos.laws.models.lookup import as_model

    records = np.array([["good\n", ""], ["", "bad\n"]], dtype=object)
    assert onnx_model(network, domain, name="n").predict(records).tolist() == [0, 1]
    assert as_model(linear, domain, name="t").predict(records).tolist() == [0, 1]


@pytest.mark.slow
def test_sentences_that_mean_the_like_are_near() -> None:
    try:
        encode = Encoder()
    except InputError as problem:
        pytest.skip(str(problem))
    first, *others = encode(
        [
            "That is a happy person",
            "That is a happy dog",
            "That is a very happy person",
            "Today is a sunny day",
        ]
    )
    own = slice(-sentence_encoder.WIDTH, None)  # the encoder's own answer, the mean of its last layer
    assert np.allclose([first[own] @ other[own] for other in others], [0.695, 0.943, 0.257], atol=1e-3)


@pytest.mark.slow
def test_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        test = reviews._reviews().test
    except InputError as problem:
        pytest.skip(str(problem))
    buffer = io.BytesIO(reviews.STUDY.train())
    model = onnx_model(buffer.getvalue(), load_domain("reviews"), name="reviews")
    assert (model.predict(test.parts) == test.labels).mean() > 0.74
