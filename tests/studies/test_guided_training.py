"""Guided training with tiny budgets: where games begin, what is counted, and that it goes on exactly."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import InputError, UnreadableFile
from dokimos_studies.laws.domains import lunar_lander as lander
from dokimos_studies.laws.guide import guide_training
from dokimos_studies.laws.guided_records import Arm, GuidedRecords, PhaseRecord
from dokimos_studies.laws.lander_bugs import StatePools, policy_of, violates
from dokimos_studies.laws.lander_checkpoints import read_checkpoint
from dokimos_studies.laws.lander_guided import GuidedRun, GuidedSettings, probability_after
from dokimos_studies.laws.lander_starts import BuggyStates, GameStart, training_game
from tests.studies.test_lander import state

for package in ("gymnasium", "Box2D", "stable_baselines3"):
    pytest.importorskip(package)

TINY = GuidedSettings(games=2, steps=64, rollouts=2, states=2, plays=2, judged=1)


def states() -> StatePools:
    made = [state(x=x, y=y, ground=2.0) for x in (8, 10) for y in (4, 6)]
    return StatePools(np.stack(made), np.stack(made[:2]))


class Stopped(Exception):
    """Where a training is interrupted."""


def trained(folder: Path, arm: Arm, phases: int, *, stop_after: int = 99) -> list[PhaseRecord]:
    """The records of a training, which ends before the checkpoint of a phase is written."""
    kept: list[PhaseRecord] = []

    def keep(record: PhaseRecord) -> None:
        kept.append(record)
        if record.phase > stop_after:
            raise Stopped

    GuidedRun(arm, 3, folder=folder, settings=TINY, states=states()).train(phases, keep)
    return kept


def alike(record: PhaseRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__ if name != "cpu_seconds"}


@pytest.fixture
def violating(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test finds that states violate the law, so that the pool fills at once."""
    module = "dokimos_studies.laws.lander_guided"
    monkeypatch.setattr(f"{module}.violates", lambda game, given, seeds, predict: (1, bool(given[0] < 9)))
    monkeypatch.setattr(f"{module}._RISE_STEPS", 64)


@pytest.mark.no_cover
def test_interrupted_training_ends_as_if_it_had_not_been(tmp_path: Path, violating: None) -> None:
    whole = trained(tmp_path / "whole", Arm.GUIDED, 3)
    with pytest.raises(Stopped):
        trained(tmp_path / "parts", Arm.GUIDED, 3, stop_after=1)
    later = trained(tmp_path / "parts", Arm.GUIDED, 3)
    assert [record.phase for record in later] == [2, 3]
    assert list(map(alike, later)) == list(map(alike, whole[1:]))
    for phase in range(1, 4):
        name = f"phase-{phase:03}.onnx"
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
    assert [record.steps for record in whole] == [256, 512, 768]
    assert [record.probability for record in whole] == pytest.approx([0.6] * 3)
    assert whole[-1].pool == sum(record.bugs for record in whole) > 0
    assert trained(tmp_path / "whole", Arm.GUIDED, 3) == []
    states_low = lander.relax_batch(states().searched.copy())  # where the policy loses goes to the pool
    pool = read_checkpoint(tmp_path / "whole" / "checkpoint.npz").pool
    assert len(pool) == whole[-1].pool
    assert all(any(np.array_equal(each, row) for row in states_low) for each in pool.newest + pool.older)


@pytest.mark.no_cover
def test_normal_training_learns_nothing_of_its_tests(tmp_path: Path, violating: None) -> None:
    normal = trained(tmp_path / "normal", Arm.NORMAL, 2)
    guided = trained(tmp_path / "guided", Arm.GUIDED, 2)
    assert all(record.probability == 0 and record.pool > 0 for record in normal)
    policies = [
        [(tmp_path / arm / f"phase-{phase:03}.onnx").read_bytes() for phase in (1, 2)]
        for arm in ("normal", "guided")
    ]
    assert policies[0][0] == policies[1][0]  # the pool is empty in the first phase: both are the same
    assert policies[0][1] != policies[1][1]
    assert normal[0].bugs == guided[0].bugs  # the same states and games


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.npz").write_bytes(b"PK no archive")
    with pytest.raises(UnreadableFile, match=r"remove it to start that training over"):
        trained(tmp_path, Arm.NORMAL, 1)


def test_a_state_violates_where_fewer_games_are_won_on_lower_ground() -> None:
    class Games:
        """Wins as often as it is told, above high and above low ground."""

        def __init__(self, high: list[int], low: list[int]) -> None:
            self.outcomes, self.played = {2.0: list(high), 1.0: list(low)}, 0

        def play(self, given: Any, seed: int, predict: Any) -> bool:
            self.played += 1
            return bool(self.outcomes[float(given[-1])].pop(0))

    rng = np.random.default_rng(0)
    for _ in range(200):
        high, low = rng.integers(0, 2, (2, 5)).tolist()
        games: Any = Games(high, low)
        assert violates(games, state(ground=2.0), range(5), None) == (sum(high), sum(low) < sum(high))
        assert games.played <= 10
    none: Any = Games([0] * 5, [])
    assert violates(none, state(ground=2.0), range(5), None) == (0, False) and none.played == 5


def test_games_begin_in_the_newest_and_in_older_states_with_a_probability() -> None:
    first, second = state(x=5), state(x=6)
    pool = BuggyStates().with_found([first]).with_found([]).with_found([second])
    assert len(pool) == 2 and len(BuggyStates()) == 0
    rng = np.random.default_rng(0)
    starts = [pool.draw(0.4, rng).state for _ in range(2000)]
    counts = [sum(given is wanted for given in starts) / 2000 for wanted in (first, second)]
    assert counts == pytest.approx([0.2, 0.2], abs=0.03)
    assert all(BuggyStates().draw(1.0, rng).state is None for _ in range(20))
    assert [probability_after(steps) for steps in (0, 102_400, 307_200, 10**6)] == pytest.approx(
        [0, 0.15, 0.45, 0.6]
    )


def test_a_game_that_is_played_again_is_the_same() -> None:
    starts = [GameStart(5), GameStart(6, state(x=8, y=6))]
    for start in starts:
        one, other = (training_game(lambda number, given=start: given) for _ in range(2))
        one.reset()
        seen = [one.step(action % 4) for action in range(25)][-1]
        other.go_on(one.so_far())
        assert other.so_far() == one.so_far()
        again, further = other.step(2), one.step(2)
        assert (again[0] == further[0]).all() and again[1:4] == further[1:4] and seen[2] is False


def test_a_policy_as_numbers_decides_as_its_network(tmp_path: Path) -> None:
    from dokimos.laws.examples.training import relu_network
    from dokimos.laws.models.files import onnx_model

    rng = np.random.default_rng(2)
    layers = [(rng.normal(size=(a, b)), rng.normal(size=a)) for b, a in ((8, 16), (16, 4))]
    rows = rng.normal(size=(50, 8)).astype(np.float32)
    network = onnx_model(relu_network(layers), None, name="policy")
    assert policy_of(layers)(rows).tolist() == network.predict(rows).tolist()


def test_the_command_writes_its_files_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dokimos_studies.laws.lander_bugs.fuzzed_states", lambda count: states())
    notes: list[str] = []
    out = tmp_path / "guide"
    for steps in (1, 300):
        found = guide_training(
            out=out, seeds=1, steps=steps, settings=TINY, progress=lambda update: notes.append(update.note)
        )
        assert (found.tests, found.asked, found.is_interrupted) == (
            (2, 2, False) if steps == 1 else (4, 4, False)
        )
    assert [note.split(":")[0] for note in notes] == [
        f"seed 0 {arm}, {steps} steps" for steps in (256, 512) for arm in ("normal", "guided")
    ]
    assert "Finished: 2 of 2 runs" in found.page.read_text() and found.figure.read_text().startswith("<svg")
    assert (tmp_path / "guide-runs" / "seed-0-guided" / "phase-002.onnx").is_file()

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dokimos_studies.laws.lander_guided.violates", stopped)
    again = guide_training(out=out, seeds=2, steps=300, settings=TINY)
    assert (again.tests, again.asked, again.is_interrupted) == (4, 8, True)
    assert "Finished: 2 of 4 runs" in again.page.read_text()
    found.data.unlink()
    with pytest.raises(
        InputError, match=r"its checkpoint is from phase 2, but .* does not have all its tests"
    ):
        guide_training(out=out, seeds=1, steps=300, settings=TINY)


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_runs_side_by_side_end_as_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    """The same policies and records, byte for byte; what a run leaves outlives the file of all."""
    if processes == 1:
        alone = "dokimos_studies.laws.guided_turns.each"
        monkeypatch.setattr(alone, lambda function, items, jobs: enumerate(map(function, items)))
    monkeypatch.setattr("dokimos_studies.laws.lander_bugs.fuzzed_states", lambda count: states())
    found = [
        guide_training(out=tmp_path / f"by-{jobs}", seeds=1, steps=300, jobs=jobs, settings=TINY)
        for jobs in (1, 2)
    ]
    assert [each.tests for each in found] == [4, 4]
    records = [
        {record.key: alike(record) for record in GuidedRecords(each.data, TINY.recipe).run(0, arm)}
        for each in found
        for arm in Arm
    ]
    assert records[:2] == records[2:] and all(map(len, records))
    for arm in Arm:
        for phase in (1, 2):
            one, other = (
                tmp_path / f"by-{jobs}-runs" / f"seed-0-{arm.value}" / f"phase-{phase:03}.onnx"
                for jobs in (1, 2)
            )
            assert one.read_bytes() == other.read_bytes()
    found[1].data.unlink()
    again = guide_training(out=tmp_path / "by-2", seeds=1, steps=300, jobs=2, settings=TINY)
    assert again.tests == 4


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3.common.vec_env", None)
    monkeypatch.setattr("dokimos_studies.laws.lander_bugs.fuzzed_states", lambda count: states())
    with pytest.raises(InputError, match=r"stable_baselines3.*: pip install .*stable-baselines3==\d"):
        guide_training(out=tmp_path / "x", steps=1, seeds=1)
    assert [path.name for path in tmp_path.iterdir()] == []
