"""Freed memory stays with the process, unless people want otherwise."""

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy as np
from gradsmith.kernels import allocation
print(allocation.keeps_memory)

def work():
    a, b = np.ones(1_000_000), np.ones(1_000_000)
    return float(a[0] + b[-1])

work(); work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    work()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 10)
"""


def run(**environment):
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kept, faults = done.stdout.split()
    return kept == "True", float(faults)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's thresholds")
def test_large_arrays_cost_no_page_faults():
    kept, faults = run()
    assert kept
    assert faults < 50


@pytest.mark.parametrize("choice", [{"GRADSMITH_KEEP_MEMORY": "0"}, {"MALLOC_TRIM_THRESHOLD_": "131072"}])
def test_people_can_choose_otherwise(choice):
    kept, _ = run(**choice)
    assert not kept
