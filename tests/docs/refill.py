"""Writes what the snippets of a page print now into the page. Look at the difference before you keep it.

    python -m tests.docs.refill README.md docs/tour.md

An expected output with ``...`` stays as long as it matches; where it does not, it is left alone and named.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from types import TracebackType

from tests.docs.test_snippets import FLAGS, ROOT, Snippet, commands, printed_by, snippets, write_file

STACK = re.compile(r"\A(Traceback .*\n)(?: .*\n)+")  # where an error comes from is of no interest to readers
ExcInfo = tuple[type[BaseException], BaseException, TracebackType]


class Recorder(doctest.DocTestRunner):
    """Remembers what examples gave where that is not what the page says."""

    def __init__(self) -> None:
        super().__init__(optionflags=FLAGS, verbose=False)
        self.given: dict[int, str] = {}

    def report_failure(self, out: object, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        self.given[example.lineno] = STACK.sub("\\1    ...\n", got)

    def report_unexpected_exception(
        self, out: object, test: doctest.DocTest, example: doctest.Example, exc_info: ExcInfo
    ) -> None:
        given = "".join(traceback.format_exception(exc_info[1]))
        self.given[example.lineno] = STACK.sub("\\1    ...\n", given)


def refilled_python(snippet: Snippet, names: dict[str, object], page: Path) -> str:
    if ">>>" not in snippet.body:
        exec(compile(snippet.body, f"{page.name}:{snippet.line}", "exec"), names)
        return snippet.body
    test = doctest.DocTestParser().get_doctest(snippet.body, names, page.name, str(page), 0)
    recorder = Recorder()
    recorder.run(test, out=lambda text: None, clear_globs=False)
    names.update(test.globs)
    lines = snippet.body.splitlines(keepends=True)
    for example in reversed(test.examples):  # from the end, so that line numbers stay true
        if example.lineno in recorder.given:
            start = example.lineno + example.source.count("\n")
            end = start + example.want.count("\n")
            lines[start:end] = [chosen(example.want, recorder.given[example.lineno], f"{page.name}: {example.source}")]
    return "".join(lines)


def refilled_console(snippet: Snippet, folder: Path, page: Path) -> str:
    parts = []
    for command in commands(snippet.body):
        printed = printed_by(command.line, folder) if command.line else command.expected
        trimmed = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
        parts += [command.shown, chosen(command.expected, trimmed, f"{page.name}: {command.line}")]
    return "".join(parts)


def chosen(expected: str, printed: str, at: str) -> str:
    """The new output, unless the old one still says it in a shorter way."""
    if "..." not in expected or expected.startswith("Traceback"):
        return printed
    if not doctest.OutputChecker().check_output(expected, printed, FLAGS):
        print(f"left alone, shorten it by hand: {at}\n{printed}")
    return expected


def refill(page: Path, folder: Path) -> None:
    shutil.copytree(ROOT / "examples", folder / "examples")
    text, names = page.read_text(encoding="utf-8"), {"__name__": "page"}
    parts, done = [], 0
    for match, snippet in snippets(text):
        body = snippet.body
        if snippet.title is not None:
            write_file(snippet, folder)
        elif snippet.language == "python":
            body = refilled_python(snippet, names, page)
        elif snippet.language == "console":
            body = refilled_console(snippet, folder, page)
        parts += [text[done : match.start("body")], re.sub(r"^(?=.)", match["indent"], body, flags=re.M)]
        done = match.end("body")
    page.write_text("".join([*parts, text[done:]]), encoding="utf-8")


def main() -> None:
    for page in [Path(name).resolve() for name in sys.argv[1:]]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            sys.path.insert(0, folder)
            refill(page, Path(folder))
            sys.path.remove(folder)
            os.chdir(ROOT)


if __name__ == "__main__":
    main()
