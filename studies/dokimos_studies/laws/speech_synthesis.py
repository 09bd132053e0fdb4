"""Spoken words, synthesised by eSpeak NG (the library in the package espeakng-loader) in many voices."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos_studies.laws.extras import needed

Wave = NDArray[np.int32]

#: Samples per second, and samples of an utterance: one second.
RATE = LENGTH = 8000

# Constants of eSpeak's interface (speak_lib.h).
_RETRIEVAL, _UTF8 = 1, 1
_SPEED, _PITCH = 1, 3
_CHARACTER_POSITION = 1
_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


@dataclass(frozen=True)
class Voice:
    """Who speaks and how: the accent, the speaker, words a minute, and the pitch from 0 to 99."""

    accent: str
    speaker: str
    speed: int
    pitch: int


class Synthesiser:
    """eSpeak NG, loaded once per process.

    Its breath noise is seeded here. Its output depends on everything it has synthesised before: the same
    words in the same order, from the start of a process, give the same samples.
    """

    def __init__(self) -> None:
        """Raises InputError if the package is not installed or its library does not load."""
        loader = needed("espeakng_loader", "speech")
        try:
            self._library = ctypes.CDLL(loader.get_library_path())
            data = loader.get_data_path()
        except (OSError, RuntimeError) as problem:
            raise InputError(f"The speech library of espeakng-loader cannot be used: {problem}.") from None
        self._samples: list[NDArray[np.int16]] = []
        self._callback = _Callback(self._receive)  # kept: the library has no reference that Python counts
        self._rate = self._library.espeak_Initialize(_RETRIEVAL, 0, data.encode(), 0)
        if self._rate <= 0:
            raise InputError("The speech library of espeakng-loader does not start.")
        self._library.espeak_SetSynthCallback(self._callback)
        self._library.espeak_ng_SetRandSeed(ctypes.c_long(1))

    def _receive(self, samples: Any, count: int, events: Any) -> int:
        if samples and count > 0:
            self._samples.append(np.ctypeslib.as_array(samples, shape=(count,)).copy())
        return 0

    def say(self, word: str, voice: Voice) -> NDArray[np.int16]:
        """The samples of a word, at the library's own rate. Raises InputError for an unknown voice."""
        library = self._library
        if library.espeak_SetVoiceByName(f"{voice.accent}+{voice.speaker}".encode()) != 0:
            raise InputError(f"The speech library has no voice {voice.accent}+{voice.speaker}.")
        for parameter, value in ((_SPEED, voice.speed), (_PITCH, voice.pitch)):
            library.espeak_SetParameter(parameter, value, 0)
        self._samples = []
        text = word.encode()
        library.espeak_Synth(
            text, ctypes.c_size_t(len(text) + 1), 0, _CHARACTER_POSITION, 0, _UTF8, None, None
        )
        library.espeak_Synchronize()
        return np.concatenate(self._samples) if self._samples else np.zeros(0, dtype=np.int16)

    def second(self, word: str, voice: Voice, *, begin: float) -> Wave:
        """One second at RATE: the word between silences; `begin` from 0 (at once) to 1 (late)."""
        loud = self.say(word, voice).astype(np.float64)
        heard = np.flatnonzero(np.abs(loud) > 0.02 * np.abs(loud).max(initial=1))
        spoken = loud[heard[0] : heard[-1] + 1][: self._rate] if heard.size else loud[:0]
        whole = np.zeros(self._rate)
        first = int(begin * (self._rate - len(spoken)))
        whole[first : first + len(spoken)] = spoken
        return _resampled(whole)


@cache
def synthesiser() -> Synthesiser:
    """The one synthesiser of this process."""
    return Synthesiser()


def _resampled(second: NDArray[np.float64]) -> Wave:
    """A second of sound at RATE: without frequencies above half of it, as 16-bit integers."""
    spectrum = np.fft.rfft(second)[: RATE // 2 + 1]
    wave = np.fft.irfft(spectrum, RATE) * (RATE / len(second))
    return np.clip(np.rint(wave), -(2**15), 2**15 - 1).astype(np.int32)
