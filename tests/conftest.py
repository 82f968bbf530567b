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
    parser.addoption("--on-xla", action="store_true", help="run what the frontend's tests trace on XLA, too; takes long")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--on-xla"):
        os.environ["GRADSMITH_TESTS_ON_XLA"] = "1"          # also for the workers


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))
