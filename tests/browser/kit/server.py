"""JupyterLab for one test: on this machine only, with settings of its own.

Settings, data, workspaces and the learner's home lie in a folder of the test, so that neither
side sees the other's. The "Jupyter news" question is off, and Lab follows the light or dark
wish of the browser.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

FOLDERS = (
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_DATA_DIR",
    "JUPYTER_RUNTIME_DIR",
    "JUPYTERLAB_SETTINGS_DIR",
    "JUPYTERLAB_WORKSPACES_DIR",
    "IPYTHONDIR",
    "MPLCONFIGDIR",
    "MLSYS_DATA_DIR",
    "XDG_DATA_HOME",
    "HOME",
    "USERPROFILE",
    "LOCALAPPDATA",
    "APPDATA",
)
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false"},
    "@jupyterlab/apputils-extension/themes": {
        "adaptive-theme": True,
        "preferred-light-theme": "JupyterLab Light",
        "preferred-dark-theme": "JupyterLab Dark",
    },
}
START_LIMIT_S = 120


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class LabServer:
    """JupyterLab on 127.0.0.1 with a random token. Use it in a `with` statement.

    root: the folder that Lab shows. state: the folder of this user's settings and data;
    give the same one again and the same user comes back. env: more environment variables.
    """

    def __init__(self, root: Path, state: Path, env: dict[str, str] | None = None):
        self.root, self.state = Path(root).resolve(), Path(state).resolve()
        self.env = self.user_environment() | (env or {})
        self.token = secrets.token_hex(12)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def user_environment(self) -> dict[str, str]:
        """This process's environment with every folder of the user moved into `state`."""
        return dict(os.environ) | {name: str(self.state / name.lower()) for name in FOLDERS}

    def write_settings(self) -> None:
        """Lay the settings of `SETTINGS` where Lab reads them."""
        for plugin, values in SETTINGS.items():
            path = self.state / "jupyterlab_settings_dir" / f"{plugin}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values), encoding="utf-8")

    def command(self) -> list[str]:
        """The command line that starts Lab."""
        return [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={self.port}",
            "--ServerApp.port_retries=0",
            f"--ServerApp.root_dir={self.root}",
            f"--IdentityProvider.token={self.token}",
            "--LabApp.news_url=None",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            "--LabApp.expose_app_in_browser=True",  # the tests read the notebook's model from the page
        ]

    def __enter__(self) -> LabServer:
        for name in FOLDERS:
            Path(self.env[name]).mkdir(parents=True, exist_ok=True)
        self.write_settings()
        self.log_file = open(self.state / "server.log", "a", encoding="utf-8")  # noqa: SIM115 (closed in __exit__)
        self.process = subprocess.Popen(
            self.command(), cwd=self.root, env=self.env, stdout=self.log_file, stderr=subprocess.STDOUT
        )
        try:
            self.wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_until_ready(self) -> None:
        """Return when the server answers; raise RuntimeError with its log if it does not."""
        start = time.monotonic()
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/api/status?token={self.token}", timeout=2).read()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() - start > START_LIMIT_S:
                    raise RuntimeError(f"JupyterLab did not start. Its log:\n{self.log()}") from None
                time.sleep(0.1)

    def log(self) -> str:
        """What the server has printed so far."""
        return (self.state / "server.log").read_text(encoding="utf-8", errors="replace")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log_file.close()
