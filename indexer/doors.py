"""Doors: what the parts of likewise and packages of others give the engine, found by name when it is needed.

The engine imports no part. It names what it wants, and gets None if the part is missing. A table
names the places in this wheel, because reading entry points would take 10 to 20 ms at each start. Names that are not in
the table are looked for among the entry points of other packages.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from typing import Any, Literal

from indexer.errors import BadInput, to_install

Group = Literal["commands", "encoders", "engines", "parts", "readers"]
"""The groups of doors, each with what its doors give.

* `commands`: click commands, by name.
* `encoders`: loaders of encoders, by the scheme of a model's name.
* `engines`: engines of stores, by the scheme of an address.
* `readers`: functions that read a file, by its format.
* `parts`: the door of a part of likewise, by the name of the part.

Packages of others add to all groups except `parts`, by the entry points `likewise.GROUP`.
"""

_FORMATS = (
    *("canvas", "content_lines", "docx", "eml", "epub", "html", "ipynb", "odf", "org"),
    *("pdf", "pptx", "rst", "rtf", "xls", "xlsx", "xml"),
)
"""Formats that a module of the same name in the part `readers` reads."""

TABLE: Mapping[Group, Mapping[str, str]] = {
    "commands": {
        "cache": "likewise.cache.commands.cache:cache_command",
        "check": "likewise.shell.commands.check:check",
        "compact": "likewise.shell.commands.compact:compact",
        "compare": "likewise.evaluation.commands.compare:compare",
        "compile": "likewise.speed.commands.compile:compile_command",
        "copy": "likewise.shell.commands.copy:copy_command",
        "doctor": "likewise.shell.commands.doctor:doctor",
        "embed": "likewise.inspection.commands.embed:embed",
        "evaluate": "likewise.evaluation.commands.evaluate:evaluate",
        "export": "likewise.inspection.commands.export:export",
        "index": "likewise.shell.commands.index:index_command",
        "info": "likewise.shell.commands.info:info",
        "list": "likewise.shell.commands.list:list_command",
        "map": "likewise.map.commands.map:map_command",
        "mcp": "likewise.service.commands.mcp:mcp",
        "migrate": "likewise.migration.commands.migrate:migrate",
        "model": "likewise.inspection.commands.model:model",
        "open": "likewise.service.commands.open:open_command",
        "pairs": "likewise.evaluation.commands.pairs:pairs",
        "remove": "likewise.shell.commands.remove:remove",
        "search": "likewise.shell.commands.search:search",
        "serve": "likewise.service.commands.serve:serve",
        "show": "likewise.shell.commands.show:show",
        "similar": "likewise.shell.commands.similar:similar",
        "status": "likewise.shell.commands.status:status",
        "tokens": "likewise.inspection.commands.tokens:tokens",
        "tune": "likewise.evaluation.commands.tune:tune",
        "update": "likewise.shell.commands.update:update",
        "watch": "likewise.watch.commands.watch:watch",
    },
    "encoders": dict.fromkeys(("http", "https"), "likewise.endpoints.loader:ENDPOINTS"),
    "engines": dict.fromkeys(("postgresql", "postgres"), "likewise.postgres.door:open_engine"),
    "parts": {
        "federation": "likewise.federation.several_indexes",
        "map": "likewise.map.door",
        "readers": "likewise.readers",
        "service": "likewise.service.browse",
        "cache": "likewise.cache.user_cache:opened",
        "workers": "likewise.workers.named",
        "speed": "likewise.speed.door:SPEED",
    },
    "readers": {
        **{name: f"likewise.readers.formats.{name}:read" for name in _FORMATS},
        "markdown": "indexer.sources.files.markdown:read",
    },
}
"""The places in this wheel, as MODULE:NAME. The engine itself has only the reader of Markdown."""


def find(group: Group, name: str) -> Any | None:
    """Return what a part of likewise, or a package of others, gives under a name; None if none of them is there.

    Raises:
        BadInput: two packages give different things under this name.
        ImportError: the part is there, and a package that it needs is not.
    """
    if (place := TABLE[group].get(name)) is None:
        place = None if group == "parts" else _entry_points(group).get(name)
        return None if place is None else _load(place)
    try:
        return _load(place)
    except ModuleNotFoundError as error:
        module = place.partition(":")[0]
        if error.name and f"{module}.".startswith(f"{error.name}."):
            return None
        raise


def require(group: Group, name: str, purpose: str) -> Any:
    """Return what `find` returns. Raises BadInput with what to install if the part is missing.

    Args:
        purpose: what needs the part, as the subject of a sentence: "an index in a database".
    """
    if (found := find(group, name)) is None:
        raise BadInput(f"{purpose} needs a part of likewise that is not installed ({name}): {to_install()}")
    return found


def has_part(part: str) -> bool:
    """Return whether a part of likewise is installed. Nothing of the part is imported."""
    place = find_spec(f"likewise.{part}")
    return place is not None and place.origin is not None  # a folder without Python files has no origin


def is_given(group: Group, name: str) -> bool:
    """Return whether a part of this wheel, which may be missing, or a package of others gives something under a name.

    Nothing is imported.
    """
    return name in TABLE[group] or name in _entry_points(group)


def names(group: Group) -> list[str]:
    """Return the names under which parts of likewise and packages of others give something."""
    return [*TABLE[group], *(name for name in sorted(_entry_points(group)) if name not in TABLE[group])]


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(module)) if name else import_module(module)


@cache
def _entry_points(group: Group) -> Mapping[str, str]:
    """Return the places that packages of others name, by their names. Raises BadInput if two packages share a name."""
    from importlib.metadata import entry_points

    places: dict[str, str] = {}
    for point in entry_points(group=f"likewise.{group}"):
        if places.setdefault(point.name, point.value) != point.value:
            raise BadInput(
                f"two packages give {point.name!r} to likewise.{group} ({places[point.name]} and {point.value}): "
                "uninstall one of them"
            )
    return places
