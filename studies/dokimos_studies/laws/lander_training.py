"""A policy for LunarLander, trained by proximal policy optimisation (PPO of stable-baselines3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos_studies.laws.extras import landing_games, needed

#: Games played in parallel, steps of each between two updates, and the number of updates.
_GAMES, _STEPS, _UPDATES = 16, 1024, 36
_OPTIONS = {"batch_size": 64, "n_epochs": 4, "gamma": 0.999, "gae_lambda": 0.98, "ent_coef": 0.01}
#: Identifies this way of training.
RECIPE = f"PPO, ReLU, {_GAMES} games, {_STEPS} steps, {_UPDATES} updates"
_JUDGED_GAMES, _FIRST_SEED = 50, 1_000_000

#: The weight and the bias of each layer; ReLU between layers.
Layers = list[tuple[NDArray[np.float64], NDArray[np.float64]]]


def train_policy(
    seed: int = 0, *, updates: int = _UPDATES, games: int = _GAMES, steps: int = _STEPS
) -> Layers:
    """A ReLU network that gives a score to each of the four actions from the eight observations.

    The same arguments give the same policy on the same machine. Raises InputError if a package is
    missing.
    """
    gymnasium = landing_games()
    vector = needed("stable_baselines3.common.vec_env", "lander")
    torch = needed("torch", "lander")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # networks this small gain nothing from a second thread
    try:
        played = vector.DummyVecEnv([lambda: gymnasium.make("LunarLander-v3")] * games)
        learner = new_learner(played, seed=seed, steps=steps, **_OPTIONS)
        learner.learn(updates * games * steps)
    finally:
        torch.set_num_threads(threads)
    return layers_of(learner)


def new_learner(games: Any, *, seed: int, steps: int, **options: Any) -> Any:
    """PPO of stable-baselines3 before its first step, with its default settings except the `options`.

    Each game takes `steps` steps between two updates.
    """
    ppo = needed("stable_baselines3", "lander")
    torch = needed("torch", "lander")
    return ppo.PPO(
        "MlpPolicy",
        games,
        n_steps=steps,
        policy_kwargs={"activation_fn": torch.nn.ReLU},
        seed=seed,
        device="cpu",
        **options,
    )


def layers_of(learner: Any) -> Layers:
    """The layers of a learner's current policy."""
    policy = learner.policy
    layers = [policy.mlp_extractor.policy_net[0], policy.mlp_extractor.policy_net[2], policy.action_net]
    return [(_numbers(layer.weight), _numbers(layer.bias)) for layer in layers]


def rewards(predict: Any, games: int = _JUDGED_GAMES) -> tuple[list[float], list[bool]]:
    """The reward of a policy in games that it was not trained on, and whether it landed in each."""
    gymnasium = landing_games()
    env = gymnasium.make("LunarLander-v3")
    earned, landed = [], []
    for game in range(games):
        observation, _ = env.reset(seed=_FIRST_SEED + game)
        total, over, reward = 0.0, False, 0.0
        while not over:
            observation, reward, ended, late, _ = env.step(int(predict(observation[None])[0]))
            total, over = total + float(reward), ended or late
        earned.append(total)
        landed.append(reward == 100)
    return earned, landed


def _numbers(parameter: Any) -> NDArray[np.float64]:
    return np.asarray(parameter.detach().numpy(), dtype=np.float64)
