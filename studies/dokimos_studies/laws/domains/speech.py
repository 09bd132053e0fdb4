"""Spoken commands: which of ten words is said in a second of sound?

The words are synthesised by eSpeak NG with many accents, speakers, speeds and pitches; the speakers of the
test set do not occur in the training set. A record is one second of sound, 8,000 samples of 16 bits.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.parallel import starting
from dokimos.laws.examples.training import DataSplit, Study, kept_file
from dokimos_studies.laws.speech_network import train_listener
from dokimos_studies.laws.speech_synthesis import Voice, Wave, synthesiser

CLASSES = ["yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"]
DECISION = "word"
ORDERED = False

_ACCENTS = (
    "en",
    "en-us",
    "en-us-nyc",
    "en-029",
    "en-gb-scotland",
    "en-gb-x-rp",
    "en-gb-x-gbclan",
    "en-gb-x-gbcwmd",
)
_SPEAKERS = (
    *("m1", "m2", "m3", "m4", "m5", "m6", "f1", "f2", "f3", "f5", "adam", "belinda", "david", "edward"),
    *("Gene", "john", "Lee", "linda", "paul", "Reed"),
)
_TEST_SPEAKERS = ("m7", "m8", "f4", "Alicia", "Andy", "Mike", "robert", "steph")
_UTTERANCES, _TEST_UTTERANCES = 3000, 2000
_SEED = 1
#: How much louder the word is than the noise, in decibels.
_SIGNAL_TO_NOISE = 10.0
#: How many sounds get noise at once: few enough to stay in the processor's cache.
_TOGETHER = 8


def _spoken(
    speakers: tuple[str, ...], count: int, rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Utterances of the words in turn; everything else is drawn at random."""
    sounds: list[Wave] = []
    for index in range(count):
        voice = Voice(
            accent=str(rng.choice(_ACCENTS)),
            speaker=str(rng.choice(speakers)),
            speed=int(rng.integers(110, 240)),
            pitch=int(rng.integers(20, 90)),
        )
        word = CLASSES[index % len(CLASSES)]
        sounds.append(synthesiser().second(word, voice, begin=float(rng.random())))
    return np.stack(sounds), np.arange(count, dtype=np.int64) % len(CLASSES)


def _all_spoken() -> tuple[NDArray[Any], ...]:
    """Utterances and words, to train on and to test on."""
    rng = np.random.default_rng(_SEED)
    return *_spoken(_SPEAKERS, _UTTERANCES, rng), *_spoken(_TEST_SPEAKERS, _TEST_UTTERANCES, rng)


def _afresh(work: Callable[[], tuple[NDArray[Any], ...]]) -> tuple[NDArray[Any], ...]:
    """The result of some work in a new process, in which nothing has been synthesised yet."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        with starting(work):
            future = process.submit(work)
        return future.result()


def _speech_file() -> bytes:
    synthesiser()  # a missing package is said here
    train, labels, test, test_labels = _afresh(_all_spoken)
    buffer = io.BytesIO()
    np.savez(
        buffer,
        train=train.astype(np.int16),
        labels=labels,
        test=test.astype(np.int16),
        test_labels=test_labels,
    )
    return buffer.getvalue()


def _load() -> DataSplit:
    """The utterances, synthesised once and cached."""
    path = kept_file(f"data/speech-{_UTTERANCES}-{_TEST_UTTERANCES}-{_SEED}.npz", _speech_file)
    with np.load(path, allow_pickle=False) as kept:
        train, test = (kept[name].astype(np.int32) for name in ("train", "test"))
        return DataSplit(train, kept["labels"], test, kept["test_labels"])


class _Listener(Study):
    def train(self, seed: int = 0) -> bytes:
        """See Study."""
        split = self.split
        return train_listener(
            split.train, split.train_labels, classes=len(CLASSES), epochs=self.epochs, seed=seed
        )


STUDY = _Listener("speech", _load, hidden=(128,), epochs=6)


def inputs() -> Any:
    """The utterances of the test set."""
    return STUDY.split.test


def labels() -> Any:
    """The word in each."""
    return STUDY.split.test_labels


def model() -> Any:
    """The network of the study, trained if it is not cached yet."""
    return STUDY.model()


MODELS = {"network": model}


def wNoise_batch(  # noqa: N802  # the paper's name
    records: NDArray[Any], rngs: Sequence[np.random.Generator]
) -> NDArray[Any]:
    """The sounds with white noise added to their samples, 10 decibels below the word (if there is one).

    The same generator adds the same noise, whatever the batch.
    """
    made = np.empty_like(records)
    for start in range(0, len(records), _TOGETHER):
        part = slice(start, start + _TOGETHER)
        made[part] = _noisy(records[part], rngs[part])
    return made


def _noisy(records: NDArray[Any], rngs: Sequence[np.random.Generator]) -> NDArray[np.float64]:
    exact = records.astype(np.float64)
    heard = np.count_nonzero(records, axis=1)
    power = np.where(heard, np.square(exact).sum(axis=1) / np.maximum(heard, 1), 1.0)
    noise = np.empty_like(exact)
    for row, rng in zip(noise, rngs, strict=True):
        rng.standard_normal(out=row)
    noise *= (np.sqrt(power) * 10 ** (-_SIGNAL_TO_NOISE / 20))[:, None]
    noise += exact
    return np.clip(np.rint(noise, out=noise), -(2**15), 2**15 - 1, out=noise)


def picture(record: NDArray[Any]) -> NDArray[np.uint8]:
    """The wave, from left to right: white on black."""
    columns = np.array_split(np.asarray(record), 250)
    low, high = np.array([(part.min(), part.max()) for part in columns]).T
    levels = np.linspace(2**15, -(2**15), 65)[:, None]
    step = 2.0**16 / 64
    return np.where((levels <= high + step) & (levels >= low - step), 255, 0).astype(np.uint8)
