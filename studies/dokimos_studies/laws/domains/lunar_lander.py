"""LunarLander: does a policy land the lander on its legs?

A record is a state of the game (see `lander_game`); the model is a policy, which sees eight observations
and decides for one of four engines. States are those that fuzzing finds, see `dokimos law fuzz`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws import real
from dokimos_studies.laws import lander_study
from dokimos_studies.laws.lander_game import CORNERS, GROUND, PAD, Game, drawn, ground_below

FEATURES = [
    real("x", 2, 18, words="of place"),
    real("y", 3, 16, words="of height"),
    real("speed_x", -4, 4, words="of speed to the right"),
    real("speed_y", -5, 2, words="of speed upwards"),
    real("angle", -0.8, 0.8, words="of angle"),
    real("spin", -1.5, 1.5, words="of spin"),
    real("pad", words="of height of the pad"),
    *(
        real(f"ground_{corner}", words=f"of height of the ground at corner {corner}")
        for corner in range(CORNERS)
    ),
]
DECISION = "game"

#: How much lower or higher the ground is in a relaxed or unrelaxed state; games start at 10 above the pad.
_STEP = 1.0
#: From the middle of the lander to the end of its legs.
_LEGS = 1.0

STUDY = lander_study.LanderStudy()


@cache
def _game() -> Game:
    return Game()


def inputs() -> Any:
    """States that fuzzing finds with the policy of the study, computed if they are not cached yet."""
    return STUDY.pool(start, walk, FEATURES)


def model() -> Any:
    """The policy of the study, trained if it is not cached yet."""
    return STUDY.model()


MODELS = {"network": model}


def play(state: NDArray[Any], seed: int, predict: Any) -> int:
    """1 if the policy wins the game that begins in a state, 0 if it loses.

    The seed decides the engines' random dispersion in each step, whatever the policy does.
    """
    return int(_game().play(state, seed, predict))


def lower_batch(states: NDArray[Any], height: NDArray[Any]) -> NDArray[Any]:
    """The states with the ground (the pad is part of it) lower by a height, everywhere."""
    states[:, PAD] -= height
    states[:, GROUND] -= np.asarray(height)[:, None]
    return states


def relax_batch(states: NDArray[Any]) -> NDArray[Any]:
    """The states with the ground lower everywhere: there is more time to land."""
    return lower_batch(states, np.full(len(states), _STEP))


def unrelax_batch(states: NDArray[Any]) -> NDArray[Any]:
    """The states with the ground higher everywhere: there is less time to land."""
    return lower_batch(states, np.full(len(states), -_STEP))


def clearance_batch(states: NDArray[Any]) -> NDArray[Any]:
    """How far the legs are above the highest ground under the lander."""
    return np.asarray(states[:, 1] - _LEGS - ground_below(states))


def start(rng: np.random.Generator) -> NDArray[Any]:
    """An initial state as the game draws it."""
    return _game().start(int(rng.integers(2**31)))


def walk(state: NDArray[Any], rng: np.random.Generator, predict: Any) -> list[NDArray[Any]]:
    """States in flight on the way from a state: the policy steers, with short bursts of random actions."""
    game = _game()
    observation = game.place(state, int(rng.integers(2**31)))
    found, whim = [], 0
    for step in range(int(rng.integers(20, 200))):
        if not game.is_flying:
            break
        if whim == 0 and rng.random() < 0.1:
            whim, engine = int(rng.integers(1, 20)), int(rng.integers(4))
        if whim:
            whim -= 1
        else:
            engine = int(predict(observation[None])[0])
        observation = game.step(engine)
        if step % 10 == 9 and game.is_flying:
            reached = np.concatenate([game.lander(), state[PAD:]])
            if clearance_batch(reached[None])[0] > 0:
                found.append(reached)
    return found


def picture(record: NDArray[Any]) -> NDArray[np.uint8]:
    """A picture of the ground and the lander."""
    return drawn(record)
