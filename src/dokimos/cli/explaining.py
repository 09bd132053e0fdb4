"""From the folders of campaigns to their explanation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dokimos.cli.output import say_missing
from dokimos.difficulty.explain.bootstrap import Resampling
from dokimos.difficulty.explain.explanation import explain
from dokimos.difficulty.explain.facts import missing_profiles, read_facts
from dokimos.difficulty.explain.observations import JudgedRun
from dokimos.difficulty.explain.rows import Explanation, Missing
from dokimos.judging.judged_campaign import JudgedCampaign, judge_folder
from dokimos.judging.naming import Naming


def explain_folders(
    folders: Sequence[Path], *, suites: Sequence[Path] = (), resampling: Resampling | None = None
) -> Explanation:
    """Judge the campaigns in `folders` and explain them together."""
    campaigns = [judge_folder(folder, suites=suites) for folder in dict.fromkeys(folders)]
    say_missing(campaigns)
    return explain_judged(campaigns, resampling=resampling)


def explain_judged(
    campaigns: Sequence[JudgedCampaign], *, resampling: Resampling | None = None
) -> Explanation:
    """Explain campaigns that have been judged, with the knobs and profiles that their suites hold."""
    runs, missing = [], dict[Missing, None]()
    for judged in campaigns:
        instances = judged.campaign.manifest.instances
        facts = {}
        for name, folder in judged.folders.items():
            facts[name] = read_facts(folder, [i for i in instances if i.suite == name])
            missing |= dict.fromkeys(missing_profiles(name, folder, facts[name]))
        runs.append(JudgedRun(judged.judgements, facts))
    naming = Naming.of([j.record for judged in campaigns for j in judged.judgements])
    return explain(runs, naming, missing=tuple(missing), resampling=resampling)
