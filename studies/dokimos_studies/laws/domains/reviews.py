"""Reviews: is a film review with a positive and a negative part positive or negative overall?

The reviews are composed of sentences of positive and negative reviews (see `opinions`): the parts are as
positive or negative as the reviews that their sentences come from, and the label says which part has more
sentences. A part has one sentence per line. The network's input is the mean, over the sentences, of what
small networks compute from the vectors of a sentence encoder (see `reading`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.domain.features import text as text_feature
from dokimos.laws.examples.training import DataSplit, Study
from dokimos_studies.laws.review_data import Collection, Memory, load_reviews, sentences_of
from dokimos_studies.laws.sentence_encoder import average
from dokimos_studies.laws.sentence_readers import Readers, kept_readers

FEATURES = [text_feature("positive"), text_feature("negative")]
CLASSES = ["positive", "negative"]
DECISION = "opinion"
ORDERED = False

_MEMORY = Memory()


@cache
def _reviews() -> Collection:
    found = load_reviews()
    _MEMORY.learn(found.sentences, keep=True)
    return found


@cache
def _readers() -> Readers:
    opinions = _reviews().opinions
    rows = _MEMORY.rows([sentence for each in opinions for sentence in each])
    labels = np.repeat(np.arange(len(opinions)), [len(each) for each in opinions])
    return kept_readers(_MEMORY.vectors[rows], labels)


def _load() -> DataSplit:
    train, test = _reviews().train, _reviews().test
    return DataSplit(encode(train.parts), train.labels, encode(test.parts), test.labels)


STUDY = Study("reviews", _load, hidden=(16,), epochs=3, decay=0.3)


def inputs() -> Any:
    """The reviews of the test set."""
    return _reviews().test.parts


def labels() -> Any:
    """Which part of each review has more sentences: 0 the positive, 1 the negative."""
    return _reviews().test.labels


def model() -> Any:
    """The network of the study, trained if it is not cached yet."""
    return STUDY.model()


MODELS = {"network": model}


def encode(records: NDArray[Any]) -> NDArray[np.float32]:
    """The network's input for reviews: the mean of the readers' ratings of all sentences of both parts."""
    readers = _readers()
    split = {part: sentences_of(part) for part in {part for record in records for part in record}}
    _MEMORY.learn([sentence for sentences in split.values() for sentence in sentences])
    rows = {part: _MEMORY.rows(sentences) for part, sentences in split.items()}
    members = [rows[positive] + rows[negative] for positive, negative in records]
    read = sorted({row for each in members for row in each})
    places = {row: place for place, row in enumerate(read)}
    return average(readers(_MEMORY.vectors[read]), [[places[row] for row in each] for each in members])


def text(record: Any) -> str:
    """The sentences: those of the positive part after a plus, the others after a minus."""
    marked = [
        f"{mark} {sentence}"
        for mark, part in zip("+-", record, strict=True)
        for sentence in sentences_of(part)
    ]
    return "\n".join(marked)
