"""Write `requirements.lock`: every installed package with its version and the hashes of all its files that may be used.

What pip then installs is what was looked at, on Linux and macOS, for Python 3.11 to 3.13. The hashes are those that
pip's own index tells; run it with the Python of the environment: `make lock`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from pip._internal.commands import create_command
from pip._internal.index.collector import LinkCollector, parse_links
from pip._internal.models.link import Link
from pip._vendor.packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

PLACE = Path(__file__).parents[1] / "requirements.lock"
HEAD = "# Exact versions and hashes of everything that is installed, direct or not. Renew with: make lock\n"
HEAD_APART = "# What make fuzz-input installs besides: it has wheels for Linux. Renew with: make fuzz-input lock\n"
OURS = {"streamproof", "pip"}
APART = {"atheris": PLACE.with_name("requirements-fuzz.lock")}  # installed by those alone who need it
PYTHONS = re.compile(r"(py3|py2\.py3|cp3|cp311|cp312|cp313|py31[123])$")
PLATFORMS = re.compile(r"(any|linux_|manylinux|musllinux|macosx)")


def main() -> None:
    """Write the file."""
    found = {canonicalize_name(one.metadata["Name"]): one.version for one in distributions()}
    command: Any = create_command("download")
    options, _ = command.parse_args(sys.argv[1:])
    with command.main_context():
        collector = LinkCollector.create(command._build_session(options), options=options)
        blocks = [block(name, found[name], collector) for name in sorted(found) if name not in {*OURS, *APART}]
        for name, place in APART.items():
            if name in found:
                place.write_text(HEAD_APART + block(name, found[name], collector), encoding="utf-8")
    PLACE.write_text(HEAD + "".join(blocks), encoding="utf-8")


def block(name: str, version: str, collector: Any) -> str:
    """One package."""
    hashes = sorted({text for link in links(name, collector) if is_of(link.filename, version) and (text := told(link))})
    if not hashes:
        sys.exit(f"the index tells no hashes of {name} {version}")
    return f"{name}=={version} \\\n" + " \\\n".join(f"    --hash={text}" for text in hashes) + "\n"


def links(name: str, collector: Any) -> Iterator[Any]:
    """The files of a package, of all versions, wherever pip looks for them."""
    for place in collector.search_scope.get_index_urls_locations(name):
        page = collector.fetch_response(Link(place))
        yield from parse_links(page) if page is not None else ()


def told(link: Any) -> str:
    """The hash that an index tells of a file."""
    return f"sha256:{link.hash}" if link.hash_name == "sha256" else ""


def is_of(file: str, version: str) -> bool:
    """Whether a file is a source archive of a version, or a wheel of it for a Python and a system that we run on."""
    try:
        if not file.endswith(".whl"):
            return str(parse_sdist_filename(file)[1]) == version
        _, of, _, tags = parse_wheel_filename(file)
    except ValueError:
        return False
    fits = any(PLATFORMS.match(t.platform) and (PYTHONS.match(t.interpreter) or t.abi == "abi3") for t in tags)
    return str(of) == version and fits


if __name__ == "__main__":
    main()
