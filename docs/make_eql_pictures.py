"""Draws docs/eql-*.svg: each model of event-driven queries on a timeline.

python docs/make_eql_pictures.py
"""

from __future__ import annotations

from pathlib import Path

from streamproof.pictures.eql_models import MODELS, as_svg

for name in MODELS:
    (Path(__file__).parent / f"eql-{name}.svg").write_text(as_svg(name) + "\n", encoding="utf-8")
