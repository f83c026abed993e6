"""What all pages share: one file, no network, light and dark, narrow and wide, usable by keyboard alone."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from streamproof.errors import as_shown

if TYPE_CHECKING:
    from jinja2 import Environment

STYLE: Final = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1d2433;--dim:#5b6472;--line:#dfe3ea;--card:#f6f8fb;--good:#0e8a52;
--bad:#c4281b;--warn:#9a6700;--input:#2e7fe0;--window:#98a2b3;--cti:#7a5af8;--link:#1b5fc1}
@media (prefers-color-scheme:dark){:root{--paper:#12161d;--ink:#e6e9ef;--dim:#9aa4b2;--line:#2c3440;--card:#1a2029;
--good:#3ccf8e;--bad:#ff7a6e;--warn:#e0b24c;--input:#5aa2f5;--window:#667085;--cti:#a594ff;--link:#8ab8ff}}
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:1rem 1rem 4rem}h1{font-size:1.5rem;margin:.6rem 0}
h2{font-size:1.2rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--line);padding-bottom:.3rem}
h3{font-size:1rem;margin:1.4rem 0 .4rem}a{color:var(--link)}.dim{color:var(--dim)}
.verdict{display:inline-block;padding:.15rem .7rem;border-radius:1rem;border:2px solid currentColor;font-weight:650}
.holds,.explained{color:var(--good)}.fails,.nondeterministic{color:var(--bad)}.undecided{color:var(--warn)}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:.5rem;margin:.6rem 0}
.scroll:focus-visible,a:focus-visible,summary:focus-visible,button:focus-visible{outline:3px solid var(--input);
outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:.88rem;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--paper)}
thead th{color:var(--dim);font-weight:600}td.none{color:var(--bad);font-weight:650}
pre{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.7rem;overflow-x:auto;
font:13px/1.45 ui-monospace,monospace;margin:.4rem 0}
details{margin:.5rem 0}summary{cursor:pointer;font-weight:600;padding:.2rem 0}
.card{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.4rem 1rem 1rem;margin:1rem 0}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.6rem;margin:1rem 0}
.facts div{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.5rem .8rem}
.facts b{display:block;font-size:1.25rem}.skip{position:absolute;left:-99rem}.skip:focus{left:1rem}
.picture{background:var(--paper);border:1px solid var(--line);border-radius:.5rem;padding:.4rem;overflow-x:auto}
.picture svg{min-width:34rem;width:100%}
"""

_FRAME: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title><style>{{ style }}</style></head>
<body><a class="skip" href="#content">To the content</a><main id="content">
{% block body %}{% endblock %}
</main></body></html>
"""


@cache
def _environment() -> Environment:
    from jinja2 import DictLoader, Environment, StrictUndefined  # noqa: PLC0415  # loaded by those who write pages

    return Environment(
        loader=DictLoader({"frame": _FRAME}), autoescape=True, finalize=as_shown, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def page(template: str, *, title: str, **content: Any) -> str:
    """A whole page: the template fills the block ``body`` of the frame. Everything from data is escaped."""
    from markupsafe import Markup  # noqa: PLC0415

    text = '{% extends "frame" %}{% block body %}' + template + "{% endblock %}"
    style = Markup(STYLE)  # noqa: S704  # our own text
    return _environment().from_string(text).render(title=title, style=style, **content)
