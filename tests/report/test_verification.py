"""The report: one file that says everything, without a network, for eyes, keyboards and screen readers."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from streamproof.cli.demo_proof import planted_bug
from streamproof.report.verification import report, write_report
from streamproof.workbench import intent as I  # noqa: N812
from streamproof.workbench.runner import SuiteResult, VerifyOptions, run_suite
from streamproof.workbench.suite import Suite


@pytest.fixture(scope="module")
def result() -> SuiteResult:
    scenario = I.stream().followed_by(I.stream()).over(I.events(pattern="dense", speculative=False)).called("follows")
    with planted_bug():
        return run_suite(Suite("<mine>", (scenario,), cases=120), VerifyOptions(most=1, shrink_seconds=10))


class Checker(HTMLParser):
    """Tags that are closed in their order, and what the page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "line", "rect", "path", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("line", "rect", "path"):
            assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_no_network(result: SuiteResult, tmp_path: Path) -> None:
    write_report([result], tmp_path / "deep" / "report.html")
    page = (tmp_path / "deep" / "report.html").read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert checker.links == ["#content"]
    assert "@import" not in page
    assert not re.search(r"url\(|<script", page)
    assert 'name="viewport"' in page
    assert "prefers-color-scheme:dark" in page
    assert "&lt;mine&gt;" in page
    assert "<mine>" not in page


def test_a_difference_has_its_picture_its_case_and_its_command(result: SuiteResult) -> None:
    page = report([result])
    assert 'class="verdict fails"' in page
    assert "<svg" in page
    assert "followed_by" in page
    assert "CREATE TEMP TABLE" in page
    assert "streamproof-repro" in page
    assert "Operators × disorder" in page


def test_every_wide_table_can_be_reached_by_keyboard(result: SuiteResult) -> None:
    page = report([result])
    assert page.count('<div class="scroll"') == page.count('<div class="scroll" tabindex="0" role="region"')
