"""The games that a policy is trained on: they begin as gymnasium draws them, or in states of a pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from dokimos_studies.laws.extras import landing_games
from dokimos_studies.laws.lander_game import Game, State

#: A game is ended after this many steps, as in gymnasium.
_STEPS = 1000
#: Of the games that begin in a buggy state, the share that begins in one of the latest test.
_NEWEST = 0.5


@dataclass(frozen=True)
class GameStart:
    """How a game begins: in a state or, if there is none, as gymnasium draws it with the seed."""

    seed: int
    state: State | None = None


@dataclass(frozen=True)
class BuggyStates:
    """States in which a policy violated a law: those of the latest test that found any, and older ones."""

    newest: tuple[State, ...] = ()
    older: tuple[State, ...] = ()

    def with_found(self, found: Sequence[State]) -> BuggyStates:
        """The pool after a test: the newest states become older ones."""
        return replace(self, newest=tuple(found), older=self.older + self.newest) if found else self

    def __len__(self) -> int:
        return len(self.newest) + len(self.older)

    def draw(self, probability: float, rng: np.random.Generator) -> GameStart:
        """How the next game begins: with some probability in a state of the pool, if it has any."""
        seed = int(rng.integers(2**31))
        if not len(self) or rng.random() >= probability:
            return GameStart(seed)
        is_new = not self.older or rng.random() < _NEWEST
        states = self.newest if is_new else self.older
        return GameStart(seed, states[int(rng.integers(len(states)))])


@dataclass(frozen=True)
class GameSoFar:
    """A game in progress: its number, its start and its actions, which reproduce it exactly."""

    number: int
    start: GameStart
    actions: tuple[int, ...]


def training_game(draw: Callable[[int], GameStart]) -> Any:
    """A gymnasium environment whose games begin as `draw` says for the number of each.

    `so_far()` is the game in progress, and `go_on(game)` replays it up to that point: together they let an
    interrupted training continue as if it had not been interrupted. Raises InputError if a package is
    missing.
    """
    return _game_class()(draw)


@cache
def _game_class() -> Any:
    gymnasium = landing_games()

    class TrainingGame(gymnasium.Env):  # type: ignore[misc, name-defined]
        def __init__(self, draw: Callable[[int], GameStart]) -> None:
            self._draw, self._game = draw, Game()
            self.observation_space, self.action_space = self._game.spaces
            self._number, self._actions = 0, list[int]()
            self._start = GameStart(0)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            self._number += 1
            return self._begin(self._draw(self._number)), {}

        def _begin(self, start: GameStart) -> Any:
            self._start, self._actions = start, []
            if start.state is None:
                return self._game.begin(start.seed)
            return self._game.place(start.state, start.seed)

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            self._actions.append(int(action))
            observation = self._game.step(int(action))
            ended = bool(self._game.is_over)
            late = not ended and len(self._actions) >= _STEPS
            return observation, self._game.reward, ended, late, {}

        def so_far(self) -> GameSoFar:
            return GameSoFar(self._number, self._start, tuple(self._actions))

        def go_on(self, game: GameSoFar) -> None:
            self._number = game.number
            self._begin(game.start)
            for action in game.actions:
                self.step(action)

    return TrainingGame
