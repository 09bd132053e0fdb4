"""Packages that count as installed: a module and its metadata in a folder on the path."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path


def install(
    folder: Path,
    package: str,
    version: str,
    points: Mapping[str, Mapping[str, str]],
    *,
    source: str = "",
) -> None:
    """Put `package` into `folder`: one module of that name, and entry points by group."""
    module = package.replace("-", "_")
    sys.modules.pop(module, None)
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    metadata = folder / f"{module}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    lines = []
    for group, named in points.items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in named.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
