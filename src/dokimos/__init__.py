"""Dokimos puts neural-network verifiers and ML models to the test with answers that are proven.

The public names are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dokimos.campaigns.campaign import read_campaign, run_campaign
    from dokimos.checker import check
    from dokimos.constructions import CONSTRUCTIONS
    from dokimos.constructions.generation import generate_suite
    from dokimos.judging.judge import judge_all
    from dokimos.networks.reading.onnx_file import read_onnx, read_onnx_file
    from dokimos.networks.semantics.exact import evaluate
    from dokimos.properties.reading import read_vnnlib, read_vnnlib_file
    from dokimos.reports.page import write_report
    from dokimos.suites.folder import read_suite

__version__ = "0.1.0"

__all__ = [
    "CONSTRUCTIONS",
    "__version__",
    "check",
    "evaluate",
    "generate_suite",
    "judge_all",
    "read_campaign",
    "read_onnx",
    "read_onnx_file",
    "read_suite",
    "read_vnnlib",
    "read_vnnlib_file",
    "run_campaign",
    "write_report",
]

_HOMES = {
    "CONSTRUCTIONS": "dokimos.constructions",
    "check": "dokimos.checker",
    "evaluate": "dokimos.networks.semantics.exact",
    "generate_suite": "dokimos.constructions.generation",
    "judge_all": "dokimos.judging.judge",
    "read_campaign": "dokimos.campaigns.campaign",
    "read_onnx": "dokimos.networks.reading.onnx_file",
    "read_onnx_file": "dokimos.networks.reading.onnx_file",
    "read_suite": "dokimos.suites.folder",
    "read_vnnlib": "dokimos.properties.reading",
    "read_vnnlib_file": "dokimos.properties.reading",
    "run_campaign": "dokimos.campaigns.campaign",
    "write_report": "dokimos.reports.page",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dokimos' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
