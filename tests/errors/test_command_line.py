"""The command's error pages: `command_line.md` says, for files and a command, exactly what is printed.

A `python FILE` or `toml FILE` block is a file; a `console` block is a command and what it prints on standard error.
Every section is run in a folder of its own.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gradsmith.cli.main import app

PAGE = Path(__file__).parent / "command_line.md"


@dataclass(frozen=True)
class Section:
    title: str
    files: dict[str, str]
    command: str
    expected: str


def sections() -> list[Section]:
    found = []
    for part in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        blocks = re.findall(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", body, flags=re.MULTILINE | re.DOTALL)
        files = {name: text for _, name, text in blocks if name}
        for kind, _, text in blocks:
            if kind == "console":
                command, _, expected = text.partition("\n")
                found.append(Section(title, files, command.removeprefix("$ gradsmith "), expected))
    return found


@pytest.mark.parametrize("section", sections(), ids=lambda s: s.title)
def test_page(section, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADSMITH_CACHE_DIR", str(tmp_path / "cache"))
    for name, text in section.files.items():
        (tmp_path / name).write_text(text)
    result = CliRunner().invoke(app, shlex.split(section.command))
    assert section.expected == result.stderr
    assert result.exit_code == 1
    assert "Traceback" not in result.output
