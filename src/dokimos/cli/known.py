"""What the suites of a judged campaign know of their instances."""

from __future__ import annotations

from dokimos.difficulty.explain.facts import Facts, read_facts
from dokimos.judging.judged_campaign import JudgedCampaign


def known_instances(judged: JudgedCampaign) -> dict[tuple[str, str], Facts]:
    """The facts about every instance of the campaign, by suite and instance."""
    instances = judged.campaign.manifest.instances
    return {
        (suite, name): facts
        for suite, folder in judged.folders.items()
        for name, facts in read_facts(folder, [i for i in instances if i.suite == suite]).items()
    }
