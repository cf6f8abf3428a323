"""A submission reaches nothing: no file of the machine, no network, no other process, nothing that stays.

Each probe prints ESCAPED if it got anywhere. They attack only the sandbox of this test.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sealed_kit import CHECK, REPOSITORY, RIGHT, graded, level, points, said  # noqa: E402

LEVEL = level()
pytestmark = pytest.mark.skipif(LEVEL < 2, reason="no isolation level holds on this machine")
level_three = pytest.mark.skipif(LEVEL < 3, reason=f"needs isolation level 3, this machine reaches {LEVEL}")

READS = "for path in {paths!r}:\n    try: print('ESCAPED', path, open(path).read(20))\n    except OSError as error: print(type(error).__name__)\n"  # noqa: E501
CALL = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\ngot = {call}\nprint('ESCAPED' if got >= 0 else 'refused', got)\n"
PROBES = {
    "E01": READS.format(paths=["/etc/passwd", "/etc/shadow", "/root/.bashrc", "/proc/1/environ"]),
    "E04": READS.format(paths=[str(REPOSITORY / "grading" / "gradebook.db"), str(REPOSITORY / "README.md"), str(Path(__file__))])
    + f"import os\nprint('ESCAPED' if os.path.isdir({str(REPOSITORY)!r}) and 'source' in os.listdir({str(REPOSITORY)!r}) else 'hidden')\n",
    "S25": READS.format(paths=[str(REPOSITORY / "source/00_start_here/00_start_here.ipynb")]),
    "H14": READS.format(paths=[str(REPOSITORY / "tests/answers/00_start_here.py")]),
    "E07": "import socket\ntry:\n    socket.create_connection(('192.0.2.1', 80), 1)\n    print('ESCAPED')\nexcept OSError as error: print(error)\n",  # noqa: E501
    "E12": CALL.format(call="libc.ptrace(16, 1, 0, 0)"),
    "E16": CALL.format(call="libc.chroot(b'/scratch')"),
    "E19": CALL.format(call="libc.syscall(248, b'user', b'x', b'data', 4, -3)"),
    "E20": CALL.format(call="libc.syscall(425, 8, ctypes.create_string_buffer(120))"),
    "user namespace": CALL.format(call="libc.unshare(0x10000000)"),
    "mount": CALL.format(call="libc.mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None)"),
    "E17": "import subprocess\ndone = subprocess.run(['/usr/bin/su', '-c', 'id'], stdin=subprocess.DEVNULL, capture_output=True, text=True)\n"  # noqa: E501
    "print('ESCAPED' if 'uid=0' in done.stdout else done.returncode)\n",
    "E22": "import mlsys.check, numpy, grading.sealed.judge\nfor module in (mlsys.check, numpy, grading.sealed.judge):\n"
    "    try: open(module.__file__, 'a').close(); print('ESCAPED')\n    except OSError as error: print(type(error).__name__)\n",
    "E36": "import subprocess, sys\ndone = subprocess.run([sys.executable, '-m', 'pip', 'install', '--quiet', 'wheel'], stdin=subprocess.DEVNULL,"  # noqa: E501
    " capture_output=True, timeout=4)\nprint('ESCAPED' if done.returncode == 0 else 'refused')\n",
}  # fmt: skip


@pytest.mark.parametrize("probe", list(PROBES))
def test_probe_gets_nowhere(probe):
    if probe == "E36":
        pytest.importorskip("pip")
    report = graded(PROBES[probe] + RIGHT)
    assert "ESCAPED" not in said(report)
    assert report.level == LEVEL


def test_local_services_are_out_of_reach():
    """E09: a listener on the loopback address hears nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port, heard = server.getsockname()[1], []
        server.settimeout(2)

        def listen():
            try:
                heard.append(server.accept())
            except OSError:
                pass

        thread = threading.Thread(target=listen)
        thread.start()
        graded(f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)\n")
        thread.join()
    assert heard == []


@level_three
def test_kills_reach_only_its_own():
    """E11: a signal to every process ends the submission's own; the grader and the next submission go on."""
    report = graded("import os, signal\nos.kill(-1, signal.SIGKILL)\n" + RIGHT)
    assert report.score in (0, 2) and not report.faults  # the caller itself is spared by such a kill
    assert graded(RIGHT).score == 2


def processes() -> set[str]:
    """All processes of this machine, by their command line."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found.add((folder / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            pass
    return found


DAEMON = """
import os, subprocess
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv('/usr/bin/sleep', ['sleep', '{seconds}'])
    os._exit(0)
"""


def test_nothing_outlives_a_submission():
    """E24, S21, C02: a detached process dies with its submission, whose honest answer keeps its points."""
    name = f"{3600 + os.getpid()}"
    report = graded(DAEMON.format(seconds=name) + RIGHT)
    time.sleep(0.1)
    assert points(report) == {CHECK: 2}
    assert not any(name in line for line in processes() if line.startswith("sleep"))


@level_three
def test_no_shared_memory_for_a_sibling():
    """E18, R16: a segment or a file in shared memory is gone with the submission."""
    leave = "import ctypes\nlibc = ctypes.CDLL(None)\nprint('got', libc.shmget(4242, 100, {flags}))\nimport os\nprint(os.listdir('/dev/shm'), os.listdir('.'))\n"  # noqa: E501
    first = said(graded(leave.format(flags="0o1666") + "open('/dev/shm/sibling', 'w').write('x')\nopen('sibling', 'w').write('x')\n" + RIGHT))  # noqa: E501
    second = said(graded(leave.format(flags="0o666") + RIGHT))
    assert "got -1" in second and "sibling" not in second, (first, second)


def test_the_error_stream_is_nobody_elses():
    """E37: what one submission writes to handle 2 the next one cannot read."""
    assert graded("import os\nos.write(2, b'ANSWERS OF ADA')\n" + RIGHT).score == 2
    spy = "import os\ntry:\n    print('found', os.pread(2, 1000, 0))\nexcept OSError as error:\n    print('nothing:', error)\n"
    report = graded(spy + RIGHT)
    assert report.score == 2 and "nothing:" in said(report) and "ANSWERS" not in said(report)


def test_the_scratch_folder_starts_empty():
    """E35, S24: no start-up file, no module of the student's lies there before the first cell."""
    assert "files: []" in said(graded("import os\nprint('files:', [f for f in os.listdir('.') if not f.startswith('.')])\n" + RIGHT))


def test_links_and_special_files_are_not_read(tmp_path):
    """E27, E28: a link, a named pipe, a folder or a huge file is not a submission."""
    from sealed_kit import grader, start_page

    target = tmp_path / "gradebook.db"
    target.write_text("{}")
    (tmp_path / "link.ipynb").symlink_to(target)
    os.mkfifo(tmp_path / "pipe.ipynb")
    (tmp_path / "folder.ipynb").mkdir()
    with open(tmp_path / "huge.ipynb", "wb") as file:
        file.truncate(1 << 40)
    for path in tmp_path.glob("*.ipynb"):
        report = grader().grade(start_page(), path, "ada")
        assert report.problem and report.score == 0 and report.problem in report.notebook.cells[0].source


def test_no_script_in_outputs():
    """E30: of rich outputs only text and checked pictures stay."""
    script = "from IPython.display import HTML, Javascript, SVG, display\ndisplay(HTML('<script>alert(1)</script>'), Javascript('alert(1)'))\n" \
        "display({'text/html': '<script>x</script>', 'image/png': 'aGVsbG8=', 'image/svg+xml': '<svg onload=x>'}, raw=True)\n"  # noqa: E501
    outputs = [o for c in graded(script + RIGHT).notebook.cells for o in c.get("outputs", []) if "data" in o]
    assert outputs and {kind for o in outputs for kind in o["data"]} == {"text/plain"}
    assert "alert" not in str(outputs)
