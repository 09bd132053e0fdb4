"""The public functions, one for each command; import them from `dokimos`.

They take paths, or the names of suites, verifiers and data that ship with the package, and return typed,
frozen results. They print nothing and never end the process: progress goes to the `progress` callback,
remarks go to the logger `dokimos`, and every error is a `DokimosError` with a one-sentence message. Each
function is loaded when first used.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dokimos.api.attacking import attack
    from dokimos.api.audits import audit
    from dokimos.api.campaigns import read_campaign, run, watch
    from dokimos.api.configuration import init_config, read_config
    from dokimos.api.data import get_data, list_data
    from dokimos.api.designing import design
    from dokimos.api.difficulty import profile
    from dokimos.api.gating import gate
    from dokimos.api.hiding import ablate_hiding, assess_hiding, hide, hide_soundness
    from dokimos.api.labelling import label
    from dokimos.api.labels import check
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
    from dokimos.api.properties import make_properties
    from dokimos.api.releasing import release
    from dokimos.api.replaying import replay
    from dokimos.api.showing import show
    from dokimos.api.suite_lookup import read_suite
    from dokimos.api.suites import find_family, generate, list_families, list_suites
    from dokimos.api.training import train_model
    from dokimos.api.verdicts import explain, judge, report
    from dokimos.api.verifiers import diagnose_verifier, install_verifier, list_verifiers

# Callers who want to see the remarks add a handler.
logging.getLogger("dokimos").addHandler(logging.NullHandler())

__all__ = [
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
    "hiding": ("ablate_hiding", "assess_hiding", "hide", "hide_soundness"),
    "attacking": ("attack",),
    "audits": ("audit",),
    "campaigns": ("read_campaign", "run", "watch"),
    "configuration": ("init_config", "read_config"),
    "data": ("get_data", "list_data"),
    "gating": ("gate",),
    "labelling": ("label",),
    "labels": ("check",),
    "law_export": ("export_law",),
    "law_guiding": ("guide_training",),
    "law_models": ("convert_model", "fuzz_domain"),
    "law_repair": ("repair_law",),
    "law_asking": ("ask_law",),
    "law_proofs": ("verify_law",),
    "law_rechecks": ("recheck_law",),
    "law_rows": ("verify_law_rows",),
    "law_starts": ("init_laws",),
    "law_studies": ("compare_studies", "train_study"),
    "laws": ("check_law", "format_law", "new_law", "replay_law", "test_law"),
    "networks": ("evaluate", "read_network", "read_property"),
    "designing": ("design",),
    "difficulty": ("profile",),
    "releasing": ("release",),
    "properties": ("make_properties",),
    "replaying": ("replay",),
    "showing": ("show",),
    "suite_lookup": ("read_suite",),
    "suites": ("find_family", "generate", "list_families", "list_suites"),
    "training": ("train_model",),
    "verdicts": ("explain", "judge", "report"),
    "verifiers": ("diagnose_verifier", "install_verifier", "list_verifiers"),
}
_MODULES = {name: f"dokimos.api.{module}" for module, names in _NAMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker knows only the names above

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'dokimos.api' has no attribute {name!r}")
        return getattr(import_module(_MODULES[name]), name)
