"""The forms for issues name commands and options that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from dokimos.cli.app import command_line

FORMS = sorted(Path(__file__).resolve().parents[2].glob(".github/ISSUE_TEMPLATE/*.yml"))


def test_forms_ask_for_the_reproducer_and_name_commands_that_exist() -> None:
    text = "\n".join(form.read_text(encoding="utf-8") for form in FORMS)
    assert {"gate/failures", "dokimos replay"} <= set(re.findall(r"gate/failures|dokimos replay", text))
    named = re.findall(r"\bdokimos ((?:law )?[a-z]+)((?: [A-Za-z./=-]+)*)", text)
    assert len(named) > 4
    for words, rest in named:
        command: Any = command_line()
        for word in words.split():
            command = command.commands[word]
        options = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= options
