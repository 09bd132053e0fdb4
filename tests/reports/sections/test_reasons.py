from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from dokimos.difficulty.explain.explanation import explain, explain_campaigns
from dokimos.difficulty.explain.rows import Explanation
from dokimos.difficulty.explain.strata import Resampling
from dokimos.judging.judged_campaign import judge_campaigns
from dokimos.reports.sections.reasons import CURVES_PRINTED, explanation_lines
from dokimos.suites.instance import Answer
from tests.difficulty.explain.sample import Made, record, write_campaign, write_suite

QUICK = Resampling(resamples=200)


def shown(explanation: Explanation) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        for part in explanation_lines(explanation):
            console.print(part)
    return capture.get()


def explained(tmp_path: Path, made: list[Made], solves: dict[str, int]) -> str:
    """Each verifier solves so many of the instances; the rest time out."""
    suite = write_suite(tmp_path / "suite", made)
    records = [
        record(
            one.name,
            Answer.UNSAT if k < count else Answer.TIMEOUT,
            verifier=verifier,
            family=one.family,
        )
        for verifier, count in solves.items()
        for k, one in enumerate(made)
    ]
    write_campaign(tmp_path / "run", suite, records, verifiers=list(solves))
    return shown(explain_campaigns(judge_campaigns([tmp_path / "run"]), resampling=QUICK))


MADE = [
    Made(f"i{k:02}", knobs={"pairs": k}, components={"unstable": k / 20, "margin": (k * 7) % 20})
    for k in range(20)
]


IN_FAMILIES = [replace(made, name=f"{made.name}{k}", family=f"pairs{k}") for made in MADE for k in range(3)]


def test_everything_asked_for_is_there(tmp_path: Path) -> None:
    text = explained(tmp_path, IN_FAMILIES, {"marabou": 24, "neuralsat": 42, "reference": 15})
    assert "At a glance" in text
    assert "Within families, U (share of unstable units) separates its timeouts best" in text
    assert "every timeout has a higher value than everything solved in its family" in text
    assert "AUC of U in each family: pairs0 1.00 (12 timed out, 8 solved), pairs1 1.00" in text
    assert "nothing is claimed for other families" in " ".join(text.split())
    assert text.count("not applicable to any instance") == 6 * 4, "three verifiers and a style"
    assert "It is the only one to solve 18 instances: 6 of pairs0, 6 of pairs1, 6 of pairs2." in text
    assert "120 results of 2 verifiers: 66 solved, 54 timed out." in text
    assert "One verifier: see reference above." in text
    assert "8: timeout" in text


def test_one_family_is_described_and_nothing_is_claimed(tmp_path: Path) -> None:
    text = explained(tmp_path, MADE, {"marabou": 8})
    assert "What separates its timeouts from what it solves: not enough data: 1 family has both" in text
    assert "separates its timeouts best" not in text


def test_one_verifier_that_solves_nothing_is_fine(tmp_path: Path) -> None:
    text = explained(tmp_path, MADE, {"marabou": 0})
    assert "20 instances: 20 timed out." in text
    assert "from 0 to 19: timeout" in text
    assert "20 timed out and 0 solved, at least 5 of each are needed" in text
    assert "At a glance" not in text


def test_missing_profiles_come_first_with_their_command(tmp_path: Path) -> None:
    text = explained(tmp_path, [Made("a"), Made("b")], {"marabou": 1})
    assert " ".join(text.split()).startswith(
        "suite: both of its instances are left out of the comparison of components, because there is no "
        "profile; run `dokimos profile"
    )


def test_of_many_sweeps_those_that_break_are_shown(tmp_path: Path) -> None:
    made = [
        Made(f"{family:02}-{k}", family=f"family{family:02}", knobs={"pairs": k})
        for k in range(2)
        for family in range(CURVES_PRINTED + 3)
    ]
    text = explained(tmp_path, made, {"marabou": CURVES_PRINTED + 3 + 3})
    assert f"({CURVES_PRINTED} of {CURVES_PRINTED + 3} sweeps; --json has all)" in text
    assert "family00 │ pairs │     never" not in text
    assert "family14 │ pairs │         1" in text


def test_nothing_at_all_is_nothing() -> None:
    assert shown(explain([], {})) == ""
