"""start.py: what a learner types first, and the sentence that each kind of trouble gets.

Most tests run it in a small stand-in for the course whose lock names only the pip that Python
brings along, so nothing is downloaded. `jupyterlab` is a file there that prints how it was called.
"""

from __future__ import annotations

import ast
import ensurepip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path("Scripts" if os.name == "nt" else "bin")
FAKE_LAB = """
import json, os, sys
names = ("JUPYTER_CONFIG_PATH", "OPENBLAS_NUM_THREADS", "VIRTUAL_ENV")
print(json.dumps({"words": sys.argv[1:], "folder": os.getcwd(), **{name: os.environ[name] for name in names}}))
"""
posix = pytest.mark.skipif(os.name == "nt", reason="sends POSIX signals")


def lay_course(folder: Path) -> Path:
    """The stand-in: start.py as it is, everything else as small as it can be."""
    for name, text in {
        "requirements.lock": f"pip=={ensurepip.version()}\n",
        "tests/requirements.lock": f"pip=={ensurepip.version()}\n",
        "mlsys/__init__.py": "",
        "jupyterlab.py": FAKE_LAB,
        "notebooks/00_start_here.ipynb": "{}",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "start.py", folder)
    return folder


def start(course: Path, *words: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess:
    """Run the stand-in's start.py; variables go into its environment, empty ones out of it."""
    env = {name: value for name, value in os.environ.items() if name not in ("MLSYS_VENV", "PYTHONPATH")}
    env |= {"PYTHONIOENCODING": "utf-8", **variables}
    command = [sys.executable, str(course / "start.py"), *words]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, encoding="utf-8", timeout=120)


@pytest.fixture
def course(tmp_path):
    """A stand-in that was not started yet."""
    return lay_course(tmp_path / "course")


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A stand-in that is set up, in a folder whose name has spaces and letters that are not ASCII."""
    course = lay_course(tmp_path_factory.mktemp("setup") / "mein Kurs über ML 機械")
    done = start(course, "--setup-only")
    assert done.returncode == 0, done.stderr
    return course


def test_old_pythons_can_read_it():
    """Python 2.7 to 3.9 must get as far as the sentence: no syntax that they lack, and no other letters than ASCII."""
    source = (ROOT / "start.py").read_bytes()
    tree = ast.parse(source.decode("ascii"), feature_version=(3, 4))
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, (ast.JoinedStr, ast.AnnAssign, ast.Nonlocal))]
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.cause]
    arguments = [node.args for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert not [each for each in arguments if each.kwonlyargs or each.posonlyargs]


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7", "3.8", "3.9"])
def test_old_python_gets_a_sentence(version):
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for python in [f"python{version}", *map(str, pyenv.glob(f"{version}.*/bin/python"))]:
        if shutil.which(python) and subprocess.run([python, "-c", ""], capture_output=True).returncode == 0:
            break
    else:
        pytest.skip(f"no Python {version} on this machine")
    done = subprocess.run([python, str(ROOT / "start.py")], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"This is Python {version}. The course needs Python 3.10 or later")


def test_it_starts_jupyterlab_at_the_start_page(ready, tmp_path):
    done = start(ready, "--no-browser", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert f"--ServerApp.root_dir={ready}" in seen["words"] and seen["words"][-1] == "--no-browser"
    assert "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb" in seen["words"]
    assert Path(seen["folder"]) == ready and Path(seen["VIRTUAL_ENV"]) == ready / ".venv"
    assert seen["OPENBLAS_NUM_THREADS"] == "1"
    assert "mlsys-learner" in seen["JUPYTER_CONFIG_PATH"]


def test_lecturers_keep_their_panels(ready):
    assert "mlsys-learner" not in json.loads(start(ready, "teach").stdout)["JUPYTER_CONFIG_PATH"]


def test_settings_ask_the_network_for_nothing(ready):
    overrides = json.loads((ready / ".venv/share/jupyter/lab/settings/overrides.json").read_text(encoding="utf-8"))
    asked = overrides["@jupyterlab/apputils-extension:notification"]
    assert asked == {"checkForUpdates": False, "fetchNews": "false"}
    server = json.loads((ready / ".venv/etc/mlsys/jupyter_lab_config.json").read_text(encoding="utf-8"))
    assert server["LabApp"]["news_url"] is None and server["ServerApp"]["ip"] == "127.0.0.1"


def test_a_second_start_installs_nothing(ready):
    stamps = {path: path.stat().st_mtime_ns for path in ready.glob(".venv/*")}
    assert start(ready, "--setup-only").stdout == f"The course is set up in {ready / '.venv'}.\n"
    assert {path: path.stat().st_mtime_ns for path in ready.glob(".venv/*")} == stamps


def test_the_environment_finds_the_course_from_anywhere(ready, tmp_path):
    command = [ready / ".venv" / BIN / "python", "-c", "import mlsys; print(ascii(mlsys.__file__))"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert Path(ast.literal_eval(found.stdout)) == ready / "mlsys" / "__init__.py"


def test_a_foreign_mlsys_is_noticed(ready, tmp_path):
    (tmp_path / "mlsys").mkdir()
    (tmp_path / "mlsys" / "__init__.py").write_text("")
    done = start(ready, PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert str(tmp_path) in done.stderr and "not the course's own package" in done.stderr
    site = next(ready.glob(".venv/[Ll]ib/**/site-packages"))
    shutil.copytree(tmp_path / "mlsys", site / "mlsys")
    assert "pip uninstall mlsys" in start(ready).stderr
    shutil.rmtree(site / "mlsys")
    assert start(ready).returncode == 0


def test_an_unknown_command_is_named(course):
    done = start(course, "tset")
    assert done.returncode == 1 and "no command 'tset'; it has lab, teach, test, update" in done.stderr
    assert not (course / ".venv").exists()


def test_missing_ensurepip_names_the_package(course, tmp_path):
    """As on Debian without python3-venv."""
    (tmp_path / "ensurepip.py").write_text("raise ImportError('not here')")
    done = start(course, PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert f"sudo apt install python{sys.version_info[0]}.{sys.version_info[1]}-venv" in done.stderr
    assert "Traceback" not in done.stderr and not (course / ".venv").exists()


def test_no_network_leaves_nothing_half_made(course):
    (course / "requirements.lock").write_text("a-package-that-nobody-has==1.0\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]  # closed again: nobody answers there
    nobody = f"http://127.0.0.1:{port}/simple"
    done = start(course, PIP_INDEX_URL=nobody, PIP_RETRIES="1", PIP_CONFIG_FILE=os.devnull)
    assert done.returncode == 1 and "could not reach its package index" in done.stderr
    assert "pip download" in done.stderr and "Traceback" not in done.stderr
    assert not list(course.glob(".venv*"))


def test_a_failed_renewal_keeps_the_old_environment(ready):
    lock = (ready / "requirements.lock").read_text()
    (ready / "requirements.lock").write_text("a-package-that-nobody-has==1.0\n")
    done = start(ready, PIP_NO_INDEX="1")
    (ready / "requirements.lock").write_text(lock)
    assert done.returncode == 1 and "no ready-made package" in done.stderr
    assert [path.name for path in ready.glob(".venv*")] == [".venv"]
    assert start(ready, "--setup-only").stdout.startswith("The course is set up")


def test_a_foreign_environment_is_left_alone(course):
    (course / ".venv").mkdir()
    (course / ".venv" / "pyvenv.cfg").write_text("somebody else's")
    done = start(course)
    assert done.returncode == 1 and "was not made by start.py" in done.stderr
    assert (course / ".venv" / "pyvenv.cfg").read_text() == "somebody else's"


def test_a_killed_installation_is_repaired(course):
    (course / ".venv").mkdir()
    (course / ".venv" / "mlsys-stamp-requirements.lock").write_text("unfinished")
    done = start(course, "--setup-only")
    assert done.returncode == 0 and (course / ".venv" / BIN).is_dir()


@posix
def test_an_interrupt_leaves_nothing_half_made(course, request):
    """Ctrl-C while pip waits for an index that never answers."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background ignores it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    (course / "requirements.lock").write_text("a-package-that-nobody-has==1.0\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        index = f"http://127.0.0.1:{server.getsockname()[1]}/simple"
        env = dict(os.environ, PIP_INDEX_URL=index, PIP_CONFIG_FILE=os.devnull)
        command = [sys.executable, str(course / "start.py")]
        child = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True)
        request.addfinalizer(child.kill)
        server.settimeout(60)
        server.accept()  # pip has come to ask
        os.killpg(child.pid, signal.SIGINT)
        said, _ = child.communicate(timeout=30)
    assert child.returncode == 130 and "Nothing half made was kept" in said
    assert not list(course.glob(".venv*"))


def test_a_folder_that_cannot_be_written_gets_a_sentence(course, tmp_path):
    (tmp_path / "a file").write_text("")
    done = start(course, MLSYS_VENV=str(tmp_path / "a file" / "venv"))
    assert done.returncode == 1 and "a folder that you can write to" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_test_tools_are_kept_apart(ready):
    assert not (ready / ".venv" / "mlsys-stamp-tests-requirements.lock").exists()
    assert start(ready, "test", "--setup-only").returncode == 0
    assert (ready / ".venv" / "mlsys-stamp-tests-requirements.lock").exists()
