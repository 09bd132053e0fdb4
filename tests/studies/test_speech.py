"""Spoken commands: the spectrogram, the network that hears it, noise, and eSpeak where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import load_domain, shipped_laws
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.engine.results import LawSettings
from dokimos.laws.language.parser import read_law
from dokimos.laws.models.files import onnx_model
from dokimos_studies.laws import speech_network
from dokimos_studies.laws.domains import speech
from dokimos_studies.laws.speech_network import bands, train_listener, waves
from dokimos_studies.laws.speech_synthesis import LENGTH, RATE, Voice, _resampled


def tone(frequency: float, *, loudness: float = 8000, shift: float = 0) -> Any:
    """A second of one tone."""
    turns = 2 * np.pi * (frequency * np.arange(LENGTH) / RATE + shift)
    return np.rint(loudness * np.sin(turns)).astype(np.int32)


def test_the_transform_is_fouriers() -> None:
    window = tone(1000)[: waves().shape[2]].astype(np.float64)
    parts = waves()[:, 0].astype(np.float64) @ window
    cosines, sines = np.split(parts, 2)
    wanted = np.fft.rfft(window * np.hanning(len(window)))
    assert np.allclose(cosines, wanted.real, atol=1) and np.allclose(sines, -wanted.imag, atol=1)


def test_each_band_hears_its_frequencies() -> None:
    shares = bands()[:, : bands().shape[1] // 2, 0]
    assert (shares >= 0).all() and (shares.sum(axis=1) > 0).all()
    peaks = shares.argmax(axis=1)
    assert (np.diff(peaks) > 0).all()


def noisy_one(record: NDArray[Any], seed: int = 0) -> NDArray[Any]:
    return speech.wNoise_batch(record[None], [np.random.default_rng(seed)])[0]


def test_noise_is_white_and_as_loud_as_it_should_be() -> None:
    record = tone(440)
    noisy = noisy_one(record)
    noise = (noisy - record).astype(np.float64)
    loudness = np.sqrt(np.mean(record[record != 0].astype(np.float64) ** 2))
    assert 20 * np.log10(loudness / noise.std()) == pytest.approx(10, abs=0.3)
    power = np.abs(np.fft.rfft(noise)[1:-1]) ** 2
    quarters = [part.mean() for part in np.array_split(power, 4)]
    assert max(quarters) < 1.3 * min(quarters)  # as much of it in every quarter of the spectrum
    assert noisy.dtype == record.dtype and np.abs(noisy).max() < 2**15
    silent = noisy_one(np.zeros(LENGTH, dtype=np.int32))
    assert 0 < np.abs(silent).max() <= 2


def test_noise_of_a_record_is_the_same_in_every_batch() -> None:
    records = np.stack([tone(100 * (index + 1), loudness=1000 * index) for index in range(19)])
    together = speech.wNoise_batch(records, [np.random.default_rng(seed) for seed in range(19)])
    for seed, record in enumerate(records):
        heard = record[record != 0].astype(np.float64)
        loudness = np.sqrt(np.mean(heard**2)) if heard.size else 1.0
        noise = np.random.default_rng(seed).normal(scale=loudness * 10**-0.5, size=record.shape)
        assert (together[seed] == np.clip(np.rint(record + noise), -(2**15), 2**15 - 1)).all()
        assert (together[seed] == noisy_one(record, seed)).all()


def test_a_record_is_a_picture_of_its_wave() -> None:
    picture = speech.picture(tone(5, loudness=30_000))
    assert picture.dtype == np.uint8 and picture.ndim == 2 and set(np.unique(picture)) == {0, 255}
    silence = speech.picture(np.zeros(LENGTH, dtype=np.int32))
    assert 0 < (silence == 255).sum() < (picture == 255).sum()


def test_resampling_keeps_what_can_be_heard_and_drops_the_rest() -> None:
    time = np.arange(22050) / 22050
    low, high = (np.sin(2 * np.pi * frequency * time) * 10_000 for frequency in (1000, 6000))
    assert np.abs(_resampled(low + high) - tone(1000, loudness=10_000)).max() <= 2


@pytest.fixture
def tones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The domain with a tone for each word instead of speech."""
    pytest.importorskip("torch")

    class Tones:
        def second(self, word: str, voice: Voice, *, begin: float) -> Any:
            return tone(
                300 * (1 + speech.CLASSES.index(word)), loudness=2000 + 40 * voice.pitch, shift=begin
            )

    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path))
    monkeypatch.setattr(speech, "synthesiser", Tones)
    monkeypatch.setattr(speech, "_afresh", lambda work: work())
    monkeypatch.setattr(speech, "_UTTERANCES", 200)
    monkeypatch.setattr(speech, "_TEST_UTTERANCES", 40)
    vars(speech.STUDY).pop("split", None)
    yield load_domain("speech")
    vars(speech.STUDY).pop("split", None)


def _hears_in_noise(record: Any) -> int:
    """Knows the tone, but only where there is noise around it."""
    spectrum = np.abs(np.fft.rfft(record))
    return int(spectrum.argmax()) // 300 - 1 if np.median(spectrum) > 1000 else -1


def test_the_network_learns_tones_and_the_law_runs(tones: Any) -> None:
    path = speech.model()
    model = onnx_model(path.read_bytes(), tones, name="speech")
    assert (model.predict(speech.inputs()) == speech.labels()).mean() > 0.9
    (law,) = shipped_laws("speech")
    result = run_law(read_law(law), model=model, domain=tones, settings=LawSettings(budget=60))
    assert result.tested == 60 and not result.failed and not result.is_exhaustive
    in_noise = run_law(read_law(law), model=_hears_in_noise, domain=tones, settings=LawSettings(budget=60))
    assert in_noise.violated == 60 and not in_noise.failed
    assert speech.STUDY.split.train.shape == (200, LENGTH)


def test_the_file_hears_what_torch_trained() -> None:
    torch = pytest.importorskip("torch")
    sounds = np.stack([tone(400 + 300 * (index % 3), shift=index / 7) for index in range(30)])
    labels = np.arange(30) % 3
    content = train_listener(sounds, labels, classes=3, epochs=8)
    assert content == train_listener(sounds, labels, classes=3, epochs=8)
    model = onnx_model(content, None, name="n")
    assert (model.predict(sounds) == labels).mean() > 0.9
    seen = speech_network._spectrogram(torch, sounds[:2]).numpy()
    assert seen.shape == (2, 32, 32)


def test_a_voice_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "espeakng_loader", None)
    from dokimos_studies.laws.speech_synthesis import Synthesiser

    with pytest.raises(InputError, match=r"needs espeakng_loader; .* pip install espeakng-loader==\d"):
        Synthesiser()


def test_espeak_speaks() -> None:
    pytest.importorskip("espeakng_loader")
    from dokimos_studies.laws.speech_synthesis import synthesiser

    voice = Voice("en-us", "f2", 160, 50)
    yes, no = (synthesiser().second(word, voice, begin=0.5) for word in ("yes", "no"))
    assert yes.shape == (LENGTH,) and np.abs(yes).max() > 3000 and (yes != no).any()
    late = synthesiser().second("yes", voice, begin=0.9)
    assert np.flatnonzero(np.abs(late) > 100)[0] > np.flatnonzero(np.abs(yes) > 100)[0]
    with pytest.raises(InputError, match=r"has no voice nowhere\+f2"):
        synthesiser().say("yes", Voice("nowhere", "f2", 160, 50))


def _few() -> Any:
    return speech._spoken(("m7", "f4"), 12, np.random.default_rng(0))


def test_the_same_words_are_spoken_in_every_process() -> None:
    pytest.importorskip("espeakng_loader")
    first, again = (speech._afresh(_few) for _ in range(2))
    assert (first[0] == again[0]).all() and first[1].tolist() == [*range(10), 0, 1]


def test_who_speaks_in_the_test_set_does_not_in_training() -> None:
    assert not set(speech._SPEAKERS) & set(speech._TEST_SPEAKERS)


@pytest.mark.slow
def test_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("espeakng_loader")
    pytest.importorskip("torch")
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path))
    model = onnx_model(speech.model().read_bytes(), load_domain("speech"), name="speech")
    assert (model.predict(speech.inputs()) == speech.labels()).mean() > 0.75
