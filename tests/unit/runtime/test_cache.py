"""The cache on disk: found again, never stale, never trusted, done without where it cannot be used."""

import os
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import gradsmith as gs
from gradsmith import cache, compile

MODEL = """
import gradsmith as gs, numpy as np, warnings

def loss(x):
    return np.sum(SCALE * x * x)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(gs.grad(loss)(np.ones(3)).tolist())
print(len(caught))
print(gs.explain_cache())
"""


def run_process(folder, program, **environment):
    """The lines that a process prints."""
    return start_process(folder, program, **environment)()


def start_process(folder, program, **environment):
    env = {**os.environ, "GRADSMITH_CACHE_DIR": str(folder), **environment}
    process = subprocess.Popen([sys.executable, str(program)], env=env, text=True, stdout=subprocess.PIPE)

    def lines():
        out, _ = process.communicate(timeout=120)
        assert 0 == process.returncode
        return out.splitlines()

    return lines


def write_model(path, scale="2.0"):
    path.write_text(MODEL.replace("SCALE", scale))
    return path


@pytest.fixture
def cold(tmp_path, monkeypatch):
    """A cache folder of its own, and nothing in memory; call it to forget what is in memory again."""
    monkeypatch.setenv("GRADSMITH_CACHE_DIR", str(tmp_path / "cache"))

    def forget():
        for name in [name for name in sys.modules if name.startswith("gradsmith_generated.")]:
            monkeypatch.delitem(sys.modules, name)
        compile.compile_entry.cache_clear()
        monkeypatch.setattr(cache, "account", cache.Account())
        monkeypatch.setattr("gradsmith.machine_code.account", cache.account)
        return tmp_path / "cache"

    forget()
    return forget


def gradient():
    """The same function anew, as another process would make it."""
    return gs.grad(lambda x: np.sum(x * x * 3))(np.ones(2)).tolist()


# --- in several processes -----------------------------------------------------------------------------------------


def test_the_second_process_finds_it(tmp_path):
    program = write_model(tmp_path / "model.py")
    first, second = (run_process(tmp_path / "cache", program) for _ in range(2))
    assert "[4.0, 4.0, 4.0]" == first[0] == second[0]
    assert "generated modules found: 0, written: 1" == first[3] and "machine code loaded: 0, compiled: 1" == first[4]
    assert "  1 x first call" == first[5]
    assert "generated modules found: 1, written: 0" == second[3] and "machine code loaded: 1, compiled: 0" == second[4]
    write_model(program, scale="5.0")
    third = run_process(tmp_path / "cache", program)
    assert "[10.0, 10.0, 10.0]" == third[0], "the source was edited"
    assert "generated modules found: 0, written: 1" == third[3]


def test_processes_race(tmp_path):
    program = write_model(tmp_path / "model.py")
    racing = [start_process(tmp_path / "cache", program) for _ in range(2)]
    for lines in [finish() for finish in racing]:
        assert ["[4.0, 4.0, 4.0]", "0"] == lines[:2]
    assert "machine code loaded: 1, compiled: 0" == run_process(tmp_path / "cache", program)[4]


# --- in one -------------------------------------------------------------------------------------------------------


def test_only_the_owner_may_read(cold):
    gradient()
    folder = cold()
    assert 0o700 == stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE((folder / "v1").stat().st_mode)
    (folder / "v1").chmod(0o755)
    gradient()
    assert 0o700 == stat.S_IMODE((folder / "v1").stat().st_mode)


def test_a_folder_of_the_users_keeps_its_mode_and_files(cold, tmp_path):
    (tmp_path / "cache" / "venv").mkdir(parents=True)
    (tmp_path / "cache" / "venv" / "file").write_text("mine")
    mode = (tmp_path / "cache").stat().st_mode
    gradient()
    assert mode == (tmp_path / "cache").stat().st_mode
    count, size = cache.size()
    assert count >= 3 and size > 1000
    assert count == cache.clear()
    assert "mine" == (tmp_path / "cache" / "venv" / "file").read_text()
    assert (0, 0) == cache.size()


def files(folder, pattern):
    found = list(Path(folder).rglob(pattern))
    assert found
    return found


def flip(data):
    half = len(data) // 2
    return data[:half] + bytes([data[half] ^ 0xFF]) + data[half + 1:]


@pytest.mark.parametrize("pattern", ["*.py", "*.nbi", "*.nbc"])
@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:len(data) // 2], flip, lambda data: None],
                         ids=["empty", "truncated", "flipped", "deleted"])
def test_damaged_files_are_written_anew(cold, pattern, damage):
    expected = gradient()
    for path in files(cold(), pattern):
        data = damage(path.read_bytes())
        path.unlink() if data is None else path.write_bytes(data)
    assert expected == gradient()
    cold()
    assert expected == gradient()
    assert (1, 1, 0) == (cache.account.hits, cache.account.loaded, cache.account.compiled)
    assert cache.account.problem is None


@pytest.mark.parametrize("place", ["cache", "cache/v1"])
def test_a_file_in_place_of_a_folder(cold, tmp_path, place):
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_text("in the way")
    with pytest.warns(RuntimeWarning, match="works without its cache") as caught:
        assert [6.0, 6.0] == gradient()
        assert 4.0 == gs.jit(lambda x: x * 2)(2.0)
        assert [5.0] == gs.jit(lambda x: x + 4)(np.ones(1)).tolist()
    assert 1 == len([w for w in caught if issubclass(w.category, RuntimeWarning)])
    assert "disk not used" in gs.explain_cache()
    assert "in the way" == path.read_text()


def test_the_folder_goes_away_while_running(cold, tmp_path):
    import shutil
    made = gs.grad(lambda x: np.sum(x * x * 3))
    made(np.ones(2))
    shutil.rmtree(tmp_path / "cache")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal([6.0, 6.0], made(np.ones(2)))
        np.testing.assert_array_equal(6 * np.ones((2, 2)), made(np.ones((2, 2))))
        assert (tmp_path / "cache").is_dir()


def test_the_module_goes_away_before_it_is_imported(cold, monkeypatch):
    stored = cache._stored

    def stored_and_lost(*args):
        path = stored(*args)
        path.unlink()
        return path

    monkeypatch.setattr(cache, "_stored", stored_and_lost)
    with pytest.warns(RuntimeWarning, match="works without its cache"):
        assert [6.0, 6.0] == gradient()


def test_closures_are_never_mixed_up(cold):
    def make(scale, shift):
        return gs.grad(lambda x: np.sum(x * x) * scale + shift)

    def power(n):
        return gs.jit(lambda x: x ** n)

    x = np.ones(2)
    assert [[2.0, 2.0], [6.0, 6.0]] == [make(s, 0)(x).tolist() for s in (1.0, 3.0)]
    assert [4.0, 8.0, 4.0] == [power(n)(2.0) for n in (2, 3, 2)]


def test_another_version_has_another_key(monkeypatch):
    assert cache.key_of("text", "") == cache.key_of("text", "")
    assert cache.key_of("text", "") != cache.key_of("text", "array(float64, 1d, C)")
    before = cache.key_of("text", "")
    monkeypatch.setattr("gradsmith.__version__", "9.9.9")
    cache.versions.cache_clear()
    try:
        assert before != cache.key_of("text", "")
    finally:
        monkeypatch.undo()
        cache.versions.cache_clear()


def test_names_that_are_not_ascii(cold):
    def größe(x):
        return x * 2

    assert 4.0 == gs.jit(größe)(2.0)
    cold()
    assert 4.0 == gs.jit(lambda größe: größe * 2)(2.0)
