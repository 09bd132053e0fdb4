"""Trains a policy for LunarLander in phases, with a law test after each: guided by the test, or not.

As in the paper: PPO of stable-baselines3; a test every five rollouts; states in which the policy violates
the law are kept, and in guided training a growing share of the games begins in one of them.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dokimos.core.files import write_whole
from dokimos.laws.examples.training import relu_network
from dokimos_studies.laws.domains import lunar_lander
from dokimos_studies.laws.extras import needed
from dokimos_studies.laws.guided_records import Arm, PhaseRecord
from dokimos_studies.laws.lander_bugs import StatePools, policy_of, violates
from dokimos_studies.laws.lander_checkpoints import Checkpoint, read_checkpoint, write_checkpoint
from dokimos_studies.laws.lander_game import Game, State
from dokimos_studies.laws.lander_starts import BuggyStates, GameStart, training_game
from dokimos_studies.laws.lander_training import layers_of, new_learner, rewards

#: The probability of beginning in a buggy state rises by this much every so many steps, up to a limit.
_RISE, _RISE_STEPS, _MOST = 0.15, 102_400, 0.6


@dataclass(frozen=True)
class GuidedSettings:
    """How much to train and test.

    A rollout is `steps` of `games` side by side, a phase `rollouts` of them. Each test is on `states`
    states with `plays` games on either side of the law; the reward is the mean over `judged` games.
    """

    games: int = 16
    steps: int = 128
    rollouts: int = 5
    states: int = 50
    plays: int = 10
    judged: int = 50

    @property
    def phase_steps(self) -> int:
        """The steps of a phase."""
        return self.games * self.steps * self.rollouts

    @property
    def recipe(self) -> str:
        """A description of the settings; trainings with different ones cannot be compared."""
        rollout = f"PPO, rollouts of {self.games} x {self.steps} steps, a test every {self.rollouts}"
        tested = f"{self.states} states x {self.plays} games, reward of {self.judged} games"
        return f"{rollout}, {tested}"


def probability_after(steps: int) -> float:
    """How often a game of guided training begins in a buggy state after so many steps."""
    return min(_MOST, _RISE * steps / _RISE_STEPS)


class GuidedRun:
    """One training: an arm and a seed. `folder` has its checkpoint and the policy of each phase.

    If interrupted, it continues from its checkpoint, and ends as if it had not been interrupted.
    """

    def __init__(
        self, arm: Arm, seed: int, *, folder: Path, settings: GuidedSettings, states: StatePools
    ) -> None:
        """Read the checkpoint if there is one. Raises InputError, UnreadableFile."""
        self._arm, self._seed, self._settings, self._states = arm, seed, settings, states
        self._folder, self._game = folder, Game()
        self._pool, self.phase = BuggyStates(), 0
        self._probability, self._cpu_seconds = 0.0, 0.0
        vector = needed("stable_baselines3.common.vec_env", "lander")
        self._games = vector.DummyVecEnv(
            [lambda place=place: training_game(self._drawing(place)) for place in range(settings.games)]
        )
        path = self._checkpoint_path
        self._kept = read_checkpoint(path) if path.exists() else None
        if self._kept is not None:
            self._pool, self.phase = self._kept.pool, self._kept.phase
            self._cpu_seconds = self._kept.cpu_seconds
            self._probability = self._next_probability()

    @property
    def _checkpoint_path(self) -> Path:
        return self._folder / "checkpoint.npz"

    def _drawing(self, place: int) -> Callable[[int], GameStart]:
        """How the games of one environment begin, each by its number."""

        def draw(number: int) -> GameStart:
            rng = np.random.default_rng([self._seed, place, number])
            return self._pool.draw(self._probability, rng)

        return draw

    def _next_probability(self) -> float:
        if self._arm is Arm.NORMAL:
            return 0.0
        return probability_after(self.phase * self._settings.phase_steps)

    def train(self, phases: int, keep: Callable[[PhaseRecord], None]) -> None:
        """Train up to that many phases; `keep` gets the record of each before its checkpoint is written."""
        if self.phase >= phases:
            return
        with _one_thread_and_own_numbers() as torch:
            learner = self._learner(torch)
            steps = (phases - self.phase) * self._settings.phase_steps
            learner.learn(steps, callback=self._callback(learner, keep), reset_num_timesteps=False)

    def _learner(self, torch: Any) -> Any:
        kept = self._kept
        if kept is None:
            return new_learner(self._games, seed=self._seed, steps=self._settings.steps)
        ppo = needed("stable_baselines3", "lander").PPO
        learner = ppo.load(io.BytesIO(kept.learner), env=self._games, device="cpu", force_reset=False)
        for place, game in enumerate(kept.games):
            self._games.env_method("go_on", game, indices=place)
        torch.set_rng_state(torch.from_numpy(kept.torch_numbers.copy()))
        np.random.set_state(kept.numpy_numbers)
        return learner

    def _callback(self, learner: Any, keep: Callable[[PhaseRecord], None]) -> Any:
        """The callback for stable-baselines3: a phase ends when the next begins, or with the training."""
        base = needed("stable_baselines3.common.callbacks", "lander").BaseCallback
        run, phase_steps = self, self._settings.phase_steps

        class AfterEachPhase(base):  # type: ignore[misc, valid-type]
            def _on_step(self) -> bool:
                return True

            def _on_rollout_start(self) -> None:
                if learner.num_timesteps == (run.phase + 1) * phase_steps:
                    run._end_phase(learner, keep)

            def _on_training_end(self) -> None:
                self._on_rollout_start()

        run._cpu_mark = time.process_time()
        return AfterEachPhase()

    _cpu_mark = 0.0

    def _end_phase(self, learner: Any, keep: Callable[[PhaseRecord], None]) -> None:
        self.phase += 1
        layers = layers_of(learner)
        found, record = self._tested(policy_of(layers))
        self._pool = self._pool.with_found(found)
        self._probability = self._next_probability()
        self._cpu_seconds += time.process_time() - self._cpu_mark
        self._cpu_mark = time.process_time()
        record = replace(
            record,
            pool=len(self._pool),
            probability=self._probability,
            cpu_seconds=round(self._cpu_seconds, 1),
        )
        write_whole(self._folder / f"phase-{self.phase:03}.onnx", relu_network(layers))
        keep(record)
        content = io.BytesIO()
        learner.save(content)
        torch = needed("torch", "lander")
        kept = Checkpoint(
            phase=self.phase,
            cpu_seconds=self._cpu_seconds,
            learner=content.getvalue(),
            torch_numbers=torch.get_rng_state().numpy(),
            numpy_numbers=np.random.get_state(legacy=True),
            games=tuple(self._games.env_method("so_far")),
            pool=self._pool,
        )
        write_whole(self._checkpoint_path, write_checkpoint(kept))

    def _tested(self, predict: Any) -> tuple[list[State], PhaseRecord]:
        """The violating states, with the ground lower (where the policy loses), and the record."""
        settings, states = self._settings, self._states
        rng = np.random.default_rng([self._seed, self.phase])
        drawn = rng.choice(len(states.searched), size=settings.states, replace=False)
        found = []
        for state in states.searched[drawn]:
            if violates(self._game, state, self._seeds(rng), predict)[1]:
                found.append(lunar_lander.relax_batch(state[None].copy())[0])
        fixed = np.random.default_rng(0)  # the same games on held-out states in every test of every run
        counted = [violates(self._game, state, self._seeds(fixed), predict) for state in states.held_out]
        earned, landed = rewards(predict, settings.judged)
        return found, PhaseRecord(
            seed=self._seed,
            arm=self._arm,
            phase=self.phase,
            steps=self.phase * settings.phase_steps,
            bugs=len(found),
            held_out=sum(is_violated for _, is_violated in counted),
            won=float(np.mean([won for won, _ in counted])) / settings.plays,
            reward=float(np.mean(earned)),
            landed=float(np.mean(landed)),
            pool=0,
            probability=0.0,
            cpu_seconds=0.0,
        )

    def _seeds(self, rng: np.random.Generator) -> list[int]:
        return [int(each) for each in rng.integers(2**31, size=self._settings.plays)]


@contextmanager
def _one_thread_and_own_numbers() -> Iterator[Any]:
    """Run torch on one thread, and restore the global random state, which PPO uses, afterwards."""
    torch = needed("torch", "lander")
    threads, numbers, numpy_numbers = torch.get_num_threads(), torch.get_rng_state(), np.random.get_state()
    torch.set_num_threads(1)
    try:
        yield torch
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(numbers)
        np.random.set_state(numpy_numbers)
