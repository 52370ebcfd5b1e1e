"""What the backends export, scored by the command: the same verdict for the same reasons as the spans themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from agentguard.cli import main
from backends.conftest import Exported, Urls, written
from backends.seen import get

REASONS = [
    "repeated identical call search_docs",
    "repeated identical call read_file",
    "8 steps against a budget of 5",
]

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ldap3")  # which Phoenix's client imports

Export = Callable[[Exported, Urls, Path], Path]


def phoenix_spans(run: Exported, urls: Urls, folder: Path) -> Path:
    return written(folder, "spans.json", run.phoenix)


def phoenix_otlp(run: Exported, urls: Urls, folder: Path) -> Path:
    address = f"{urls.phoenix}/v1/projects/{run.project}/spans/otlpv1?limit=1000"
    return written(folder, "otlp.json", get(address)["data"])


def phoenix_dataframe(run: Exported, urls: Urls, folder: Path) -> Path:
    path = folder / "dataframe.parquet"
    dataframe(run, urls).to_parquet(path)
    return path


def phoenix_records(run: Exported, urls: Urls, folder: Path) -> Path:
    return written(
        folder,
        "dataframe.jsonl",
        dataframe(run, urls).to_json(orient="records", lines=True, date_format="iso", date_unit="us"),
    )


def mlflow_trace(run: Exported, urls: Urls, folder: Path) -> Path:
    return written(folder, "trace.json", run.mlflow.to_json())


EXPORTS: Final[list[Export]] = [phoenix_spans, phoenix_otlp, phoenix_dataframe, phoenix_records, mlflow_trace]


def dataframe(run: Exported, urls: Urls) -> Any:
    from phoenix.client import Client

    return Client(base_url=urls.phoenix).spans.get_spans_dataframe(project_identifier=run.project)


def scored(capsys: pytest.CaptureFixture[str], traces: Path, reference: Path) -> dict[str, Any]:
    with pytest.raises(SystemExit):
        main(["score", str(traces), "--reference", str(reference), "--json", "--strict"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    return {name: value for name, value in run.items() if name != "source"}


def wasted_seconds(run: dict[str, Any]) -> float:
    """Take the seconds that the needless calls took out of a run's scores."""
    return float(run["scores"]["waste"]["data"].pop("seconds"))


@pytest.mark.parametrize("export", EXPORTS, ids=lambda export: export.__name__)
@pytest.mark.parametrize("name", ["observed", "enforced", "plain"])
def test_an_export_scores_as_the_spans_themselves(
    exported: dict[str, Exported],
    urls: Urls,
    reference: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    export: Export,
    name: str,
) -> None:
    run = exported[name]
    of_export = scored(capsys, export(run, urls, tmp_path), reference)
    of_spans = scored(capsys, run.recorded, reference)
    assert wasted_seconds(of_export) == pytest.approx(wasted_seconds(of_spans), abs=1e-5)  # Phoenix keeps microseconds
    assert of_export == of_spans
    reasons = [reason["text"] for reason in of_export["reasons"]]
    assert (of_export["verdict"], reasons) == (("pass", []) if name == "enforced" else ("fail", REASONS))
