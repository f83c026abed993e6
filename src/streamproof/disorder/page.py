"""An analysis as a page: self-contained, with plots, in light and dark, on wide and narrow screens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamproof.disorder.text import spark_line
from streamproof.disorder.units import moment_text, shown, spark_interval
from streamproof.errors import as_shown
from streamproof.pictures.disorder_plots import CurveMark, PlotBar, bar_plot, curve_plot

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>{title}</title>
<style>body {{ margin: 0; }} @media (prefers-color-scheme: dark) {{ body {{ background: #12181b; }} }}</style></head>
<body>{body}</body></html>
"""


def page_of(figures: Mapping[str, Any]) -> str:
    """The whole page."""
    from markupsafe import escape  # noqa: PLC0415  # comes with jinja2, which only reports need

    return _PAGE.format(title=escape(f"Disorder of {Path(figures['source']).name}"), body=body_of(figures))


def body_of(figures: Mapping[str, Any]) -> str:
    """The page's content; a notebook shows it as it is."""
    import jinja2  # noqa: PLC0415

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        finalize=as_shown,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("analysis.html.j2").render(**_content(figures), **_plots(figures))


def _content(f: Mapping[str, Any]) -> dict[str, Any]:
    unit, frequency = f["unit"], f["frequency"]
    return {
        "name": Path(f["source"]).name,
        "source": f["source"],
        "event_time": f["event_time"],
        "unit": unit,
        "first": moment_text(frequency["first"], unit),
        "last": moment_text(frequency["last"], unit),
        "cards": _cards(f),
        "advice": [_with_code(line) for line in f["advice"]],
        "late": f["out_of_order"],
        "choices": _choices(f),
        "bucket": shown(frequency["bucket"], unit),
        "outside": f"{frequency['outside']:,}" if frequency["outside"] else "",
        "blame": [_blamed(event, unit) for event in f["blame"]],
        "keys": [_key(row, unit) for row in f.get("keys", {}).get("most_late", [])],
        "order": [(name.replace("_", " "), _value(value)) for name, value in f.get("order", {}).items()],
        "spark": spark_line(f) if "spark" in f else "",
    }


def _with_code(line: str) -> Any:
    """A sentence whose `quoted` parts are code."""
    from markupsafe import Markup  # noqa: PLC0415

    parts = line.split("`")
    return Markup("").join(Markup("<code>{}</code>").format(part) if n % 2 else part for n, part in enumerate(parts))


def _value(value: float | None) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.6f}"


def _cards(f: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    unit, lateness = f["unit"], f["lateness"]
    found = [
        ("events", f"{f['events']:,}", ""),
        ("out of order", f"{f['factor']:.4g} %", f"{f['out_of_order']:,} events"),
    ]
    if f["out_of_order"]:
        found.append(("median lateness", shown(lateness["p50"], unit), f"99 %: {shown(lateness['p99'], unit)}"))
        found.append(("latest", shown(lateness["max"], unit), ""))
    if "delay" in f:
        found.append(("median delay", shown(f["delay"]["p50"], unit), f"99 %: {shown(f['delay']['p99'], unit)}"))
    found.append(("ascending runs", f"{f['runs']:,}", ""))
    found += [(name, f"{f[name]:,}", "") for name in ("rejected", "nulls", "negatives", "duplicates") if f[name]]
    return found


def _choices(f: Mapping[str, Any]) -> list[dict[str, str]]:
    return [
        {
            "loss": "nothing" if name == "0" else name.replace("%", " %"),
            "delay": shown(delay, f["unit"]),
            "rows": f"{f['rows_held'][name]:,}",
            "line": f'.withWatermark("{f["event_time"]}", "{spark_interval(delay, f["unit"])}")',
        }
        for name, delay in f["delay_for_loss"].items()
    ]


def _blamed(event: Mapping[str, Any], unit: Any) -> dict[str, str]:
    return {
        "made_late": f"{event['made_late']:,}",
        "percent": f"{event['percent']:.2f} %",
        "moment": event["moment"],
        "ahead": shown(event["ahead"], unit) if event["ahead"] else "–",
        "row": event["row"],
    }


def _key(row: Mapping[str, Any], unit: Any) -> dict[str, str]:
    return {
        "key": row["key"],
        "events": f"{row['events']:,}",
        "late": f"{row['out_of_order']:,}",
        "factor": f"{row['factor']:.2f} %",
        "longest": shown(row["max_lateness"], unit),
    }


def _plots(f: Mapping[str, Any]) -> dict[str, Any]:
    from markupsafe import Markup  # noqa: PLC0415

    unit = f["unit"]
    of = "delay" if "delay" in f else "lateness"
    plots = {
        "drop_plot": curve_plot(_lost(f), title="drop curve", x_text=lambda x: _short(x, unit), marks=_marks(f)),
        "lateness_plot": _histogram(f, "lateness"),
        "cdf_plot": curve_plot(
            [(x, y) for x, y in f[of]["curve"]], title=f"distribution of {of}", x_text=lambda x: _short(x, unit)
        ),
        "time_plot": bar_plot(_along(f), title="disorder along the stream", y_label="%"),
        "frequency_plot": bar_plot(_frequency(f), title="events over time"),
    }
    title = "Delay: share of events that arrived within" if of == "delay" else "Lateness: share of late events within"
    return {**{name: Markup(svg) for name, svg in plots.items()}, "cdf_title": title}  # noqa: S704  # our own, escaped


def _short(ticks: float, unit: Any) -> str:
    """A length of time for an axis: its largest part."""
    return shown(round(ticks), unit).partition(" ")[0]


def _marks(f: Mapping[str, Any]) -> list[CurveMark]:
    words = {"0": "nothing lost"}
    delays = f["delay_for_loss"].items()
    return [
        CurveMark(ticks, f"{words.get(loss, loss + ' lost')}: {shown(ticks, f['unit'])}")
        for loss, ticks in delays
        if ticks
    ]


def _along(f: Mapping[str, Any]) -> list[PlotBar]:
    return [
        PlotBar(f"{start:,}", 100 * late / events, f"from event {start:,}: {late:,} of {events:,}")
        for start, events, late in f["over_time"]
    ]


def _frequency(f: Mapping[str, Any]) -> list[PlotBar]:
    unit = f["unit"]
    return [
        PlotBar(_day(start, unit), count, f"{moment_text(start, unit)}: {count:,} events")
        for start, count in f["frequency"]["series"]
    ]


def _day(tick: int, unit: Any) -> str:
    text = moment_text(tick, unit)
    return text[:10] if text[4:5] == "-" and "T00:00" in text else text[5:16].replace("T", " ") if "T" in text else text


def _histogram(f: Mapping[str, Any], of: str) -> str:
    unit = f["unit"]
    bars = [
        PlotBar(shown(start, unit), count, f"{shown(start, unit)} to {shown(end, unit)}: {count:,} events")
        for start, end, count in f[of]["histogram"]
    ]
    return bar_plot(bars, title=of)


def _lost(f: Mapping[str, Any]) -> list[tuple[float, float]]:
    """The drop curve at many delays: what is not within the delay, of all events."""
    return [(x, f["factor"] * (1 - y / 100)) for x, y in f["lateness"]["curve"]]
