"""LunarLander: states, the ground, games, and laws on them; where gymnasium and Box2D are installed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import load_domain, shipped_laws
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.engine.results import LawSettings
from dokimos.laws.language.parser import read_law
from dokimos_studies.laws.domains import lunar_lander as lander
from dokimos_studies.laws.lander_game import GROUND, PAD, Game, drawn, ground_below
from dokimos_studies.laws.lander_training import rewards, train_policy


def state(*, x: float = 10, y: float = 12, ground: float = 3.3) -> Any:
    """A lander at rest above flat ground."""
    made = np.full(18, ground)
    made[:6] = x, y, 0, 0, 0, 0
    made[PAD] = ground + 1 / 30
    return made


def test_the_ground_is_lowered_and_raised_everywhere_and_nothing_else_changes() -> None:
    states = np.stack([state(), state(x=3, ground=1)])
    for change, by in ((lander.relax_batch, -1.0), (lander.unrelax_batch, 1.0)):
        made = change(states.copy())
        assert np.allclose(made[:, PAD:], states[:, PAD:] + by) and (made[:, :PAD] == states[:, :PAD]).all()
    assert np.allclose(
        lander.lower_batch(states.copy(), np.array([0.5, 2.0]))[:, GROUND], states[:, GROUND] - [[0.5], [2]]
    )


def test_clearance_is_measured_from_the_highest_ground_below() -> None:
    hill = state()
    hill[GROUND][5] = 6  # the corner at x = 10, right below
    assert ground_below(hill[None])[0] == 6
    aside = hill.copy()
    aside[0] = 14
    assert ground_below(aside[None])[0] == pytest.approx(3.3)
    assert lander.clearance_batch(np.stack([hill, aside])).tolist() == pytest.approx([5, 7.7])
    between = hill.copy()
    between[0] = 12
    assert ground_below(between[None])[0] == pytest.approx(3.3 + 2.7 / 2)
    assert ground_below(state(x=0)[None])[0] == pytest.approx(3.3)


def test_a_state_is_a_picture() -> None:
    picture = drawn(state())
    assert picture.dtype == np.uint8 and set(np.unique(picture)) == {0, 128, 255}
    assert (picture[-1] == 255).all() and (picture[0] == 0).all()
    assert (lander.picture(state(ground=5)) == 255).sum() > (picture == 255).sum()


@pytest.mark.parametrize(
    ("module", "others"), [("gymnasium", ()), ("Box2D", ("gymnasium",)), ("pygame", ("gymnasium", "Box2D"))]
)
def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, module: str, others: tuple[str, ...]
) -> None:
    for other in others:
        pytest.importorskip(other)
    monkeypatch.setitem(sys.modules, module, None)
    for needs in (Game, train_policy, lambda: rewards(None)):
        with pytest.raises(InputError, match=rf"needs {module}; .* pip install box2d==.* gymnasium=="):
            needs()  # type: ignore[operator]


@pytest.fixture
def game() -> Game:
    pytest.importorskip("gymnasium")
    pytest.importorskip("Box2D")
    return Game()


def steady(observations: Any) -> Any:
    """A policy that lands: gymnasium's own rule of thumb."""
    from types import SimpleNamespace

    from gymnasium.envs.box2d.lunar_lander import heuristic

    env = SimpleNamespace(unwrapped=SimpleNamespace(continuous=False))
    return np.array([heuristic(env, each) for each in observations])


def idle(observations: Any) -> Any:
    return np.zeros(len(observations), dtype=np.int64)


def test_first_states_are_those_of_gymnasium(game: Game) -> None:
    import gymnasium

    env = gymnasium.make("LunarLander-v3").unwrapped
    env.reset(seed=5)
    first = game.start(5)
    position, speed = env.lander.position, env.lander.linearVelocity
    assert first[:4].tolist() == [position.x, position.y, speed.x, speed.y]
    heights = [points[0][1] for points in env.sky_polys] + [env.sky_polys[-1][1][1]]
    assert np.allclose(first[GROUND], heights) and first[PAD] == env.helipad_y


def test_a_placed_state_is_where_it_was_put(game: Game) -> None:
    wanted = state(x=8, y=9)
    wanted[2:6] = 1, -2, 0.3, 0.4
    seen = game.place(wanted, 1)
    after = wanted[:2] + wanted[2:4] / 50
    assert np.allclose(game.lander()[:2], after, atol=0.02) and game.lander()[4] == pytest.approx(
        0.308, abs=0.01
    )
    assert seen[1] == pytest.approx((game.lander()[1] - wanted[PAD] - 18 / 30) / (400 / 30 / 2), abs=1e-5)
    lower = lander.relax_batch(wanted[None].copy())[0]
    assert game.place(lower, 1)[1] == pytest.approx(seen[1] + 1 / (400 / 30 / 2), abs=1e-5)


def test_the_same_game_twice_and_another_with_another_seed(game: Game) -> None:
    def path(seed: int, begin: Any) -> Any:
        game.place(begin, seed)
        return np.array([(game.step(2), game.lander())[1] for _ in range(40)])

    begin = state()
    assert (path(1, begin) == path(1, begin)).all() and (path(1, begin) != path(2, begin)).any()
    # The ground has no part in the flight: lowered, the same engines take the lander along the same way.
    assert (path(1, begin) == path(1, lander.relax_batch(begin[None].copy())[0])).all()


def test_games_are_won_and_lost(game: Game) -> None:
    assert [game.play(state(), seed, steady) for seed in range(3)] == [True] * 3
    assert not game.play(state(), 0, idle)  # falls and crashes
    assert lander.play(state(), 0, steady) == 1 and lander.play(state(), 0, idle) == 0
    assert game.play(state(y=3.9), 0, idle)  # put down on the ground it just stays there
    hover = lambda seen: np.where(seen[:, 3] < 0, 2, 0)  # noqa: E731  # never comes down
    assert not game.play(state(), 0, hover)


def test_the_ground_is_where_the_state_says(game: Game) -> None:
    def steps_to_the_ground(begin: Any) -> int:
        game.place(begin, 0)
        count = 0
        while game.is_flying:
            game.step(0)
            count += 1
        return count

    flat = state()
    times = [
        steps_to_the_ground(lander.lower_batch(flat[None].copy(), np.array([by]))[0]) for by in (-3, 0, 3)
    ]
    assert times[0] < times[1] < times[2]


def test_walks_pass_states_in_flight(game: Game) -> None:
    rng = np.random.default_rng(0)
    begin = lander.start(rng)
    passed = [record for _ in range(5) for record in lander.walk(begin, rng, steady)]
    assert passed and all((record[PAD:] == begin[PAD:]).all() for record in passed)
    assert (lander.clearance_batch(np.stack(passed)) > 0).all()


@pytest.mark.no_cover
def test_laws_play_twenty_games_a_test(game: Game, tmp_path: Path) -> None:
    games: list[tuple[float, int]] = []

    def policy(observations: Any) -> Any:
        games.append((float(observations[0][1]), len(observations)))
        return idle(observations)

    policy.batched = True  # type: ignore[attr-defined]
    pool = tmp_path / "pool.npy"
    np.save(pool, np.stack([state(y=6), state(y=7)]))
    domain = load_domain("lunar_lander")
    settings = LawSettings(budget=2, source=f"pool:{pool}")
    for path in shipped_laws("lunar_lander"):
        result = run_law(read_law(path), model=policy, domain=domain, settings=settings)
        assert result.tested == 2 and not result.failed and not result.is_violated
    assert games and all(count == 1 for _, count in games)

    class Contrary:
        """Lands only where it begins low."""

        batched = True

        def __init__(self) -> None:
            self.lands = False

        def __call__(self, observations: Any) -> Any:
            height, falling = observations[0][1], observations[0][3]
            if abs(falling) < 0.03 and height > 0.4:  # the game has just begun
                self.lands = height < 0.9
            return steady(observations) if self.lands else idle(observations)

    np.save(pool, state(y=9.5)[None])
    (relax,) = (path for path in shipped_laws("lunar_lander") if path.stem == "relax")
    result = run_law(
        read_law(relax),
        model=Contrary(),
        domain=domain,
        settings=LawSettings(budget=1, source=f"pool:{pool}"),
    )
    assert result.is_violated and result.violations[0].case.values["o1"] == 10
    assert result.violations[0].case.values["o2"] == 0


def test_training_is_seeded(game: Game) -> None:
    pytest.importorskip("stable_baselines3")
    few = [train_policy(seed, updates=1, games=2, steps=64) for seed in (3, 3, 4)]
    assert [weight.shape for weight, _ in few[0]] == [(64, 8), (64, 64), (4, 64)]
    assert all((a[0] == b[0]).all() for a, b in zip(few[0], few[1], strict=True))
    assert (few[0][0][0] != few[2][0][0]).any()


def test_a_policy_of_stable_baselines_decides_without_drawing(game: Game) -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    from dokimos.laws.models.lookup import as_model

    learner = sb3.PPO("MlpPolicy", "LunarLander-v3", seed=0, device="cpu")
    model = as_model(learner, load_domain("lunar_lander"), name="policy")
    seen = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    assert (model.predict(seen) == model.predict(seen)).all()
    assert lander.play(state(y=4.4), 0, model.predict) in (0, 1)


@pytest.mark.slow
def test_the_study(game: Game) -> None:
    pytest.importorskip("stable_baselines3")
    content = lander.STUDY.train()
    assert float(lander.STUDY.quality(content).split()[2]) > 200
