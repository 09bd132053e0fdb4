"""Small networks that rate single sentences; the main network sees their mean over a whole review.

Each is trained to tell sentences of positive reviews from those of negative ones, on the sentences that the
training set is made of. Bounded ratings of sentences add up to better features of reviews than vectors do,
since no sentence outweighs all others.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.examples.training import Labels, kept_file, key_of, train_layers
from dokimos_studies.laws.sentence_encoder import Vectors

#: How many networks rate a sentence, and how each is trained.
READERS = 8
_HIDDEN, _EPOCHS, _DECAY, _RATE = 16, 8, 2.0, 1e-3


@dataclass(frozen=True)
class Readers:
    """Networks with one hidden layer each: all hidden units as rows, and their weight in each reader."""

    hidden: NDArray[np.float32]
    hidden_bias: NDArray[np.float32]
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]

    def __call__(self, vectors: Vectors) -> Vectors:
        """For each sentence the rating of each reader, from -1 (negative) to 1 (positive)."""
        units = np.maximum(vectors @ self.hidden.T + self.hidden_bias, 0)
        by_reader = units.reshape(len(vectors), *self.weights.shape)
        scores = np.einsum("nrh,rh->nr", by_reader, self.weights) + self.bias
        return np.asarray(np.tanh(scores / 2), dtype=np.float32)


def train_readers(vectors: Vectors, labels: Labels) -> Readers:
    """Train readers on sentences, labelled 0 if from positive reviews, else 1; each has its own seed."""
    exact = vectors.astype(np.float64)
    how: dict[str, Any] = {"hidden": (_HIDDEN,), "epochs": _EPOCHS, "decay": _DECAY, "rate": _RATE}
    trained = [train_layers(exact, labels, **how, fades=True, seed=seed) for seed in range(READERS)]
    # The positive share minus the negative share is tanh of half the difference of the scores.
    return Readers(
        np.concatenate([first[0] for first, _ in trained]).astype(np.float32),
        np.concatenate([first[1] for first, _ in trained]).astype(np.float32),
        np.stack([last[0][0] - last[0][1] for _, last in trained]).astype(np.float32),
        np.array([last[1][0] - last[1][1] for _, last in trained], dtype=np.float32),
    )


def kept_readers(vectors: Vectors, labels: Labels) -> Readers:
    """The readers trained on these sentences, trained once and cached."""
    made_from = vectors.tobytes() + labels.tobytes()
    made_from += str((READERS, _HIDDEN, _EPOCHS, _DECAY, _RATE)).encode()

    def train() -> bytes:
        buffer = io.BytesIO()
        np.savez(buffer, **vars(train_readers(vectors, labels)))
        return buffer.getvalue()

    path = kept_file(f"models/readers-{key_of(made_from)}.npz", train)
    with np.load(path, allow_pickle=False) as kept:
        return Readers(**kept)
