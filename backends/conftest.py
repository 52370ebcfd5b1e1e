"""Both servers, and the worked example of the demo exported to them: observed, enforced, and without the panes."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from mlflow.entities import Trace as MlflowTrace
from mlflow.tracking import MlflowClient
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agentguard import record
from agentguard.cli import worked_example
from agentguard.policy import Mode
from agentguard.reference import References
from agentguard.reference.writing import to_lines
from backends import servers
from backends.seen import mlflow_traces, phoenix_spans

IMAGES: Final = Path(__file__).parents[1] / "docs" / "images"


@dataclass(frozen=True, kw_only=True)
class Exported:
    """One run: what was written, and what each backend gives back of it."""

    originals: tuple[ReadableSpan, ...]
    recorded: Path
    """Folder of the recorder, which saw the same spans."""
    project: str
    """Its name in Phoenix."""
    phoenix: list[dict[str, Any]]
    """Spans as Phoenix's REST interface lists them."""
    experiment: str
    """Its id in MLflow."""
    mlflow: MlflowTrace


@dataclass(frozen=True, kw_only=True)
class Urls:
    """Where the servers answer."""

    phoenix: str
    mlflow: str


RUNS: Final[Mapping[str, tuple[Mode, bool]]] = {
    "observed": (Mode.OBSERVE, True),
    "enforced": (Mode.ENFORCE, True),
    "plain": (Mode.OBSERVE, False),
}
"""The guard's mode, and whether it fills the panes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the command that renews the pictures of the manual."""
    parser.addoption("--screenshots", action="store_true", help="Write docs/images/phoenix.png and mlflow.png.")


@pytest.fixture(scope="session")
def images(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder for the pictures: the manual's where that was asked for, else one that is thrown away."""
    return IMAGES if request.config.getoption("--screenshots") else tmp_path_factory.mktemp("images")


@pytest.fixture(scope="session")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Generator[Urls]:
    """Start both servers side by side."""
    with ExitStack() as stack:
        phoenix = stack.enter_context(servers.phoenix(tmp_path_factory.mktemp("phoenix")))
        mlflow = stack.enter_context(servers.mlflow(tmp_path_factory.mktemp("mlflow")))
        phoenix.wait()
        mlflow.wait()
        yield Urls(phoenix=phoenix.url, mlflow=mlflow.url)


@pytest.fixture(scope="session")
def exported(urls: Urls, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Exported]:
    """Run the worked example in each way, and read it back."""
    return {
        name: _exported(urls, f"demo-{name}", tmp_path_factory.mktemp(name), mode, panes=panes)
        for name, (mode, panes) in RUNS.items()
    }


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the demo's reference as a file."""
    path = tmp_path_factory.mktemp("reference") / "reference.jsonl"
    path.write_text(to_lines(References(tasks={worked_example.TASK: worked_example.REFERENCE})))
    return path


def _exported(urls: Urls, project: str, folder: Path, mode: Mode, *, panes: bool) -> Exported:
    experiment = MlflowClient(urls.mlflow).create_experiment(project)
    provider, memory = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    for url, headers in (
        (urls.phoenix, {"x-project-name": project}),
        (urls.mlflow, {"x-mlflow-experiment-id": experiment}),
    ):
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces", headers=headers)))
    with record(folder, tracer_provider=provider, compress=False):
        worked_example.trace(provider, mode, openinference=panes)
    provider.shutdown()
    originals = memory.get_finished_spans()
    (trace,) = mlflow_traces(urls.mlflow, experiment, count=len(originals))
    return Exported(
        originals=originals,
        recorded=folder,
        project=project,
        phoenix=phoenix_spans(urls.phoenix, project, count=len(originals)),
        experiment=experiment,
        mlflow=trace,
    )


def written(folder: Path, name: str, content: Any) -> Path:
    """Return a new file with some JSON in it."""
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path
