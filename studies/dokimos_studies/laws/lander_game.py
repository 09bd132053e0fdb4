"""LunarLander from a given state on a given terrain: gymnasium's game, with the same physics.

A state is a record: the lander's position, velocity, angle and spin in the units of the game's world, the
height of the pad that observations are measured from, and the heights of the eleven corners of the ground.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos_studies.laws.extras import landing_games, needed

State = NDArray[np.float64]

#: The width of the world, the number of corners of the ground, and the distance between two corners.
WIDTH, CORNERS = 20.0, 11
CHUNK = WIDTH / (CORNERS - 1)
#: Columns of a record.
LANDER, PAD, GROUND = slice(0, 6), 6, slice(7, 7 + CORNERS)
#: A game that has not ended after this many steps is lost.
_STEPS = 1000


class Game:
    """One game at a time. The same state, seed and actions give the same game."""

    def __init__(self) -> None:
        """Raises InputError if gymnasium, or what it needs, is not installed."""
        landing_games()
        self._env = needed("gymnasium.envs.box2d.lunar_lander", "lander").LunarLander()
        self._seeding = needed("gymnasium.utils.seeding", "lander")
        self.is_over, self.reward = False, 0.0

    @property
    def spaces(self) -> tuple[Any, Any]:
        """Those of observations and of actions."""
        return self._env.observation_space, self._env.action_space

    def begin(self, seed: int) -> NDArray[np.float32]:
        """Begin a game as gymnasium draws it; returns the first observation."""
        observation, _ = self._env.reset(seed=seed)
        self.is_over = False
        return np.asarray(observation, dtype=np.float32)

    def start(self, seed: int) -> State:
        """An initial state as gymnasium draws it."""
        self._env.reset(seed=seed)
        corners = [fixture.shape.vertices for fixture in self._env.moon.fixtures[1:]]
        heights = dict(corner for edge in corners for corner in edge)
        ground = [heights[x] for x in sorted(heights)]
        return np.array([*self.lander(), self._env.helipad_y, *ground])

    def place(self, state: State, seed: int) -> NDArray[np.float32]:
        """Begin a game in a state and return the first observation; `seed` decides how engines scatter."""
        env = self._env
        env.reset(seed=0)  # always the same: the bodies, and how the legs hang, owe nothing to the seed
        env.np_random, _ = self._seeding.np_random(seed)
        env.helipad_y = float(state[PAD])
        self._lay_ground(state[GROUND])
        self._move_lander(state[LANDER])
        env.game_over, env.prev_shaping = False, None
        return self.step(0)

    def _lay_ground(self, heights: State) -> None:
        env = self._env
        env.world.DestroyBody(env.moon)
        env.moon = env.world.CreateStaticBody()
        corners = [(CHUNK * index, float(height)) for index, height in enumerate(heights)]
        for left, right in pairwise(corners):
            env.moon.CreateEdgeFixture(vertices=[left, right], density=0, friction=0.1)

    def _move_lander(self, lander: State) -> None:
        """Move the lander to where the state says, with its legs."""
        x, y, speed_x, speed_y, angle, spin = (float(value) for value in lander)
        body = self._env.lander
        old_x, old_y, old_angle = body.position.x, body.position.y, body.angle
        turn = angle - old_angle
        for part in (body, *self._env.legs):
            dx, dy = part.position.x - old_x, part.position.y - old_y
            dx, dy = (
                dx * math.cos(turn) - dy * math.sin(turn),
                dx * math.sin(turn) + dy * math.cos(turn),
            )
            part.transform = (x + dx, y + dy), part.angle + turn
            part.linearVelocity = (speed_x - spin * dy, speed_y + spin * dx)
            part.angularVelocity = spin

    def step(self, action: int) -> NDArray[np.float32]:
        """Do one step and return the observation; `reward` is what it earned, `is_over` whether over."""
        observation, reward, self.is_over, _, _ = self._env.step(action)
        self.reward = float(reward)
        return np.asarray(observation, dtype=np.float32)

    @property
    def is_won(self) -> bool:
        """Whether the lander rests on its legs, and its body never touched the ground."""
        return not self._env.lander.awake and not self._env.game_over

    @property
    def is_flying(self) -> bool:
        """Whether the game is not over and no leg touches the ground."""
        return not self.is_over and not any(leg.ground_contact for leg in self._env.legs)

    def lander(self) -> State:
        """Where the lander is, and how it moves."""
        body = self._env.lander
        place, speed = body.position, body.linearVelocity
        return np.array([place.x, place.y, speed.x, speed.y, body.angle, body.angularVelocity])

    def play(self, state: State, seed: int, predict: Any) -> bool:
        """Whether a policy wins the game: lands within the time limit."""
        observation = self.place(state, seed)
        for _ in range(_STEPS):
            if self.is_over:
                return self.is_won
            observation = self.step(int(predict(observation[None])[0]))
        return False


def ground_below(states: NDArray[Any]) -> State:
    """The highest ground under each lander, from one unit to its left to one unit to its right."""
    reach = np.linspace(-1, 1, 9)
    places = np.clip(states[:, :1] + reach, 0, WIDTH) / CHUNK
    left = np.minimum(places.astype(np.int64), CORNERS - 2)
    ground = states[:, GROUND]
    rows = np.arange(len(states))[:, None]
    heights = ground[rows, left] + (places - left) * (ground[rows, left + 1] - ground[rows, left])
    return np.asarray(heights.max(axis=1))


def drawn(state: State, *, scale: int = 15) -> NDArray[np.uint8]:
    """The state as a picture: the sky black, the ground white, the lander grey."""
    top = max(14.0, float(state[1]) + 1)
    bottom = min(0.0, float(state[GROUND].min()))
    across = (np.arange(int(WIDTH * scale)) + 0.5) / scale
    up = top - (np.arange(int((top - bottom) * scale)) + 0.5) / scale
    surface = np.interp(across, CHUNK * np.arange(CORNERS), state[GROUND])
    picture = np.where(up[:, None] < surface, 255, 0).astype(np.uint8)
    dx, dy = across - state[0], up[:, None] - state[1]
    turn = float(state[4])
    along = dx * math.cos(turn) + dy * math.sin(turn)
    above = dy * math.cos(turn) - dx * math.sin(turn)
    body = (np.abs(along) < 0.55) & (above > -0.35) & (above < 0.55)
    legs = (np.abs(np.abs(along) - 0.7) < 0.1) & (above > -0.9) & (above < -0.2)
    picture[body | legs] = 128
    return picture
