"""The 26 settings of SoundnessBench, with the counts of hidden counterexamples that were published."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dokimos.hiding.settings import HideSettings

_SMALL, _COLOUR, _FLAT = (1, 5, 5), (3, 5, 5), (10,)
#: Counts for (epsilon, shape) in this order.
_IMAGES = ((0.2, _SMALL), (0.2, _COLOUR), (0.5, _SMALL), (0.5, _COLOUR))
_PUBLISHED = {
    "cnn1": (_IMAGES, (9, 9, 10, 8)),
    "cnn2": (_IMAGES, (7, 7, 10, 10)),
    "cnn3": (_IMAGES, (10, 7, 9, 10)),
    "avgpool": (_IMAGES, (0, 1, 9, 10)),
    "tanh": (_IMAGES[:2], (8, 10)),
    "sigmoid": (_IMAGES[:2], (1, 10)),
    "mlp4": (((0.2, _FLAT), (0.5, _FLAT)), (9, 9)),
    "mlp5": (((0.2, _FLAT), (0.5, _FLAT)), (4, 9)),
    "vit": (_IMAGES[:2], (10, 10)),
}


@dataclass(frozen=True)
class SoundnessSetting:
    """One setting: its name, the settings for `hide`, and how many of 10 were published as hidden."""

    name: str
    settings: HideSettings
    published: int


def soundness_settings(options: HideSettings) -> Iterator[SoundnessSetting]:
    """All 26, with their other settings taken from `options`."""
    for architecture, (variants, counts) in _PUBLISHED.items():
        for (epsilon, shape), published in zip(variants, counts, strict=True):
            name = f"{architecture}-{'x'.join(map(str, shape))}-{epsilon:g}"
            chosen = replace(
                options, tier="trained", architecture=architecture, input_shape=shape, epsilon=epsilon
            )
            yield SoundnessSetting(name, chosen, published)
