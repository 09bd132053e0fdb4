from __future__ import annotations

from rich.console import Console

from dokimos.campaigns.state import Glance, State
from dokimos.judging.bulk import WatchedCampaign
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.reports.live_view import WRONG_SHOWN, watch_rows, watch_view, wrong_line
from dokimos.suites.instance import Answer, Label
from tests.difficulty.explain.sample import record

RECORDS = tuple(record(f"i{k}", Answer.SAT, seconds=k + 1) for k in range(8))
WRONG = [
    Judgement(one, Label.UNSAT, "stub", Verdict.WRONG_SAT if k else Verdict.CORRECT, "", None, "")
    for k, one in enumerate(RECORDS)
]
RUNNING = Glance(State.RUNNING, {"marabou": 10, "reference": 10}, RECORDS, 1, 130.0)


def view(glance: Glance, judgements: list[Judgement], remarks: tuple[str, ...] = ()) -> str:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(watch_view("run", WatchedCampaign(glance, tuple(judgements), remarks)))
    return capture.get()


def test_rows_count_what_is_done_and_what_is_to_come() -> None:
    marabou, reference = watch_rows(WatchedCampaign(RUNNING, tuple(WRONG), ()))
    assert (marabou.verifier, marabou.done, marabou.to_go) == ("marabou", 8, 2)
    assert marabou.wall_seconds_mean == 4.5
    assert (reference.done, reference.to_go, reference.wall_seconds_mean) == (0, 10, 0.0)
    assert wrong_line([marabou, reference]) == "wrong so far: marabou 7"
    assert wrong_line([reference]) == "no wrong answers so far"


def test_the_view_names_the_latest_wrong_answers() -> None:
    text = view(RUNNING, WRONG, ("a remark",))
    assert text.count("wrong-sat: marabou says sat on") == WRONG_SHOWN
    assert "and 2 before" in text
    assert "latest: marabou on i7: sat in 8.00 s" in text
    assert text.rstrip().endswith("a remark")
    assert "no wrong answers so far" in view(Glance(State.RUNNING, {"m": 1}, (), 0, None), [])
