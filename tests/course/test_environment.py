"""One set of names and bounds: pyproject.toml, environment.yml, the two locks and what is installed agree."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from itertools import product
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from rattler import MatchSpec

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
CONDA_NAMES = {"matplotlib": "matplotlib-base"}  # conda's `matplotlib` brings a desktop toolkit with it
PIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?==[^\s;]+( ; .+)?")
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
SYSTEMS = {
    "Linux": {"sys_platform": "linux", "os_name": "posix", "platform_machine": "x86_64"},
    "macOS": {"sys_platform": "darwin", "os_name": "posix", "platform_machine": "arm64"},
    "Intel macOS": {"sys_platform": "darwin", "os_name": "posix", "platform_machine": "x86_64"},
    "Windows": {"sys_platform": "win32", "os_name": "nt", "platform_machine": "AMD64"},
}
TARGETS = list(product(PYTHONS, SYSTEMS))


def needs(lines, system: str = "", marked: bool = True) -> dict[str, SpecifierSet]:
    """Requirements as a table from name to bounds; those of one system; without those that have a marker."""
    found = [line for line in map(Requirement, lines) if marked or line.marker is None]
    here = {**default_environment(), **SYSTEMS.get(system, {})}
    return {canonicalize_name(line.name): line.specifier for line in found if not line.marker or line.marker.evaluate(here)}


def pins(lock: str) -> list[str]:
    """The lines of a lock file without its comments."""
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def locked(lock: str, python: str, system: str) -> dict[str, str]:
    """Exact versions that a lock means on one Python and one system; a name may come once."""
    target = {**default_environment(), "python_version": python, "python_full_version": f"{python}.9"}
    target |= {"implementation_name": "cpython", "platform_python_implementation": "CPython", **SYSTEMS[system]}
    found = [pin for pin in map(Requirement, pins(lock)) if pin.marker is None or pin.marker.evaluate(target)]
    table = {pin.name: str(pin.specifier).removeprefix("==") for pin in found}
    assert len(table) == len(found), "a package is pinned twice"
    return table


def conda_specs() -> list[str]:
    """The conda lines of environment.yml."""
    lines = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    return [line for line in lines if isinstance(line, str)]


def test_environment_yml_has_the_names_and_bounds_of_pyproject():
    """Parsed by conda's own rules: a spec that only looks right fails here."""
    specs = [MatchSpec(line, strict=True) for line in conda_specs() if line != "pip"]
    found = {spec.name.normalized: SpecifierSet(str(spec.version)) for spec in specs}
    wanted = {CONDA_NAMES.get(name, name): bounds for name, bounds in needs(PROJECT["dependencies"], marked=False).items()}
    assert found == {**wanted, "python": SpecifierSet(PROJECT["requires-python"])}


def test_environment_yml_installs_the_course_itself():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert environment["dependencies"][-1] == {"pip": ["-e ."]}
    assert environment["name"] == PROJECT["name"] != "mlsys"


@pytest.mark.parametrize("lock", ["requirements.lock", "tests/requirements.lock"])
def test_locks_are_exact_and_name_no_index(lock):
    assert [line for line in pins(lock) if not PIN.fullmatch(line)] == []
    assert "://" not in (ROOT / lock).read_text(encoding="utf-8")


@pytest.mark.parametrize(("python", "system"), TARGETS)
def test_locks_keep_the_bounds_on_every_target(python, system):
    base, added = locked("requirements.lock", python, system), locked("tests/requirements.lock", python, system)
    together = {**added, **base}
    assert together == {**base, **added}, "the two locks pin one package to two versions"
    for name, bounds in needs(PROJECT["dependencies"], system).items():
        assert base[name] in bounds
    for name, bounds in needs(EXTRAS["test"]).items():
        assert together[name] in bounds
    assert ("pywinpty" in base) == (system == "Windows")
    assert not {"playwright", "pytest", "torch"} & set(base), "learners do not download the test tools"


@pytest.mark.parametrize("python", PYTHONS)
def test_locks_have_what_an_older_python_needs(python):
    base = locked("requirements.lock", python, "Linux")
    assert base["nbgrader"] == "0.9.5" if python == "3.10" else base["nbgrader"] in SpecifierSet(">=0.9.6")
    assert base["numpy"].startswith("2.2.") if python == "3.10" else base["numpy"] in SpecifierSet(">=2.4")


@pytest.mark.parametrize("name", needs(PROJECT["dependencies"]))
def test_installed_versions_are_inside_the_bounds(name):
    assert version(name) in needs(PROJECT["dependencies"])[name]


def test_ruff_finds_nothing():
    """The rules stand in pyproject.toml."""
    done = subprocess.run([sys.executable, "-m", "ruff", "check", "."], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
