"""Where the suites of a campaign are now, and whether they are still what was run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dokimos.campaigns.manifest import Manifest
from dokimos.core.errors import InputError


def locate(manifest: Manifest, moved: Sequence[Path]) -> dict[str, Path]:
    """Where each suite of a campaign is now, by name. A suite that has moved is recognised by its name, or
    by being the only one."""
    known = {suite.name: Path(suite.folder) for suite in manifest.suites}
    for place in moved:
        name = place.absolute().name
        if len(known) == len(moved) == 1:
            name = next(iter(known))
        elif name not in known:
            raise InputError(f"{place}: the campaign has no suite {name!r}; it has {', '.join(known)}.")
        known[name] = place
    for place in known.values():
        if not place.exists():
            raise InputError(
                f"{place}: the campaign's suite is no longer there; give its new place with --suite."
            )
    return known


def locate_all(manifests: Sequence[Manifest], moved: Sequence[Path]) -> list[dict[str, Path]]:
    """Where the suites of all campaigns are now; each campaign takes its own suites from `moved`."""
    if len(manifests) == 1:
        return [locate(manifests[0], moved)]
    names = {suite.name for manifest in manifests for suite in manifest.suites}
    for place in moved:
        if place.absolute().name not in names:
            raise InputError(f"{place}: no campaign has this suite; they have {', '.join(sorted(names))}.")
    return [
        locate(m, [p for p in moved if p.absolute().name in {suite.name for suite in m.suites}])
        for m in manifests
    ]
