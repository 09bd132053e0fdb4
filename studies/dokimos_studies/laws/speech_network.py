"""A network that recognises words: the spectrogram of a second of sound, and convolutions over it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.engine.differentiable import Adam
from dokimos.networks.writing.builder import GraphBuilder
from dokimos_studies.laws.extras import needed
from dokimos_studies.laws.speech_synthesis import LENGTH, RATE

#: Samples in a window of the spectrogram, and from one window to the next; the number of bands.
_WINDOW, _HOP, _BANDS = 384, 245, 32
_LOUDEST, _LEAST = 2.0**15, 1e-6
_BATCH = 64
_OPSET = 17

Weights = dict[str, NDArray[np.float32]]


def waves() -> NDArray[np.float32]:
    """Cosines and sines of a windowed Fourier transform: [2·k, 1, window], cosines first."""
    time = np.arange(_WINDOW)
    turns = np.outer(np.arange(_WINDOW // 2 + 1), time) * (2 * np.pi / _WINDOW)
    smooth = np.hanning(_WINDOW)
    both = np.concatenate([np.cos(turns) * smooth, np.sin(turns) * smooth])
    return both[:, None].astype(np.float32)


def bands() -> NDArray[np.float32]:
    """How the squares of those add up to bands on the mel scale of hearing: [bands, 2·k, 1]."""
    frequencies = np.arange(_WINDOW // 2 + 1) * (RATE / _WINDOW)
    heard = 1127 * np.log1p(frequencies / 700)
    edges = np.linspace(0, heard[-1], _BANDS + 2)
    rise = (heard - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - heard) / (edges[2:] - edges[1:-1])[:, None]
    shares = np.clip(np.minimum(rise, fall), 0, None)
    return np.concatenate([shares, shares], axis=1)[:, :, None].astype(np.float32)


def train_listener(
    sounds: NDArray[Any], labels: NDArray[np.int64], *, classes: int, epochs: int, seed: int = 0
) -> bytes:
    """A network from a second of sound (16-bit samples at RATE) to scores, as the content of an ONNX file.

    A spectrogram of 32 windows by 32 bands, two convolutions (32 and 64 filters), each with pooling, a
    layer of 128, and the scores; trained with dropout and Adam. The same arguments give the same network on
    the same machine: it uses one thread, since several would add in varying order. Raises InputError if
    torch is not installed.
    """
    torch = needed("torch", "speech")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _trained(torch, sounds, labels, classes, epochs, seed)
    finally:
        torch.set_num_threads(threads)


def _trained(
    torch: Any, sounds: NDArray[Any], labels: NDArray[np.int64], classes: int, epochs: int, seed: int
) -> bytes:
    nn = torch.nn
    torch.manual_seed(seed)
    layers = nn.Sequential(
        *(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Dropout(0.25), nn.Flatten(), nn.Linear(64 * 36, 128), nn.ReLU()),
        *(nn.Dropout(0.5), nn.Linear(128, classes)),
    )
    with torch.no_grad():
        seen = torch.cat(
            [_spectrogram(torch, part) for part in np.array_split(sounds, 1 + len(sounds) // 256)]
        )
    mean, spread = float(seen.mean()), float(seen.std())
    seen = ((seen - mean) / spread)[:, None]
    answers = torch.from_numpy(labels)
    optimiser = Adam(layers.parameters(), rate=1e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(seen)).split(_BATCH):
            optimiser.zero_grad()
            nn.functional.cross_entropy(layers(seen[rows]), answers[rows]).backward()
            optimiser.step()
    weights = {name: each.detach().numpy() for name, each in layers.state_dict().items()}
    return _as_onnx(weights, mean, spread)


def _spectrogram(torch: Any, sounds: NDArray[Any]) -> Any:
    """The logarithm of the power in each band and window, [n, bands, windows]."""
    convolve = torch.nn.functional.conv1d
    wave = torch.from_numpy(sounds.astype(np.float32) / np.float32(_LOUDEST))[:, None]
    parts = convolve(wave, torch.from_numpy(waves()), stride=_HOP)
    return torch.log(convolve(parts * parts, torch.from_numpy(bands())) + _LEAST)


def _as_onnx(weights: Weights, mean: float, spread: float) -> bytes:
    graph = GraphBuilder(opset=_OPSET)
    wave = graph.node("Unsqueeze", "X", graph.constant([1], np.int64))
    wave = graph.node("Div", wave, graph.constant([_LOUDEST]))
    parts = graph.node("Conv", wave, graph.constant(waves()), strides=[_HOP])
    power = graph.node("Conv", graph.node("Mul", parts, parts), graph.constant(bands()))
    loud = graph.node("Log", graph.node("Add", power, graph.constant([_LEAST])))
    scaled = graph.node("Div", graph.node("Sub", loud, graph.constant([mean])), graph.constant([spread]))
    last = graph.node("Unsqueeze", scaled, graph.constant([1], np.int64))
    for layer in ("0", "3"):
        filters, bias = (graph.constant(weights[f"{layer}.{part}"]) for part in ("weight", "bias"))
        last = graph.node("Relu", graph.node("Conv", last, filters, bias))
        last = graph.node("MaxPool", last, kernel_shape=[2, 2], strides=[2, 2])
    last = graph.node("Flatten", last)
    for layer in ("8", "11"):
        weight, bias = (graph.constant(weights[f"{layer}.{part}"]) for part in ("weight", "bias"))
        last = graph.node("Gemm", last, weight, bias, transB=1)
        last = graph.node("Relu", last) if layer == "8" else last
    return graph.build({"X": ("float", [1, LENGTH])}, last, [1, len(weights["11.bias"])])
