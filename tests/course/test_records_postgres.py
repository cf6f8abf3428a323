"""The same batch on PostgreSQL, against a server that the test starts."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from records_kit import CLASS, RIGHT, STAND_IN, WRONG_ANSWER, grade, lay, lecturer  # noqa: E402

POINTS = {student: points for student, (_, points) in CLASS.items()}


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The address of an empty database on a server of this test."""
    pytest.importorskip("psycopg2", reason="PostgreSQL needs psycopg2: pip install psycopg2-binary")
    debian = [str(path) for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]  # not on PATH there
    path = os.pathsep.join([os.environ.get("PATH", ""), *debian])
    programs = [shutil.which(name, path=path) for name in ("initdb", "postgres")]
    if not all(programs):
        pytest.skip("no PostgreSQL server is installed")
    folder = tmp_path_factory.mktemp("postgres")
    account = {}
    if os.name == "posix" and os.geteuid() == 0:  # PostgreSQL does not run as root
        account = {"user": 65534, "group": 65534, "extra_groups": []}
        for path in (folder, *list(folder.parents)[:3]):
            if str(path).startswith("/tmp/"):
                path.chmod(0o755)
        os.chown(folder, 65534, 65534)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / "data"
    made = subprocess.run(
        [programs[0], "-D", str(data), "-U", "grader", "-A", "trust", "--no-sync"],
        capture_output=True, text=True, cwd=folder, **account,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"PostgreSQL's initdb does not run here: {made.stderr[-200:]}")
    server = subprocess.Popen(
        [programs[1], "-D", str(data), "-p", str(port), "-k", str(folder), "-h", "127.0.0.1", "-F"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, **account,
    )  # fmt: skip
    try:
        yield wait_for(f"postgresql+psycopg2://grader@127.0.0.1:{port}/postgres", server)
    finally:
        server.send_signal(signal.SIGINT)  # its fast way to end: it does not wait for who is connected
        server.wait(timeout=30)


def wait_for(address: str, server: subprocess.Popen) -> str:
    """The address, once the server answers."""
    import time

    import sqlalchemy

    for _ in range(300):
        try:
            with sqlalchemy.create_engine(address).connect():
                return address
        except sqlalchemy.exc.OperationalError:
            assert server.poll() is None, "the server ended"
            time.sleep(0.1)
    raise AssertionError("the server does not answer")


def test_a_batch_a_resubmission_and_marks_by_hand(url, tmp_path):
    course = lecturer(tmp_path)
    with open(course.root / "nbgrader_config.py", "a") as config:
        config.write(f"\nc.CourseDirectory.db_url = {url!r}\n")
    outcome, _ = grade(course.root)
    assert {line.student: line.got for line in outcome.lines.values()} == POINTS and outcome.backup is None
    assert grade(course.root)[0].graded == 0
    with course.gradebook() as book:
        row = book.find_grade("row-means-why", STAND_IN, STAND_IN, "ana")
        row.manual_score, row.needs_manual_grade = 2, False
        book.db.commit()
    lay(course, "ana", RIGHT | {"kibibytes-answer": WRONG_ANSWER})
    outcome, _ = grade(course.root)
    assert (outcome.lines["ana"].before, outcome.lines["ana"].got) == (8, 5)
    with course.gradebook() as book:
        assert book.find_submission(STAND_IN, "ana").score == 7
        assert book.find_submission(STAND_IN, "cleo").score == 5
