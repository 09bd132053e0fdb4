"""A training checkpoint as one file: the learner, its games, its random state and its pool."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import UnreadableFile
from dokimos.core.files import read_whole
from dokimos_studies.laws.lander_game import State
from dokimos_studies.laws.lander_starts import BuggyStates, GameSoFar, GameStart

_WIDTH = 18


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a training needs to continue as if it had not been interrupted.

    `learner` is what stable-baselines3 saves; opening it runs code, as with a pickle, so open only your
    own.
    """

    phase: int
    cpu_seconds: float
    learner: bytes
    torch_numbers: NDArray[np.uint8]
    numpy_numbers: Any
    games: tuple[GameSoFar, ...]
    pool: BuggyStates


def write_checkpoint(kept: Checkpoint) -> bytes:
    """The content of the file: arrays of numpy only."""
    name, keys, position, has_gauss, gauss = kept.numpy_numbers
    assert name == "MT19937"  # numpy's global generator is of no other kind
    states = [game.start.state for game in kept.games]
    arrays: dict[str, NDArray[Any]] = {
        "phase": np.array(kept.phase),
        "cpu_seconds": np.array(kept.cpu_seconds),
        "learner": np.frombuffer(kept.learner, dtype=np.uint8),
        "torch_numbers": kept.torch_numbers,
        "numpy_keys": keys,
        "numpy_rest": np.array([position, has_gauss, gauss]),
        "game_numbers": np.array([game.number for game in kept.games]),
        "game_seeds": np.array([game.start.seed for game in kept.games]),
        "game_is_placed": np.array([state is not None for state in states]),
        "game_states": _rows([np.zeros(_WIDTH) if state is None else state for state in states]),
        "newest": _rows(kept.pool.newest),
        "older": _rows(kept.pool.older),
    }
    for place, game in enumerate(kept.games):
        arrays[f"actions_{place}"] = np.array(game.actions, dtype=np.int8)
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    return content.getvalue()


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint that `write_checkpoint` wrote. Raises UnreadableFile."""
    try:
        with np.load(io.BytesIO(read_whole(path)), allow_pickle=False) as arrays:
            return _read(dict(arrays))
    except (ValueError, KeyError, OSError, EOFError, IndexError) as problem:
        raise UnreadableFile(
            path, f"is not a training checkpoint ({problem}); remove it to start that training over."
        ) from None


def _read(arrays: dict[str, NDArray[Any]]) -> Checkpoint:
    position, has_gauss, gauss = arrays["numpy_rest"].tolist()
    games = [
        GameSoFar(
            int(number),
            GameStart(
                int(arrays["game_seeds"][place]), arrays["game_states"][place] if is_placed else None
            ),
            tuple(arrays[f"actions_{place}"].tolist()),
        )
        for place, (number, is_placed) in enumerate(
            zip(arrays["game_numbers"], arrays["game_is_placed"], strict=True)
        )
    ]
    return Checkpoint(
        phase=int(arrays["phase"]),
        cpu_seconds=float(arrays["cpu_seconds"]),
        learner=arrays["learner"].tobytes(),
        torch_numbers=arrays["torch_numbers"],
        numpy_numbers=("MT19937", arrays["numpy_keys"], int(position), int(has_gauss), gauss),
        games=tuple(games),
        pool=BuggyStates(tuple(arrays["newest"]), tuple(arrays["older"])),
    )


def _rows(states: Sequence[State]) -> NDArray[np.float64]:
    return np.array(states, dtype=np.float64).reshape(-1, _WIDTH)
