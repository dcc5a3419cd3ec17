"""The rooms and the import arrow, drawn from the source: who may import what, and what may stand where."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from drawn_parts import PARTS, PUBLIC_PATHS
from source_imports import FACES, FILES, MODULES, ROOT, VALUES, edges, file_imports, imports, module_of, tree

COMMANDS = tuple(f"likewise/{part}/commands/" for part in PARTS)
# Package: the files, or folders, that may import it.
HOMES = {
    "torch": ("indexer/encoders/", "likewise/inspection/", "likewise/speed/"),
    "transformers": ("indexer/encoders/", "likewise/speed/"),
    "sentence_transformers": ("indexer/encoders/",),
    "tokenizers": ("indexer/encoders/", "likewise/inspection/tokens.py"),
    "safetensors": (
        "indexer/encoders/",
        "likewise/inspection/model_card.py",
        "likewise/speed/native.py",
        "likewise/map/file.py",
    ),
    "openvino": ("indexer/encoders/", "likewise/speed/compilation/"),
    "matplotlib": ("likewise/inspection/", "likewise/evaluation/"),
    "faiss": ("indexer/stores/local/segments/faiss_segment.py", "indexer/stores/pairs.py"),
    "tantivy": ("indexer/stores/words/analysis.py", "indexer/stores/words/tantivy_index.py"),
    "py3langid": ("indexer/languages/detect.py",),
    "urllib3": ("likewise/endpoints/endpoint.py",),
    "sqlite_utils": ("indexer/stores/local/catalog/database.py",),
    "sqlite3": ("indexer/stores/local/", "likewise/cache/vector_cache.py"),
    "psycopg": ("likewise/postgres/",),
    "pgvector": ("likewise/postgres/",),
    "lark": ("indexer/filters/",),
    "click": ("likewise/shell/", *COMMANDS),
    "rich": ("likewise/shell/", *COMMANDS),
    "umap": ("likewise/map/projection.py",),
    "sklearn": ("likewise/map/regions.py",),
    "pyarrow": ("likewise/inspection/commands/export.py",),
    "readline": ("likewise/shell/hits/prompt.py",),
    "watchfiles": ("likewise/watch/watch.py", "likewise/watch/commands/watch.py"),
    "httpx": ("likewise/client/client.py",),
    "starlette": ("likewise/service/http/",),
    "uvicorn": ("likewise/service/http/run.py", "likewise/service/http/connections.py"),
    "ray": ("likewise/workers/ray_workers.py",),
    "msgspec": ("likewise/service/http/json_response.py",),
    "prometheus_client": ("likewise/service/http/metrics.py",),
    "pydantic": ("likewise/service/http/", "likewise/service/mcp.py", "likewise/adapters/langchain.py"),
    "mcp": ("likewise/service/mcp.py", "likewise/service/mcp_server.py", "likewise/service/http/app.py"),
    "langchain_core": ("likewise/adapters/langchain.py",),
    "llama_index": ("likewise/adapters/llamaindex.py",),
    "haystack": ("likewise/adapters/haystack.py",),
    "mteb": ("likewise/adapters/mteb.py",),
    "pickle": (),
    "marshal": (),
    "shelve": (),
    "dill": (),
    "joblib": (),
}
HOMES_OF_SQL = ("indexer/stores/", "likewise/postgres/", "likewise/cache/vector_cache.py")
HEAVY = {"torch", "transformers", "sentence_transformers", "openvino"}
SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s+(OR\s+\w+\s+)?INTO|DELETE\s+FROM|UPDATE\s+\w+\s+SET|CREATE\s+(TABLE|INDEX)|PRAGMA\s+\w+)",
    re.DOTALL,
)


def at_import(module: ast.Module) -> Iterator[str]:
    """Return the imports of a module when it is imported: statements outside functions that are not only for type
    checkers."""
    waiting: list[ast.stmt] = list(module.body)
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield from (name for name, _ in imports(statement))
        elif isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            waiting += statement.orelse
        elif isinstance(statement, ast.If | ast.Try | ast.With | ast.ClassDef):
            waiting += [child for child in ast.walk(statement) if isinstance(child, ast.Import | ast.ImportFrom)]


def under(file: Path, homes: tuple[str, ...]) -> bool:
    return any(file.as_posix() == home or file.as_posix().startswith(home) for home in homes if home)


def test_there_is_something_to_look_at() -> None:
    assert len(FILES) > 50
    assert {path.parts[0] for path in FILES} == {"indexer", "likewise", "search"}


def test_the_arrow_goes_from_likewise_to_search_to_indexer_and_never_back() -> None:
    arrows = {
        (file.parts[0], name.partition(".")[0])
        for file in FILES
        if module_of(file) not in PUBLIC_PATHS
        for name, _ in file_imports(file)
        if name.partition(".")[0] in ("indexer", "likewise", "search")
    }
    own = {(room, room) for room in ("indexer", "likewise", "search")}
    assert arrows - own == {("likewise", "indexer"), ("likewise", "search"), ("search", "indexer")}


@pytest.mark.parametrize("package", HOMES)
def test_a_package_is_imported_only_where_it_lives(package: str) -> None:
    found = {file for file in FILES for name, _ in file_imports(file) if name.split(".")[0] == package}
    assert [str(file) for file in found if not under(file, HOMES[package])] == []


ENGINE_RULES = (
    "port",
    "reading.store",
    "reading.snapshot",
    "addresses.open",
    "addresses.life_cycle",
    "addresses.copying",
    "addresses.side_index",
    "words.analysis",
    "words.exact",
    "fields.field_types",
    "fields.flatten",
    "hashes",
    "move",
    "pairs",
    "temporary",
    "vectors",
)
"""Files of the stores that the rest may import: the interface, and rules that every engine follows."""

ENGINE_WORDS = re.compile(
    r"catalog\.db|\.faiss\b|\bLOCK\b|\bsqlite|\bfaiss\b|\btantivy\b|Local(?:Engine|S|V|W)|\bpsycopg|Postgres[ESVW]"
)


def test_nothing_outside_of_the_stores_and_the_cache_knows_an_engine() -> None:
    allowed = {f"indexer.stores.{name}" for name in ENGINE_RULES}
    found = []
    for file in FILES:
        if under(file, HOMES_OF_SQL):
            continue
        modules = {module for module in edges(file) if module.startswith("indexer.stores")}
        found += [(str(file), module) for module in modules - allowed]
        documented = docstrings(tree(file))
        for node in ast.walk(tree(file)):
            text = node.id if isinstance(node, ast.Name) else node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and id(node) not in documented and ENGINE_WORDS.search(text):
                found.append((str(file), text))
    assert found == []
    assert ENGINE_WORDS.search("LocalStore")
    assert ENGINE_WORDS.search("x.index/catalog.db")


def test_one_file_of_the_stores_names_the_engines() -> None:
    """The files of an engine are in a folder of its own; of all others only addresses/open.py imports that of a folder,
    and finds others by a door."""
    importers = {"indexer/stores/local/": ["indexer/stores/addresses/open.py"], "likewise/postgres/": []}
    for home, importing in importers.items():
        engine = home.replace("/", ".")
        found = [
            (str(file), module)
            for file in FILES
            if not under(file, (home,))
            for module in edges(file)
            if f"{module}.".startswith(engine)
        ]
        assert found == [(importer, f"{engine}engine") for importer in importing]


def test_vectors_that_a_caller_brings_are_validated_in_one_file() -> None:
    checks = {"stored_rows", "unit_rows"}
    found = {
        file.as_posix()
        for file in FILES
        if file.parts[0] == "indexer"
        for name, statement in file_imports(file)
        if name == "indexer.stores.vectors" and isinstance(statement, ast.ImportFrom)
        if checks & {alias.name for alias in statement.names}
    }
    assert found == {"indexer/indexing/batches.py"}


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Sets of modules each of which reaches every other: strongly connected, more than one."""
    reach = {module: set(near) for module, near in graph.items()}
    for middle in graph:
        for module in graph:
            if middle in reach[module]:
                reach[module] |= reach[middle]
    joined = {frozenset({other for other in reach[module] if module in reach[other]}) for module in graph}
    return [set(circle) for circle in joined if len(circle) > 1]


def test_no_import_goes_in_a_circle() -> None:
    assert circles({module: edges(file) for module, file in MODULES.items()}) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]


def pairs(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Folders that import each other, given the imports of modules; a folder's own files, without its sub-folders.

    Public paths and the `__init__` of `FACES` only give names of other files."""
    faces = {*PUBLIC_PATHS, *FACES}
    folders = {module: MODULES[module].parent.as_posix() if module in MODULES else module[0] for module in graph}
    imports_of = {start: ends for start, ends in graph.items() if start not in faces}
    arrows = {(folders[start], folders[end]) for start, ends in imports_of.items() for end in ends - VALUES}
    return sorted((one, other) for one, other in arrows if one < other and (other, one) in arrows)


def test_no_two_folders_import_each_other() -> None:
    assert pairs({module: set(edges(file)) for module, file in MODULES.items()}) == []
    assert pairs({"a1": {"b1"}, "b1": set(), "b2": {"a2", "c1"}, "a2": set(), "c1": set()}) == [("a", "b")]


def test_every_file_of_the_commands_is_a_command() -> None:
    from indexer import doors
    from likewise.shell.program import COMMANDS

    commands = {file.stem for file in FILES if file.parent.name == "commands"}
    assert commands == {*COMMANDS, "__init__"}
    assert set(doors.TABLE["commands"]) == set(COMMANDS)


def test_heavy_packages_are_imported_when_they_are_needed() -> None:
    """By a package's face or by a file that is always read they are imported inside functions."""
    for file in FILES:
        of_the_shell = {"shell", "commands"} & set(file.parts)
        if of_the_shell or file.name in ("__init__.py", "port.py", "recipe.py", "registry.py"):
            assert not HEAVY & {name.split(".")[0] for name in at_import(tree(file))}, file


def test_no_import_of_a_star_and_none_by_a_relative_path() -> None:
    for file in FILES:
        for _, statement in file_imports(file):
            if isinstance(statement, ast.ImportFrom) and file != Path("likewise/__init__.py"):
                assert all(alias.name != "*" for alias in statement.names), file


def docstrings(module: ast.Module) -> set[int]:
    """The ids of the strings that are documentation, a bare string after an assignment too."""
    return {
        id(statement.value)
        for node in ast.walk(module)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for statement in node.body
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    }


def test_statements_of_sql_stand_in_the_stores_and_the_cache() -> None:
    found = []
    for file in FILES:
        if under(file, HOMES_OF_SQL):
            continue
        documented = docstrings(tree(file))
        found += [
            (str(file), node.lineno)
            for node in ast.walk(tree(file))
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documented
            and SQL.search(node.value)
        ]
    assert found == []
    assert SQL.search("SELECT name\n FROM setting")
    assert SQL.search("INSERT OR REPLACE INTO setting")


def test_nothing_is_evaluated_unpickled_or_swallowed() -> None:
    for file in FILES:
        lines = (ROOT / file).read_text().splitlines()
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), (file, node.lineno)
            if isinstance(node, ast.ExceptHandler):
                assert node.type is not None, (file, node.lineno)
                if isinstance(node.body[0], ast.Pass):  # then it says why
                    assert " # " in lines[node.body[0].lineno - 1], (file, node.lineno)
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert ast.unparse(node.value) == "False", file


def test_every_file_says_what_is_in_it_and_has_a_name_that_says_something() -> None:
    for file in FILES:
        assert ast.get_docstring(tree(file)), file
        assert not {"utils", "base", "manager", "factory", "helpers"} & set(file.stem.split("_")), file


def test_every_public_name_can_be_had_and_is_the_same_in_all_packages() -> None:
    import indexer
    import likewise
    import search

    for package in (indexer, search):
        for name in package.__all__:
            value = getattr(package, name)
            assert name in ("Filter", "Mode") or value.__name__ == name  # those two are aliases of types
            assert getattr(likewise, name) is value
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            _ = package.nothing
    assert {"Document", "Index", "Query", "Searcher", "load_encoder"} <= set(likewise.__all__)
    assert set(likewise.__all__) == {*indexer.__all__, *search.__all__}
    assert set(likewise.__all__) <= set(dir(likewise))


@pytest.mark.parametrize("package_name", FACES)
def test_the_names_for_type_checkers_are_those_of_the_table(package_name: str) -> None:
    package = importlib.import_module(package_name)
    source = (ROOT / package_name.replace(".", "/") / "__init__.py").read_text()
    imported = {
        name.name: node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module not in ("__future__", "typing", "indexer.lazy_names")
        for name in node.names
    }
    assert sorted(imported) == package.__all__
    for name, module in imported.items():
        assert getattr(package, name) is getattr(importlib.import_module(str(module)), name)
