"""Open the course, or run its tests, on a machine that has Python 3.10 or later and nothing else.

    python3 start.py                 open JupyterLab at the start page
    python3 start.py teach           the same with the lecturer's panels of nbgrader
    python3 start.py test            run every test
    python3 start.py update          bring a git clone up to date; what you wrote is kept
    python3 start.py --setup-only    install and open nothing (with "test": the test tools too)

The first run makes the folder .venv and installs the exact versions of requirements.lock into it.
Later runs find a stamp there and start at once. Further words go to JupyterLab, or to pytest.
MLSYS_VENV names another folder than .venv.
"""
# No f-strings and no annotations here: the file has to parse on Python 2.7, so that an old Python
# prints a sentence and not a syntax error.

from __future__ import print_function

import sys

if sys.version_info < (3, 10):
    sys.exit("This is Python {}.{}. The course needs Python 3.10 or later: install one from python.org or with your "
             "system's package manager, and run start.py with it.".format(*sys.version_info[:2]))

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / (os.environ.get("MLSYS_VENV") or ".venv")
OLD = VENV.with_name(VENV.name + "-old")
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = str(BIN / ("python.exe" if os.name == "nt" else "python"))
LOCK, TEST_LOCK = "requirements.lock", "tests/requirements.lock"
START_PAGE = "notebooks/00_start_here.ipynb"
UNFINISHED = "unfinished"
SETTINGS = {  # files in .venv: nothing asks the network, and learners see no lecturer's panels
    "share/jupyter/lab/settings/overrides.json": {
        "@jupyterlab/apputils-extension:notification": {"checkForUpdates": False, "fetchNews": "false"},
    },
    "etc/mlsys/jupyter_lab_config.json": {
        "LabApp": {"extension_manager": "readonly", "news_url": None,
                   "check_for_updates_class": "jupyterlab.handlers.announcements.NeverCheckForUpdate"},
        "ServerApp": {"ip": "127.0.0.1"},
    },
    "etc/mlsys-learner/labconfig/page_config.json": {
        "disabledExtensions": {"@jupyter/nbgrader:" + panel: True
                               for panel in ("course-list", "create-assignment", "formgrader")},
    },
}
FIND_MLSYS = """
import importlib.util, os, sys
spec = importlib.util.find_spec("mlsys")
folder = spec and list(spec.submodule_search_locations or [spec.origin])[0]
print("ours" if folder and os.path.samefile(folder, sys.argv[1]) else ascii(folder))
"""


def stamp_file(lock):
    """Where VENV keeps the stamp of a lock file that was installed."""
    return VENV / ("mlsys-stamp-" + lock.replace("/", "-"))


def stamp(lock):
    """What an environment is made from, as a digest: if it is unchanged, nothing has to be installed."""
    made_from = [sys.version, str(VENV), json.dumps(SETTINGS, sort_keys=True)]
    made_from += [(ROOT / name).read_text(encoding="utf-8") for name in (LOCK, lock)]
    return hashlib.sha256("\n".join(made_from).encode("utf-8", "surrogateescape")).hexdigest()


def stamped(lock):
    """The stamp that VENV has; None if it has none."""
    return stamp_file(lock).read_text(encoding="utf-8") if stamp_file(lock).is_file() else None


def environment():
    """The variables that JupyterLab, pytest and pip run with: VENV first, BLAS on one thread."""
    path = str(BIN) + os.pathsep + os.environ.get("PATH", "")
    env = dict(os.environ, VIRTUAL_ENV=str(VENV), PATH=path, PIP_USER="0")
    env.pop("PYTHONHOME", None)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        env.setdefault(name, "1")
    env.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # our kernel, not one of the same name in the user's folder
    return env


def explain(output):
    """What to do about a failed pip run, from what it printed."""
    if any(word in output for word in ("connection broken", "timed out", "ProxyError", "CERTIFICATE_VERIFY_FAILED")):
        return ("pip could not reach its package index. Check the network (and pip's proxy settings) and start again.\n"
                "For a machine without network: on one that has it, with the same system and the same Python, run\n"
                "    python3 -m pip download --no-deps -r requirements.lock -d wheels\n"
                "carry the folder wheels over, and start there with PIP_NO_INDEX=1 and PIP_FIND_LINKS=wheels set.")
    if "No matching distribution" in output:
        return ("pip found no ready-made package for this system and Python {}. The course is tried on "
                "Python 3.10 to 3.13; start it with one of these.".format(sys.version.split()[0]))
    return "The lines above are pip's own. Start again once their cause is mended."


def pip_install(lock):
    """Install a lock file with pip as this machine has it set up; count the packages on a terminal."""
    total = sum("==" in line for line in (ROOT / lock).read_text(encoding="utf-8").splitlines())
    command = [PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--no-input", "--no-deps",
               "--only-binary", ":all:", "-r", lock]
    pip = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines, seen = [], 0
    try:
        for line in pip.stdout:
            lines.append(line.decode("utf-8", "replace").rstrip())
            seen += lines[-1].startswith(("Collecting", "Ignoring", "Processing", "Requirement already"))
            if sys.stdout.isatty():
                note = ", unpacking them ..." if lines[-1].startswith("Installing") else ""
                print("\r  {} of {} packages{}".format(seen, total, note), end="", flush=True)
    except BaseException:
        pip.terminate()
        raise
    finally:
        pip.wait()
        print(end="\n" if sys.stdout.isatty() else "")
    if pip.returncode:
        errors = [line for line in lines if line.startswith("ERROR")] or lines
        sys.exit("\n".join(errors[-8:]) + "\n\nInstalling did not work. " + explain("\n".join(lines)))


def write(path, text):
    """Write a text file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def build():
    """Make the environment in VENV from nothing."""
    version = "python{}.{}".format(*sys.version_info[:2])
    try:
        import ensurepip  # noqa: F401 - Debian and Ubuntu keep it in a package of its own
        import venv  # noqa: F401
    except ImportError:
        sys.exit("This Python cannot make environments: its module ensurepip is missing. On Debian and Ubuntu run\n"
                 "    sudo apt install {}-venv\nand start again.".format(version))
    write(stamp_file(LOCK), UNFINISHED)
    base = getattr(sys, "_base_executable", None) or sys.executable
    made = subprocess.run([base, "-m", "venv", str(VENV)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if made.returncode:
        sys.exit("python -m venv did not work. It says:\n" + made.stdout.decode("utf-8", "replace")[-1000:].strip())
    pip_install(LOCK)
    for name, content in SETTINGS.items():
        write(VENV / name, json.dumps(content, indent=2) + "\n")
    packages = VENV / "Lib" / "site-packages" if os.name == "nt" else VENV / "lib" / version / "site-packages"
    try:  # a relative line is plain ASCII, whatever the folder above is called
        line = os.path.relpath(ROOT, packages)
    except ValueError:  # Windows: another drive
        line = str(ROOT)
    write(packages / "mlsys-course.pth", line + "\n")
    write(stamp_file(LOCK), stamp(LOCK))


def set_up(tests=False):
    """Bring VENV to what the lock files say. A failure leaves what was there before."""
    state = stamped(LOCK)
    if state is None and VENV.is_dir() and any(VENV.iterdir()):
        sys.exit("{} exists and was not made by start.py. Rename it, or set MLSYS_VENV to another folder for the "
                 "course's environment.".format(VENV))
    if state != stamp(LOCK) or not os.path.exists(PYTHON):
        print("Setting up the course in {} (about a minute) ...".format(VENV), flush=True)
        if state == UNFINISHED:
            shutil.rmtree(VENV)
        elif state is not None:
            shutil.rmtree(OLD, ignore_errors=True)
            VENV.rename(OLD)
        try:
            build()
        except BaseException:
            shutil.rmtree(VENV, ignore_errors=True)
            if OLD.is_dir():
                OLD.rename(VENV)
            raise
        shutil.rmtree(OLD, ignore_errors=True)
    if tests and stamped(TEST_LOCK) != stamp(TEST_LOCK):
        print("Adding the test tools ...", flush=True)
        pip_install(TEST_LOCK)
        write(stamp_file(TEST_LOCK), stamp(TEST_LOCK))
    command = [PYTHON, "-c", FIND_MLSYS, str(ROOT / "mlsys")]
    found = subprocess.check_output(command, cwd=VENV, env=environment()).decode().strip()
    if found != "ours":
        sys.exit("`import mlsys` finds {} and not the course's own package. Remove that one ({} -m pip uninstall "
                 "mlsys, or take it off PYTHONPATH) and start again.".format(found, PYTHON))


def become(command, env):
    """Go on as this command, in the course's folder; its exit status where it cannot take our place."""
    sys.stdout.flush()
    os.chdir(ROOT)
    if os.name != "nt":
        os.execve(command[0], command, env)
    child = subprocess.Popen(command, env=env)
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:  # the child has it too, and decides
            continue


def lab(words, teach=False):
    """Open JupyterLab at the start page."""
    set_up()
    env = environment()
    config = [str(VENV / "etc" / name) for name in (["mlsys"] if teach else ["mlsys-learner", "mlsys"])]
    env["JUPYTER_CONFIG_PATH"] = os.pathsep.join(config + [env.get("JUPYTER_CONFIG_PATH") or config[-1]])
    page = "/lab/tree/" + START_PAGE if (ROOT / START_PAGE).is_file() else "/lab"
    command = [PYTHON, "-m", "jupyterlab", "--ServerApp.root_dir={}".format(ROOT), "--LabApp.default_url=" + page]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    return become(command + words, env)


def test(words):
    """Run the whole test suite, or what the further words choose from it."""
    set_up(tests=True)
    words = words or ["-n", "2", "--dist", "loadscope"]  # by file: the browser opens each lesson once
    return become([PYTHON, "-m", "pytest"] + words, environment())


def update(words):
    """Bring a git clone up to date without losing what the learner wrote."""
    sys.path.insert(0, str(ROOT))
    from grading.update import update_clone
    return update_clone(ROOT)


COMMANDS = {"lab": lab, "teach": lambda words: lab(words, teach=True), "test": test, "update": update}


def main(words):
    """Run the command that the words name; the status for the shell."""
    if "-h" in words or "--help" in words:
        print(__doc__.strip())
        return 0
    command = words.pop(0) if words and not words[0].startswith("-") else "lab"
    if command not in COMMANDS:
        sys.exit("start.py has no command {!r}; it has {}.".format(command, ", ".join(COMMANDS)))
    try:
        if "--setup-only" not in words:
            return COMMANDS[command](words)
        set_up(tests=command == "test")
        print("The course is set up in {}.".format(VENV))
        return 0
    except KeyboardInterrupt:
        print("\nStopped. Nothing half made was kept; start again when you like.")
        return 130
    except OSError as error:
        sys.exit("start.py could not use {}: {}. Close JupyterLab if it is running. Put the course into a folder that you "
                 "can write to, or set MLSYS_VENV to one.".format(error.filename, error.strerror))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
