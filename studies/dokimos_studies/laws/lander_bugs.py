"""States in which a policy for LunarLander violates a law: where they come from, how one is tested."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.domain.features import Layout
from dokimos.laws.engine.pools import fuzz, pool_file
from dokimos.laws.examples.training import kept_file, key_of
from dokimos_studies.laws.domains import lunar_lander
from dokimos_studies.laws.extras import needed
from dokimos_studies.laws.lander_game import Game, State
from dokimos_studies.laws.lander_training import Layers

#: How many states there are to draw tests from.
_SEARCHED_STATES = 500


@dataclass(frozen=True)
class StatePools:
    """States to draw tests from, and held-out states that are used only for counting."""

    searched: NDArray[np.float64]
    held_out: NDArray[np.float64]


def fuzzed_states(count: int) -> StatePools:
    """States that fuzzing finds with gymnasium's own landing heuristic; cached once found.

    `count` states are held out.
    """
    searched = _fuzzed(max(_SEARCHED_STATES, count), seed=0)
    return StatePools(searched, _fuzzed(count, seed=1))


def _fuzzed(size: int, *, seed: int) -> NDArray[np.float64]:
    features = lunar_lander.FEATURES
    key = key_of(repr((size, seed, features)).encode())

    def play() -> bytes:
        layout = Layout(features)
        walked = fuzz(lunar_lander.start, lunar_lander.walk, _rule_of_thumb, layout, size=size, seed=seed)
        return pool_file(walked, ".npy")

    found: NDArray[np.float64] = np.load(
        kept_file(f"pools/lunar_lander-guided-{key}.npy", play), allow_pickle=False
    )
    return found


def _rule_of_thumb(observations: NDArray[Any]) -> NDArray[np.int64]:
    module = needed("gymnasium.envs.box2d.lunar_lander", "lander")
    env = _Discrete()
    return np.array([module.heuristic(env, each) for each in observations], dtype=np.int64)


class _Discrete:
    """All that the heuristic needs from an environment: that its actions are discrete."""

    continuous = False

    @property
    def unwrapped(self) -> _Discrete:
        return self


def policy_of(layers: Layers) -> Callable[[NDArray[Any]], NDArray[np.int64]]:
    """The likeliest action for each of a batch of observations."""
    *hidden, last = [(weight.T.astype(np.float32), bias.astype(np.float32)) for weight, bias in layers]

    def predict(observations: NDArray[Any]) -> NDArray[np.int64]:
        values = observations
        for weight, bias in hidden:
            values = np.maximum(values @ weight + bias, 0)
        return np.asarray((values @ last[0] + last[1]).argmax(axis=1))

    return predict


def violates(game: Game, state: State, seeds: Sequence[int], predict: Any) -> tuple[int, bool]:
    """How many games a policy wins in a state, and whether it wins fewer with the ground lower everywhere.

    The law is `lunar_lander/relax`; games that cannot change the answer are not played.
    """
    won = sum(game.play(state, seed, predict) for seed in seeds)
    lowered = lunar_lander.relax_batch(state[None].copy())[0]
    won_lower = 0
    for played, seed in enumerate(seeds):
        if won_lower >= won or won_lower + len(seeds) - played < won:
            break
        won_lower += game.play(lowered, seed, predict)
    return won, won_lower < won
