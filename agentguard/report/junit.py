"""A report as JUnit XML, which every CI system shows: one suite a model + harness, one case a run."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree

from agentguard.report import Report
from agentguard.scoring import Grade, RunScore


def junit(report: Report) -> bytes:
    """Return the XML. A run that fails is a failure with every reason; one that could not be scored is skipped."""
    suites = ElementTree.Element("testsuites", {"name": "agentguard"} | _counts(report.runs))
    for row in report.rows:
        runs = [run for run in report.runs if run.key == row.key]
        name = _plain(f"{row.key.model} + {row.key.harness}")
        suite = ElementTree.SubElement(suites, "testsuite", {"name": name} | _counts(runs))
        for run in runs:
            _add_case(suite, name, run)
    ElementTree.indent(suites)
    return bytes(ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True))


def _counts(runs: Iterable[RunScore]) -> dict[str, str]:
    grades = [run.grade for run in runs]
    return {
        "tests": str(len(grades)),
        "failures": str(grades.count(Grade.FAIL)),
        "skipped": str(grades.count(Grade.UNSCORED)),
        "errors": "0",
    }


def _add_case(suite: ElementTree.Element, name: str, run: RunScore) -> None:
    case = ElementTree.SubElement(suite, "testcase", name=_plain(run.run_id), classname=name)
    if run.grade is Grade.FAIL:
        texts = [_plain(reason.text) for reason in run.reasons]
        ElementTree.SubElement(case, "failure", message=texts[0], type=run.reasons[0].code).text = "\n".join(texts)
    elif run.grade is Grade.UNSCORED:
        ElementTree.SubElement(case, "skipped", message=_plain("; ".join(run.unscored)))


def _plain(text: str) -> str:
    """Return a text without the characters that XML cannot hold."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
