"""The case study of LunarLander: its policy, and the pool of states that its laws are tested on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.domain.features import Feature, Layout
from dokimos.laws.engine.pools import fuzz, pool_file
from dokimos.laws.examples.training import kept_file, kept_model, key_of, relu_network
from dokimos.laws.models.files import onnx_model
from dokimos_studies.laws.lander_training import RECIPE, rewards, train_policy

#: The size of the pool that laws are tested on by default.
_STATES = 1000


@dataclass(frozen=True)
class LanderStudy:
    """A policy trained by PPO; training takes about ten minutes."""

    def train(self, seed: int = 0) -> bytes:
        """The policy as the content of an ONNX file."""
        return relu_network(train_policy(seed))

    def quality(self, content: bytes) -> str:
        """What the policy earns in games of gymnasium."""
        earned, landed = rewards(onnx_model(content, None, name="policy").predict)
        share = f"{100 * np.mean(landed):.0f} % of them landed"
        return f"mean reward {np.mean(earned):.0f} ± {np.std(earned):.0f} in {len(earned)} games, {share}"

    def model(self, seed: int = 0) -> Path:
        """The file of the policy trained with a seed; trained and cached if it is not there yet."""
        return kept_model("lunar_lander", key_of(RECIPE.encode()), self.train, seed)

    def pool(
        self,
        start: Callable[..., NDArray[Any]],
        walk: Callable[..., Sequence[NDArray[Any]]],
        features: Sequence[Feature],
    ) -> NDArray[Any]:
        """The states that fuzzing finds with the study's policy and seed 0, cached once found."""
        content = self.model().read_bytes()
        key = key_of(content + repr((_STATES, features)).encode())

        def play() -> bytes:
            predict = onnx_model(content, None, name="policy").predict
            return pool_file(fuzz(start, walk, predict, Layout(features), size=_STATES, seed=0), ".npy")

        path = kept_file(f"pools/lunar_lander-{key}.npy", play)
        found: NDArray[Any] = np.load(path, allow_pickle=False)
        return found
