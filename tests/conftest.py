"""What all tests share: a cache folder of their own, and how golden files are rewritten."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
os.environ.setdefault("GRADSMITH_CACHE_DIR", str(ROOT / "build" / "test-cache"))

# A busy machine is no fault of a strategy.
settings.register_profile("gradsmith", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gradsmith")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden/expected; then read the diff")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))
