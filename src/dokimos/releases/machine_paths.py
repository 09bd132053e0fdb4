"""Takes the folders of a machine out of a text that is published."""

from __future__ import annotations

import re

#: Where people keep files and programs, and where temporary ones go. Folders of the system itself, such as
#: /usr and /dev, say nothing about a machine, and scripts need them.
_PLACES = (
    "Users|Volumes|app|builds?|cluster|content|data|github|home|media|mnt|nfs|opt|private|project|projects|"
    "root|scratch|srv|storage|tmp|var|work|workspaces?"
)
#: An absolute path in such a place; the last name is kept. Nothing that stands within a longer path or an
#: address matches.
_PATH = re.compile(rf"(?<![\w.:/\\~+%-])/(?:{_PLACES})/(?:[^\s\"'<>|:;,()\\/&]+/)*(?=[^\s\"'<>|:;,()\\/&])")


def without_folders(text: str) -> str:
    """The text with absolute paths shortened to their last name.

    >>> without_folders('File "/home/me/runs/a.vnnlib", line 1; see https://example.org/home/b')
    'File "a.vnnlib", line 1; see https://example.org/home/b'
    """
    return _PATH.sub("", text)
