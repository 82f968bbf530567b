"""Tests in this folder run commands through `commands` beside them, in a folder and with a cache of their own."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADSMITH_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path
