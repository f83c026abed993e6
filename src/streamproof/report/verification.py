"""The report of a verification: verdicts, coverage, timings, and every difference with picture and shrunk case."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from streamproof.events.files.writer import replacing
from streamproof.report.page import page
from streamproof.workbench import repro as repros
from streamproof.workbench.languages import as_json, as_python, as_sql
from streamproof.workbench.picture import timeline_of
from streamproof.workbench.repro import Repro
from streamproof.workbench.results import SHOWN, EngineResult
from streamproof.workbench.runner import SuiteResult

TABLES: Final = ("window", *SHOWN)


def write_report(results: Sequence[SuiteResult], path: Path, *, overwrite: bool = False) -> None:
    """One HTML file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(Path(os.path.realpath(path)), overwrite=overwrite) as place:
        place.write_text(report(results), encoding="utf-8")


def report(results: Sequence[SuiteResult]) -> str:
    """The page."""
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    suites = [_suite(result) for result in results]
    names = ", ".join(result.suite for result in results)
    return page(_BODY, title=f"streamproof verify {names}", suites=suites, made=made, version=version("streamproof"))


def _suite(result: SuiteResult) -> dict[str, Any]:
    places = [*result.repros, *([None] * len(result.found))]
    return {
        "name": result.suite, "about": result.about.strip(), "verdict": result.verdict, "seed": result.seed,
        "oracle": result.oracle, "cases": result.cases, "planned": result.planned, "stopped": result.stopped,
        "seconds": result.seconds, "engines": [_engine(tally) for tally in result.tallies.values()],
        "found": [_found(one, place) for one, place in zip(result.found, places, strict=False)],
        "events": sum(tally.events for tally in result.tallies.values()),
        "rows": sum(tally.rows for tally in result.tallies.values()),
        "modules": result.modules, "broken": sum(map(bool, result.modules.values())),
    }  # fmt: skip


def _engine(tally: EngineResult) -> dict[str, Any]:
    coverage = tally.coverage
    return {
        "name": tally.engine, "verdict": tally.verdict, "cases": tally.cases, "words": dict(tally.words),
        "laws": sorted(tally.laws.items()), "errors": sorted(tally.errors.items()), "seconds": tally.seconds,
        "speed": tally.cases / tally.seconds * 60 if tally.seconds else 0, "missing": coverage.missing(),
        "tables": [(name, *coverage.table(name)) for name in TABLES],
        "lists": [(name, coverage.section(name)) for name in ("aggregate", "module", "function")],
    }  # fmt: skip


def _found(one: Repro, place: Path | None) -> dict[str, Any]:
    verdict, case = one.verdict, one.case
    return {
        "engine": one.engine, "word": verdict.word, "kind": verdict.kind, "law": verdict.law, "text": verdict.text,
        "events": case.size, "scenario": case.scenario, "seed": case.seed, "run": case.schedule.as_dict(),
        "svg": timeline_of(one).svg(), "python": as_python(case), "json": as_json(one), "sql": as_sql(case),
        "expected": "\n".join(repros.shown_rows(verdict.expected)),
        "actual": "\n".join(repros.shown_rows(verdict.actual)),
        "command": repros.command(place) if place is not None else "",
    }  # fmt: skip


_BODY: Final = """
<h1>Verification</h1>
<p class="dim">{{ made }} · streamproof {{ version }}</p>
{% for suite in suites %}
<section aria-label="suite {{ suite.name }}">
<p><span class="verdict {{ suite.verdict }}">{{ suite.verdict }}</span>
 suite <b>{{ suite.name }}</b>{% if suite.about %}: {{ suite.about }}{% endif %}</p>
<p>Every case is a query and its streams, made from a scenario and the seed {{ suite.seed }}. It runs on an engine; the
same query as SQL over the complete history, on {{ suite.oracle }}, says what the result must be. Besides, the output
must keep the rules of streams, and how a run goes (its pieces, order, restarts) must not matter.</p>
<div class="facts">
<div><b>{{ "{:,}".format(suite.cases) }}</b> cases{% if suite.cases < suite.planned %} of
 {{ "{:,}".format(suite.planned) }}{% endif %}</div>
<div><b>{{ suite.found|length }}</b> difference{{ "" if suite.found|length == 1 else "s" }} shown</div>
<div><b>{{ "{:,}".format(suite.events) }}</b> events in</div>
<div><b>{{ "{:,}".format(suite.rows) }}</b> rows compared</div>
<div><b>{{ "%.0f"|format(suite.seconds) }} s</b> of time{% if suite.stopped %}; stopped:
 {{ suite.stopped }}{% endif %}</div>
</div>
<div class="scroll" tabindex="0" role="region" aria-label="engines">
<table><thead><tr><th>engine</th><th>verdict</th><th>cases</th><th>hold</th><th>fail</th><th>cases a minute</th></tr>
</thead><tbody>
{% for engine in suite.engines %}
<tr><td>{{ engine.name }}</td><td class="{{ engine.verdict }}">{{ engine.verdict }}</td>
<td>{{ "{:,}".format(engine.cases) }}</td><td>{{ "{:,}".format(engine.words.get("holds", 0)) }}</td>
<td>{{ engine.words.get("fails", 0) + engine.words.get("nondeterministic", 0) }}</td>
<td>{{ "{:,.0f}".format(engine.speed) }}</td></tr>
{% endfor %}
</tbody></table></div>
{% if suite.found %}<h2>What differs</h2>{% endif %}
{% for one in suite.found %}
<article class="card" aria-label="difference {{ loop.index }}">
<h3><span class="{{ one.word }}">{{ one.word }}</span> on {{ one.engine }}: {{ one.kind }}{% if one.law %}
 (the law of {{ one.law }} is broken){% endif %}</h3>
<p><b>{{ one.text }}</b></p>
<p class="dim">Shrunk to {{ one.events }} events · scenario {{ one.scenario }} · seed {{ one.seed }}{% if one.run %} ·
 run: {% for name, value in one.run.items() %}{{ name }}={{ value }} {% endfor %}{% endif %}</p>
<div class="picture" tabindex="0" role="region" aria-label="timeline">{{ one.svg|safe }}</div>
<p class="dim">Blue bars are lifetimes of input, grey ones windows, triangles CTIs; green is what should come out, and
red marks the first difference.</p>
<h3>The query</h3><pre tabindex="0">{{ one.python }}</pre>
<details><summary>Expected and found</summary><pre tabindex="0">expected
{{ one.expected }}

found
{{ one.actual }}</pre></details>
<details><summary>The whole case as JSON</summary><pre tabindex="0">{{ one.json }}</pre></details>
<details><summary>The query as SQL</summary><pre tabindex="0">{{ one.sql }}</pre></details>
{% if one.command %}<h3>Run it again</h3><pre tabindex="0">{{ one.command }}</pre>{% endif %}
</article>
{% endfor %}
<details><summary>{{ suite.modules|length }} modules: what they declare of themselves
 {% if suite.broken %}<span class="fails">does not hold for {{ suite.broken }}</span>{% else %}
<span class="holds">holds</span>{% endif %}</summary>
<ul>{% for name, findings in suite.modules.items() %}<li>{{ name }}{% if findings %}:
<pre tabindex="0">{{ findings|join("\n") }}</pre>{% endif %}</li>{% endfor %}</ul></details>
{% for engine in suite.engines %}
<h2>What {{ engine.name }} was put through</h2>
<h3>Laws</h3>
<div class="scroll" tabindex="0" role="region" aria-label="laws"><table>
<thead><tr><th>law</th><th>cases</th></tr></thead>
<tbody>{% for law, count in engine.laws %}<tr><td>{{ law }}</td><td>{{ "{:,}".format(count) }}</td></tr>{% endfor %}
{% for name, count in engine.errors %}<tr><td>the error {{ name }} on both sides</td><td>{{ count }}</td></tr>
{% endfor %}
</tbody></table></div>
{% if engine.missing %}<details><summary class="undecided">{{ engine.missing|length }} things were not covered</summary>
<p>{{ engine.missing|join(", ") }}</p></details>
{% else %}<p class="holds">Every operator, window, aggregate and facet was covered.</p>{% endif %}
{% for name, heads, rows in engine.tables %}
<details{% if loop.first %} open{% endif %}><summary>Operators × {{ name }}</summary>
<div class="scroll" tabindex="0" role="region" aria-label="operators by {{ name }}"><table><thead><tr><th>operator</th>
{% for head in heads %}<th>{{ head }}</th>{% endfor %}</tr></thead><tbody>
{% for op, counts in rows %}<tr><td>{{ op }}</td>{% for count in counts %}
<td{% if not count %} class="none"{% endif %}>{{ "{:,}".format(count) if count else "–" }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table></div></details>
{% endfor %}
{% for name, counts in engine.lists %}
<details><summary>{{ counts|length }} {{ name }}s</summary><p>{% for word, count in counts.items() %}{{ word }}
<span class="dim">{{ count }}</span>{% if not loop.last %}, {% endif %}{% endfor %}</p></details>
{% endfor %}
{% endfor %}
</section>
{% endfor %}
"""
