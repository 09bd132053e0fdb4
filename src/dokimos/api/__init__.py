"""The public functions, one for each command, and the settings that they take; import them from `dokimos`.

They take paths, or the names of suites, verifiers and data that ship with the package, and return typed,
frozen results. They print nothing and never end the process: progress goes to the `progress` callback,
remarks go to the logger `dokimos`, and every error is a `DokimosError` with a one-sentence message, also
for an argument of the wrong type. Each function is loaded when first used.
"""

from __future__ import annotations

import logging
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

from dokimos.api.arguments import checked

if TYPE_CHECKING:
    from dokimos.api.attacking import attack
    from dokimos.api.audits import audit
    from dokimos.api.campaigns import read_campaign, run, watch
    from dokimos.api.checking import check
    from dokimos.api.configuration import init_config, read_config
    from dokimos.api.data import get_data, list_data
    from dokimos.api.designing import design
    from dokimos.api.difficulty import profile
    from dokimos.api.gating import gate
    from dokimos.api.hiding import ablate_hiding, assess_hiding, hide, hide_soundness
    from dokimos.api.labelling import label
    from dokimos.api.law_asking import ask_law
    from dokimos.api.law_export import export_law
    from dokimos.api.law_guiding import guide_training
    from dokimos.api.law_models import convert_model, fuzz_domain
    from dokimos.api.law_proofs import verify_law
    from dokimos.api.law_rechecks import recheck_law
    from dokimos.api.law_repair import repair_law
    from dokimos.api.law_rows import verify_law_rows
    from dokimos.api.law_starts import init_laws
    from dokimos.api.law_studies import compare_studies, train_study
    from dokimos.api.laws import check_law, format_law, new_law, replay_law, test_law
    from dokimos.api.networks import evaluate, read_network, read_property
    from dokimos.api.progress import ProgressUpdate
    from dokimos.api.properties import make_properties
    from dokimos.api.releasing import release
    from dokimos.api.replaying import replay
    from dokimos.api.showing import show
    from dokimos.api.suite_lookup import read_suite
    from dokimos.api.suites import find_family, generate, list_families, list_suites
    from dokimos.api.training import train_model
    from dokimos.api.verdicts import explain, judge, report
    from dokimos.api.verifiers import diagnose_verifier, install_verifier, list_verifiers
    from dokimos.core.errors import DokimosError
    from dokimos.hiding.settings import HideSettings
    from dokimos.laws.engine.results import LawSettings
    from dokimos.laws.proving.results import VerifySettings
    from dokimos.laws.repair.repairing import RepairSettings
    from dokimos.suites.profile_file import ProfileSettings

# Callers who want to see the remarks add a handler.
logging.getLogger("dokimos").addHandler(logging.NullHandler())

__all__ = [
    "DokimosError",
    "HideSettings",
    "LawSettings",
    "ProfileSettings",
    "ProgressUpdate",
    "RepairSettings",
    "VerifySettings",
    "ablate_hiding",
    "ask_law",
    "assess_hiding",
    "attack",
    "audit",
    "check",
    "check_law",
    "compare_studies",
    "convert_model",
    "design",
    "diagnose_verifier",
    "evaluate",
    "explain",
    "export_law",
    "find_family",
    "format_law",
    "fuzz_domain",
    "gate",
    "generate",
    "get_data",
    "guide_training",
    "hide",
    "hide_soundness",
    "init_config",
    "init_laws",
    "install_verifier",
    "judge",
    "label",
    "list_data",
    "list_families",
    "list_suites",
    "list_verifiers",
    "make_properties",
    "new_law",
    "profile",
    "read_campaign",
    "read_config",
    "read_network",
    "read_property",
    "read_suite",
    "recheck_law",
    "release",
    "repair_law",
    "replay",
    "replay_law",
    "report",
    "run",
    "show",
    "test_law",
    "train_model",
    "train_study",
    "verify_law",
    "verify_law_rows",
    "watch",
]

_NAMES = {
    "api.hiding": ("ablate_hiding", "assess_hiding", "hide", "hide_soundness"),
    "api.attacking": ("attack",),
    "api.audits": ("audit",),
    "api.campaigns": ("read_campaign", "run", "watch"),
    "api.configuration": ("init_config", "read_config"),
    "api.data": ("get_data", "list_data"),
    "api.gating": ("gate",),
    "api.labelling": ("label",),
    "api.checking": ("check",),
    "api.law_export": ("export_law",),
    "api.law_guiding": ("guide_training",),
    "api.law_models": ("convert_model", "fuzz_domain"),
    "api.law_repair": ("repair_law",),
    "api.law_asking": ("ask_law",),
    "api.law_proofs": ("verify_law",),
    "api.law_rechecks": ("recheck_law",),
    "api.law_rows": ("verify_law_rows",),
    "api.law_starts": ("init_laws",),
    "api.law_studies": ("compare_studies", "train_study"),
    "api.laws": ("check_law", "format_law", "new_law", "replay_law", "test_law"),
    "api.networks": ("evaluate", "read_network", "read_property"),
    "api.designing": ("design",),
    "api.difficulty": ("profile",),
    "api.releasing": ("release",),
    "api.properties": ("make_properties",),
    "api.replaying": ("replay",),
    "api.showing": ("show",),
    "api.suite_lookup": ("read_suite",),
    "api.suites": ("find_family", "generate", "list_families", "list_suites"),
    "api.training": ("train_model",),
    "api.verdicts": ("explain", "judge", "report"),
    "api.verifiers": ("diagnose_verifier", "install_verifier", "list_verifiers"),
    "api.progress": ("ProgressUpdate",),
    "core.errors": ("DokimosError",),
    "hiding.settings": ("HideSettings",),
    "laws.engine.results": ("LawSettings",),
    "laws.proving.results": ("VerifySettings",),
    "laws.repair.repairing": ("RepairSettings",),
    "suites.profile_file": ("ProfileSettings",),
}
_MODULES = {name: f"dokimos.{module}" for module, names in _NAMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker knows only the names above

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'dokimos.api' has no attribute {name!r}")
        found = getattr(import_module(_MODULES[name]), name)
        return checked(found) if isinstance(found, FunctionType) else found
