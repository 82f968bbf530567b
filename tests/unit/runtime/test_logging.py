"""What gradsmith says about its work."""

import logging
import os
import subprocess
import sys

import numpy as np

import gradsmith as gs


def test_one_record_for_each_compilation_with_its_reason(caplog):
    made = gs.jit(lambda x, n: np.expand_dims(x, n) + 1)
    with caplog.at_level(logging.INFO, logger="gradsmith"):
        for x, n in [(np.ones(4), 1), (np.ones(6), 1), (np.ones(4, np.float32), 1), (np.ones(1), 1), (np.ones(9), 0),
                     (np.ones(4), 1)]:
            made(x, n)
    messages = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    reasons = [message.rpartition(": ")[2] for message in messages]
    assert ["first call", "new argument types or sizes of 0 or 1", "new argument types or sizes of 0 or 1",
            "static values or size relations changed"] == reasons
    assert all(message.startswith("compiled lambda_(array(float") for message in messages)


def test_size_relations_are_a_reason(caplog):
    made = gs.jit(lambda x, y: x + y)
    with caplog.at_level(logging.INFO, logger="gradsmith"):
        made(np.ones(3), np.ones(3))
        made(np.ones(4), np.ones(4))
    assert 1 == len(caplog.records)


def test_the_environment_turns_it_on():
    program = "import gradsmith as gs\ngs.jit(lambda x: x + 1, source='lambda x: x + 1')(1.0)"
    said = subprocess.run([sys.executable, "-c", program], env={**os.environ, "GRADSMITH_LOG": "1"}, text=True,
                          capture_output=True, check=True).stderr
    assert said.startswith("gradsmith: compiled lambda_(float64) in ") and said.endswith("ms: first call\n")
    silent = subprocess.run([sys.executable, "-c", program], env={**os.environ, "GRADSMITH_LOG": "0"}, text=True,
                            capture_output=True, check=True).stderr
    assert "" == silent
