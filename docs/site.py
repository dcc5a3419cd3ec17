"""A hook of MkDocs: pages at the top of the repository are pages of the site, and links between all of them work."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
OUTSIDE = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"),
    *("data/README.md", "examples/README.md"),
)
"""Files outside of docs/ that the site has. README.md is its first page."""

_LINK = re.compile(r"\[([^]\n]*)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")
_NAMED_BLOCK = re.compile(r"^```python \w+$", re.MULTILINE)
"""The beginning of a block of Python with a name, by which a test runs it. MkDocs would not see a block there."""


def place(path: str) -> str:
    """Return where the site has a file of the repository."""
    return "index.md" if path == "README.md" else path.removeprefix("docs/")


def on_files(files: Files, config: Any) -> Files:
    """Add the files that are not in docs/."""
    for name in OUTSIDE:
        files.append(File.generated(config, place(name), content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links lead to the pages of the site. Source files have none: their paths are shown instead.

    The list of examples has their programs below it.
    """
    here = page.file.src_uri
    source = next((name for name in OUTSIDE if place(name) == here), f"docs/{here}")
    examples = source == "examples/README.md"

    def moved(link: re.Match[str]) -> str:
        label, file, anchor = link[1], link[2], link[3] or ""
        target = normpath(join(dirname(source), file))
        if examples and target.endswith(".py"):
            return label if "/elsewhere/" in target else f"[{label}](#{label})"
        if target in OUTSIDE or target.startswith("docs/"):
            return f"[{label}]({relpath(place(target), dirname(here) or '.')}{anchor})"
        return f"{label} (`{target}`)"

    programs = sorted((ROOT / "examples").glob("*.py")) if examples else []
    sections = (f"\n## {each.stem}\n\n```python\n{each.read_text(encoding='utf-8')}```\n" for each in programs)
    return _LINK.sub(moved, _NAMED_BLOCK.sub("```python", markdown)) + "".join(sections)
