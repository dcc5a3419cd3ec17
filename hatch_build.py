"""A hook of Hatchling: the README as package pages show it, where links relative to the repository lead nowhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"\[([^]\n]+)\]\((?!\w+:)([^)\s]+)\)")


def package_page(readme: str, source: str | None, version: str) -> str:
    """Return the text with absolute links into the repository `source`, or with the labels of these links alone."""
    if source is None:
        return (
            _LINK.sub(r"\1", readme) + "\nThe pages named here are in the folder `docs` of the source distribution.\n"
        )
    return _LINK.sub(rf"[\1]({source}/blob/v{version}/\2)", readme.replace("](#", "](README.md#"))


class PackagePage(MetadataHookInterface):
    """Gives the project its readme."""

    def update(self, metadata: dict[str, Any]) -> None:
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = package_page(readme, metadata.get("urls", {}).get("Source"), metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
