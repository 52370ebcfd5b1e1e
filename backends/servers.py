"""The servers of Phoenix and MLflow, on free loopback ports, with all that they keep in a folder that is given."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

HOST: Final = "127.0.0.1"
DEADLINE: Final = 180.0
"""Seconds for a server to answer that it is well; on two idle cores each takes some 15."""
_PAUSE: Final = 0.25
_LINES: Final = 30


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server that was started; it may not answer yet."""

    url: str
    health: str
    """Address that answers 200 when it is well."""
    log: Path
    process: subprocess.Popen[bytes]

    def wait(self) -> None:
        """Return when it is well; RuntimeError with the end of its log when it ended or is not in time."""
        until = time.monotonic() + DEADLINE
        while not _answers(self.health):
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.url}: ended with {self.process.returncode}\n{self._last_lines()}")
            if time.monotonic() > until:
                raise RuntimeError(f"{self.url}: not well after {DEADLINE:.0f} s\n{self._last_lines()}")
            time.sleep(_PAUSE)

    def _last_lines(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_LINES:])


@contextlib.contextmanager
def phoenix(folder: Path) -> Generator[Server]:
    """Start Phoenix, and kill it in the end."""
    port = _free_port()
    environment = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": HOST,
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(_free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with _started([_script("phoenix"), "serve"], folder, environment, port=port, health="/healthz") as server:
        yield server


@contextlib.contextmanager
def mlflow(folder: Path) -> Generator[Server]:
    """Start MLflow, and kill it in the end."""
    port = _free_port()
    environment = {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # six processes more, for what is not asked here
    }
    options: dict[str, Any] = {
        "--backend-store-uri": f"sqlite:///{folder}/mlflow.db",
        "--artifacts-destination": folder / "artifacts",
        "--host": HOST,
        "--port": port,
        "--workers": 1,
    }
    command = [_script("mlflow"), "server", *(str(word) for option in options.items() for word in option)]
    with _started(command, folder, environment, port=port, health="/health") as server:
        yield server


@contextlib.contextmanager
def _started(
    command: list[str], folder: Path, environment: dict[str, str], *, port: int, health: str
) -> Generator[Server]:
    log = folder / "server.log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    url = f"http://{HOST}:{port}"
    try:
        yield Server(url=url, health=url + health, log=log, process=process)
    finally:
        # the whole session: MLflow's server is a child of the command, and would outlive it
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _script(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        return int(taken.getsockname()[1])


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
