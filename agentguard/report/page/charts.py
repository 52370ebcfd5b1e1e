"""The charts of the page, drawn by Vega-Lite into SVG: nothing of them runs in the browser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from agentguard.errors import IntegrationMissing
from agentguard.report import Report

_INK: Final = "currentColor"
_CONFIG: Final = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": _INK,
        "titleColor": _INK,
        "domainColor": _INK,
        "tickColor": _INK,
        "gridColor": _INK,
        "gridOpacity": 0.15,
    },
    "legend": {"labelColor": _INK, "titleColor": _INK},
    "text": {"color": _INK},
}
_COLOURS: Final = {"pass": "#2a9d5c", "fail": "#d1495b", "unscored": "#b8860b"}
_MOST_LABELS: Final = 15


def charts(report: Report) -> list[dict[str, str]]:
    """Return title, SVG and a note in words of each chart that the runs have figures for."""
    drawn = [_success(report), _steps(report), _loops(report)]
    return [{"title": title, "svg": _svg(spec, title), "note": note} for title, note, spec in drawn if spec is not None]


Chart = tuple[str, str, dict[str, Any] | None]


def _success(report: Report) -> Chart:
    """Success against cost, or against steps where no cost is known, with the rows that no other row beats."""
    ranked = [row for row in report.rows if row.is_comparable]
    costs = {row.key: row.mean_cost_usd for row in ranked}
    known = all(cost is not None for cost in costs.values())
    what = "US dollars a run" if known else "median steps"
    points = [
        {"row": f"{row.key.model} + {row.key.harness}", "x": paid, "success": row.success.share}
        for row in ranked
        if (paid := costs[row.key] if known else row.median_steps) is not None and row.success.share is not None
    ]
    title = f"Success against {what}; the line joins the rows that no other row beats on both"
    if not points:
        return title, "", None
    front = pareto(points)
    x = {"field": "x", "type": "quantitative", "title": what}
    y: dict[str, Any] = {"field": "success", "type": "quantitative", "title": "success", "axis": {"format": "%"}}
    y["scale"] = {"domain": [0, 1]}
    layers: list[dict[str, Any]] = [
        {"data": {"values": front}, "mark": {"type": "line", "opacity": 0.5}, "encoding": {"x": x, "y": y}},
        {
            "data": {"values": points},
            "mark": {"type": "point", "filled": True, "size": 60},
            "encoding": {"x": x, "y": y},
        },
    ]
    if len(points) <= _MOST_LABELS:
        text = {"type": "text", "align": "left", "dx": 7, "limit": 260}
        encoding = {"x": x, "y": y, "text": {"field": "row"}}
        layers.append({"data": {"values": points}, "mark": text, "encoding": encoding})
    best = "; ".join(f"{one['row']} ({one['x']:g}, {one['success']:.0%})" for one in front[:_MOST_LABELS])
    return title, f"Not beaten: {best}", {"layer": layers, "width": 620, "height": 260}


def pareto(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the points that no other point beats: cheaper and no worse, or better and no dearer."""
    front: list[Mapping[str, Any]] = []
    for point in sorted(points, key=lambda one: (one["x"], -one["success"])):
        if not front or point["success"] > front[-1]["success"]:
            front.append(point)
    return front


def _steps(report: Report) -> Chart:
    count = Counter(
        (int(run.scores["steps"].value or 0), str(run.grade)) for run in report.runs if "steps" in run.scores
    )
    values = [{"steps": steps, "verdict": grade, "runs": runs} for (steps, grade), runs in sorted(count.items())]
    return "Runs by their steps", "", _bars(values, {"field": "steps", "bin": {"maxbins": 40}, "title": "steps"})


def _loops(report: Report) -> Chart:
    told = [(run, run.scores["repeats"].value) for run in report.runs if "repeats" in run.scores]
    looped = Counter((min(int(value), 10), str(run.grade)) for run, value in told if value)
    values = [
        {"repeats": "10+" if repeats == 10 else str(repeats), "verdict": grade, "runs": runs}
        for (repeats, grade), runs in sorted(looped.items())
    ]
    none = sum(value == 0 for _, value in told)
    title = f"Runs by calls repeated back to back; {none:,} have none"
    return title, "", _bars(values, {"field": "repeats", "type": "ordinal", "sort": None, "title": "repeats"})


def _bars(values: list[dict[str, Any]], x: dict[str, Any]) -> dict[str, Any] | None:
    if not values:
        return None
    colour = {"domain": list(_COLOURS), "range": list(_COLOURS.values())}
    encoding = {
        "x": x,
        "y": {"field": "runs", "aggregate": "sum", "title": "runs"},
        "color": {"field": "verdict", "type": "nominal", "scale": colour},
    }
    return {"data": {"values": values}, "mark": "bar", "encoding": encoding, "width": 560, "height": 180}


def _svg(spec: dict[str, Any], title: str) -> str:
    try:
        vega = import_module("vl_convert")
    except ImportError:
        raise IntegrationMissing("vl-convert-python", "score") from None
    return str(vega.vegalite_to_svg({"config": _CONFIG, "description": title, **spec}, allowed_base_urls=[]))
