"""From the folders of campaigns to their explanation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dokimos.analysis.explaining import explain
from dokimos.analysis.facts import missing_profiles, read_facts
from dokimos.analysis.model import Explanation, Missing
from dokimos.analysis.observing import JudgedRun
from dokimos.analysis.resampling import Resampling
from dokimos.cli.judging import JudgedCampaign, judge_folder
from dokimos.reports.naming import Naming


def explain_folders(
    folders: Sequence[Path], *, suites: Sequence[Path] = (), resampling: Resampling | None = None
) -> Explanation:
    """Judge the campaigns in `folders` and explain them together."""
    return explain_judged(
        [judge_folder(folder, suites=suites) for folder in dict.fromkeys(folders)], resampling=resampling
    )


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
