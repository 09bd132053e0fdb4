"""Table 2 and Figure 5 of guided training, from records made up for it; nothing is trained."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from dokimos.core.errors import InputError, UnreadableFile
from dokimos_studies.laws.guide import _rounds
from dokimos_studies.laws.guided_page import figure, markdown
from dokimos_studies.laws.guided_records import Arm, GuidedRecords, PhaseRecord
from dokimos_studies.laws.guided_table import chosen, curve, differences, paired_runs
from dokimos_studies.laws.student import mean_interval


def record(
    phase: int, held_out: int, reward: float, *, arm: Arm = Arm.NORMAL, seed: int = 0
) -> PhaseRecord:
    return PhaseRecord(
        seed, arm, phase, phase * 10_240, held_out, held_out, 0.5, reward, 0.5, 3, 0.1, 60.0 * phase
    )


def kept(path: Path, *records: PhaseRecord) -> GuidedRecords:
    made = GuidedRecords(path, "recipe")
    for each in records:
        made.add(each)
    return made


def test_policies_are_chosen_as_in_the_paper_but_none_that_always_crashes() -> None:
    run = [record(1, 0, -150.0), record(2, 7, 20.0), record(3, 4, 90.0), record(4, 4, 110.0)]
    found = chosen([*run, record(5, 9, 200.0), record(6, 8, 200.0)])
    assert found.fewest_bugs == run[3]  # of two with as few bugs, the one that earns more
    assert found.most_reward == record(6, 8, 200.0)  # of two that earn as much, the one with fewer bugs
    assert chosen(run[:1]).fewest_bugs is None is chosen([]).most_reward


def test_pairs_are_cut_to_what_both_have(tmp_path: Path) -> None:
    guided = [record(phase, phase, 1.0, arm=Arm.GUIDED) for phase in (1, 2)]
    gap = record(5, 1, 1.0)  # comes after a phase that is missing: no part of the run yet
    records = kept(tmp_path / "x.json", *(record(phase, 1, 1.0) for phase in (1, 2, 3)), gap, *guided)
    records.add(record(1, 1, 1.0, seed=1))
    [pair] = paired_runs(records)
    assert (pair.seed, pair.steps, len(pair.normal), pair.guided) == (0, 20_480, 2, tuple(guided))
    assert len(records.run(0, Arm.NORMAL)) == 3 and records.seeds == (0, 1)
    assert paired_runs(records, phases=3) == [] and len(paired_runs(records, phases=1)) == 1
    assert paired_runs(GuidedRecords(tmp_path / "x.json", "recipe")) == [pair]  # as it was written


def three_pairs(path: Path) -> GuidedRecords:
    """Guided training has 2, 4 and 6 fewer bugs, and earns as much."""
    records = []
    for seed in range(3):
        for phase in (1, 2):
            records.append(record(phase, 10 + phase, 50.0 * phase, seed=seed))
            fewer = 10 + phase - 2 * (seed + 1)
            records.append(record(phase, fewer, 50.0 * phase, seed=seed, arm=Arm.GUIDED))
    return kept(path, *records)


def test_differences_are_paired_and_have_an_interval(tmp_path: Path) -> None:
    found = {each.column: each for each in differences(paired_runs(three_pairs(tmp_path / "x.json")))}
    bugs = found["bugs of the policy with the fewest bugs"]
    assert (bugs.pairs, bugs.mean) == (3, -4.0) and bugs.interval is not None
    half = 2.920 * 2 / 3**0.5  # the standard deviation is 2, Student's quantile for two degrees 2.920
    assert (bugs.interval.low, bugs.interval.high) == pytest.approx((-4 - half, -4 + half))
    assert found["reward of the policy with the most reward"].mean == 0 and len(found) == 4
    assert differences([]) == []


def test_curves_have_means_and_intervals(tmp_path: Path) -> None:
    pairs = paired_runs(three_pairs(tmp_path / "x.json"))
    normal, guided = (curve(pairs, arm, "held_out") for arm in Arm)
    assert [(point.steps, point.mean) for point in normal] == [(10_240, 11), (20_480, 12)]
    assert [point.mean for point in guided] == [7, 8]
    assert guided[0].interval is not None and guided[0].interval.high == pytest.approx(7 + 3.372, abs=0.01)
    assert curve(pairs[:1], Arm.GUIDED, "reward")[0].interval is None and curve([], Arm.NORMAL, "x") == []


def test_the_interval_of_a_mean() -> None:
    assert mean_interval([1.0], level=0.95) is None
    two = mean_interval([1.0, 3.0], level=0.95)
    assert two is not None and (two.mean, two.high) == pytest.approx((2, 2 + 12.706))
    many = mean_interval([1.0, 3.0] * 50, level=0.9)
    assert many is not None and many.low < 2 < many.high < 2.3


def test_the_page_has_eight_columns_and_says_what_is_unfinished(tmp_path: Path) -> None:
    records = three_pairs(tmp_path / "x.json")
    pairs = paired_runs(records)
    page = markdown(records, pairs, figure="x.svg", seeds=4, steps=30_720, phases=3)
    [row] = [line for line in page.splitlines() if line.startswith("| 1 | ")]
    assert row == "| 1 | 20,480 | 11 | 50.0 | 7 | 50.0 | 12 | 100.0 | 8 | 100.0 |"
    assert "Finished: 0 of 8 runs, in 12 CPU-minutes so far." in page and "seed 2 guided (2 of 3" in page
    assert "| bugs of the policy with the fewest bugs | 3 | -4.0 | -7.4 to -0.6 |" in page
    assert "90 % intervals" in page and "](x.svg)" in page and "Every interval holds 0" not in page
    empty = markdown(GuidedRecords(tmp_path / "n", ""), [], figure="", seeds=1, steps=1, phases=1)
    assert "No seed has results for both arms yet." in empty
    crashing = paired_runs(kept(tmp_path / "y.json", *(record(1, 0, -9.0, arm=arm) for arm in Arm)))
    page = markdown(records, crashing, figure="", seeds=1, steps=1, phases=1)
    assert "| 0 | 10,240 | – | – | – |" in page
    assert "There is no pair in which both runs have a policy" in page
    assert "one seed only" in page


def test_a_finished_page_says_when_nothing_is_shown(tmp_path: Path) -> None:
    bugs = {Arm.NORMAL: (3, 6, 4), Arm.GUIDED: (4, 5, 4)}
    records = kept(
        tmp_path / "x.json",
        *(record(1, bugs[arm][seed], 10.0 * seed, seed=seed, arm=arm) for arm in Arm for seed in range(3)),
    )
    page = markdown(records, paired_runs(records), figure="", seeds=3, steps=10_240, phases=1)
    assert "Finished: 6 of 6 runs, in 6 CPU-minutes.\n" in page
    assert "Every interval holds 0: these seeds do not show that guidance helps or harms." in page


def test_no_axis_goes_below_no_bugs_or_is_taken_up_by_crashes(tmp_path: Path) -> None:
    runs = [(seed, arm) for seed in range(3) for arm in Arm]
    crashes = [record(1, 9 * (seed == 0), -2000.0, seed=seed, arm=arm) for seed, arm in runs]
    landings = [record(2, 3, 100.0, seed=seed, arm=arm) for seed, arm in runs]
    drawn = figure(paired_runs(kept(tmp_path / "x.json", *crashes, *landings)))
    labels = [each.text or "" for each in ElementTree.fromstring(drawn).iter() if "text" in each.tag]
    assert {label for label in labels if label.startswith("-")} == {"-400", "-300", "-200", "-100"}


def test_the_figure_has_two_lines_and_their_bands_in_each_part(tmp_path: Path) -> None:
    drawn = figure(paired_runs(three_pairs(tmp_path / "x.json")))
    paths = [each.get("class", "") for each in ElementTree.fromstring(drawn).iter() if "path" in each.tag]
    assert sum("band" in each for each in paths) == 4
    assert sum(each.startswith("line s") for each in paths) == 4 + 2  # with the keys
    assert "bugs on 50 held-out states" in drawn


def test_both_runs_of_a_seed_are_trained_in_turn() -> None:
    found = [(seed, arm.value, goal) for turns in _rounds(2, 12, at_once=1) for seed, arm, goal in turns]
    first = [(0, arm, goal) for goal in (5, 10, 12) for arm in ("normal", "guided")]
    assert found == [*first, *((1, arm, goal) for _, arm, goal in first)]
    assert [goal for turns in _rounds(1, 5, at_once=1) for *_, goal in turns] == [5, 5]


def test_both_runs_of_several_seeds_are_trained_at_once() -> None:
    first, second = _rounds(3, 4, at_once=2)
    assert [(seed, arm.value) for seed, arm, _ in first] == [
        (seed, arm) for seed in (0, 1) for arm in ("normal", "guided")
    ]
    assert {seed for seed, *_ in second} == {2}


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    kept(tmp_path / "x.json", record(1, 0, 0.0))
    with pytest.raises(InputError, match=r"with other settings \(recipe\); choose another --out"):
        GuidedRecords(tmp_path / "x.json", "another")
    (tmp_path / "y.json").write_text('{"format": "something"}')
    with pytest.raises(UnreadableFile, match="is not a file that `dokimos-studies law-guide` wrote"):
        GuidedRecords(tmp_path / "y.json", "recipe")
