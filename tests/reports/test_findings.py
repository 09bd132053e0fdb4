from __future__ import annotations

import random

from dokimos.reports.findings import Findings
from dokimos.reports.sections.base import filled_sections
from dokimos.reports.sections.families import CactusRows, FamilyRows
from dokimos.reports.sections.instances import CampaignRows
from tests.reports.sample import sample_judgements


def test_the_order_of_judgements_makes_no_difference() -> None:
    shuffled = sample_judgements()
    random.Random(1).shuffle(shuffled)
    assert Findings(shuffled) == Findings(sample_judgements())
    assert dict(filled_sections(Findings(shuffled))) == dict(filled_sections(Findings(sample_judgements())))


def test_nothing_gives_an_empty_report() -> None:
    rows = {section.name: found for section, found in filled_sections(Findings([]))}
    assert rows == {
        "wrong_answers": (),
        "families": FamilyRows("There are no runs to judge.", (), (), ()),
        "cactus": CactusRows((), None),
        "instances": CampaignRows((), ()),
    }
