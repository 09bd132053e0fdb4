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
    from dokimos.api.campaigns import (
        diagnose_verifier,
        init_config,
        install_verifier,
        list_verifiers,
        read_campaign,
        read_config,
        run,
        watch,
    )
    from dokimos.api.checking import check, read_suite
    from dokimos.api.data import get_data, list_data, make_properties, train_model
    from dokimos.api.difficulty import profile
    from dokimos.api.gating import gate
    from dokimos.api.hiding import assess_hiding, attack, hide, hide_soundness
    from dokimos.api.law_checks import check_proofs
    from dokimos.api.law_export import ask_law, export_law
    from dokimos.api.law_models import convert_model, fuzz_domain, init_laws, repair_law
    from dokimos.api.law_proofs import verify_law
    from dokimos.api.law_rows import verify_law_rows
    from dokimos.api.laws import format_law, lint_law, new_law, replay_law, test_law
    from dokimos.api.networks import evaluate, read_network, read_property, replay, show
    from dokimos.api.publishing import label, release
    from dokimos.api.results import audit, explain, judge, report
    from dokimos.api.suites import find_family, generate, list_families, list_suites
    from dokimos.constructions.hiding.plants import HideSettings
    from dokimos.core.errors import DokimosError
    from dokimos.core.progress import ProgressUpdate
    from dokimos.laws.engine.results import LawSettings
    from dokimos.laws.proving.results import VerifySettings
    from dokimos.laws.repair.repairing import RepairSettings
    from dokimos.suites.facts import ProfileSettings

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
    "ask_law",
    "assess_hiding",
    "attack",
    "audit",
    "check",
    "check_proofs",
    "convert_model",
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
    "hide",
    "hide_soundness",
    "init_config",
    "init_laws",
    "install_verifier",
    "judge",
    "label",
    "lint_law",
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
    "release",
    "repair_law",
    "replay",
    "replay_law",
    "report",
    "run",
    "show",
    "test_law",
    "train_model",
    "verify_law",
    "verify_law_rows",
    "watch",
]

_NAMES = {
    "api.campaigns": (
        "diagnose_verifier",
        "init_config",
        "install_verifier",
        "list_verifiers",
        "read_campaign",
        "read_config",
        "run",
        "watch",
    ),
    "api.checking": (
        "check",
        "read_suite",
    ),
    "api.data": (
        "get_data",
        "list_data",
        "make_properties",
        "train_model",
    ),
    "api.difficulty": ("profile",),
    "api.gating": ("gate",),
    "api.hiding": (
        "assess_hiding",
        "attack",
        "hide",
        "hide_soundness",
    ),
    "api.law_export": (
        "ask_law",
        "export_law",
    ),
    "api.law_models": (
        "convert_model",
        "fuzz_domain",
        "init_laws",
        "repair_law",
    ),
    "api.law_checks": ("check_proofs",),
    "api.law_proofs": ("verify_law",),
    "api.law_rows": ("verify_law_rows",),
    "api.laws": (
        "lint_law",
        "format_law",
        "new_law",
        "replay_law",
        "test_law",
    ),
    "api.networks": (
        "evaluate",
        "read_network",
        "read_property",
        "replay",
        "show",
    ),
    "api.publishing": (
        "label",
        "release",
    ),
    "api.results": (
        "audit",
        "explain",
        "judge",
        "report",
    ),
    "api.suites": (
        "find_family",
        "generate",
        "list_families",
        "list_suites",
    ),
    "constructions.hiding.plants": ("HideSettings",),
    "core.errors": ("DokimosError",),
    "core.progress": ("ProgressUpdate",),
    "laws.engine.results": ("LawSettings",),
    "laws.proving.results": ("VerifySettings",),
    "laws.repair.repairing": ("RepairSettings",),
    "suites.facts": ("ProfileSettings",),
}
_MODULES = {name: f"dokimos.{module}" for module, names in _NAMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker knows only the names above

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'dokimos.api' has no attribute {name!r}")
        found = getattr(import_module(_MODULES[name]), name)
        return checked(found) if isinstance(found, FunctionType) else found
