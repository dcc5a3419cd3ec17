"""Every piece of advice in the program is followed: the command that a message names leads out of the message.

A piece of advice is a string in the source that names a command or an option. Each stands in ADVICE with a walk that
provokes the message and runs what it says, or in ELSEWHERE with the reason why it is not walked here. A new piece of
advice fails the test until it is in one of them.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from messages import sentences

from indexer import Document, Index


@dataclass(frozen=True)
class Walk:
    """A message, and the way out of it.

    Attributes:
        provoke: the command line that prints the message.
        says: what to find in it; the groups are what is followed.
        follow: the command lines to run then, with {0} for the first group; all of them end with 0.
        again: the command line that does not print the message any more; None for `provoke`, empty for none.
        before: command lines, or changes to the working folder, that make the message possible.
        stdin: what the commands of `before` read.
    """

    provoke: str
    says: str
    follow: tuple[str, ...]
    again: str | None = None
    before: tuple[str | Callable[[], object], ...] = ()
    stdin: str = ""


def write(path: str, text: str) -> Callable[[], object]:
    return lambda: Path(path).write_text(text)


def damage(pattern: str) -> Callable[[], object]:
    def overwrite() -> None:
        (file,) = Path().glob(pattern)
        file.write_bytes(b"x" * 5000)

    return overwrite


def unmark() -> None:
    """Make the index one from before the first release."""
    with closing(sqlite3.connect("x.index/catalog.db")) as catalog:
        catalog.execute("PRAGMA application_id = 0")


def own_vectors() -> None:
    with Index.create("v.index", dimensions=3) as index:
        index.add([Document("moon", "The moon is full.")], vectors=np.eye(3)[:1])


def delete(path: str) -> Callable[[], object]:
    return lambda: shutil.rmtree(path) if Path(path).is_dir() else Path(path).unlink()


RECORD = '{"id": "r", "text": "the moon is full"}\n'
FROM_STDIN = "index s.index -"

MANY_CONDITIONS = "frogs " + " ".join(f"-w{number}" for number in range(65))

ADVICE = {
    " (--literal)": (
        Walk(
            f"search x.index '{MANY_CONDITIONS}'",
            r"65 conditions, and 64 is the limit: .* as it stands \((--literal)\)",
            (f"search x.index '{MANY_CONDITIONS}' {{0}}",),
            f"search x.index '{MANY_CONDITIONS}' --literal",
        ),
    ),
    "; --literal asks for the text as it stands": (
        Walk(
            "search x.index 'frogs -moon'",
            r"read as conditions: -moon; (--literal) asks",
            ("search x.index 'frogs -moon' {0}",),
            "search x.index 'frogs -moon' --literal",
        ),
    ),
    "no hits: none reaches the minimum; lower --min-score (a cosine is at most 1)": (
        Walk(
            "search x.index frogs --min-score 2",
            r"lower (--min-score)",
            ("likewise search x.index frogs {0} 0",),
            "search x.index frogs --min-score 0",
        ),
    ),
    "--index {}": (
        Walk(
            "search x.index y.index frogs",
            "to ask several, write (--index x.index --index y.index)",
            ("search {0} frogs",),
            "search --index x.index --index y.index frogs",
            before=("index y.index notes",),
        ),
    ),
    "; make one with: likewise index {} {}": (
        Walk("info new.index", r"(likewise index \S+) SOURCE", ("{0} notes",)),
        Walk("search new.index", r"(likewise index \S+) SOURCE", ("{0} notes",), "search new.index frogs"),
        Walk("info notes", r"make one with: (likewise index \S+ \S+)\n", ("{0}",), "info notes.index"),
        Walk(
            "info notes/pond.txt", r"make one with: (likewise index \S+ \S+)\n", ("{0}",), "info notes/pond.txt.index"
        ),
    ),
    ": likewise index {} SOURCE": (
        Walk(
            "search x.index frogs",
            r"move the folder away and index again: (likewise index \S+) SOURCE",
            ("{0} notes",),
            before=(damage("x.index/catalog.db"), "search x.index frogs"),
        ),
        Walk(
            "search x.index frogs",
            r"move the folder away and index again: (likewise index \S+) SOURCE",
            ("{0} notes",),
            before=(delete("x.index/catalog.db"),),
        ),
    ),
    " (likewise index {} SOURCE --rebuild replaces it)": (
        Walk(
            "search x.index frogs",
            r"\((likewise index \S+) SOURCE (--rebuild) replaces it\)",
            ("{0} notes {1}",),
            before=(unmark,),
        ),
    ),
    "{} {} in this folder or above it: make one here with likewise index SOURCE, or name the INDEX first": (
        Walk("search frogs", r"make one here with (likewise index) SOURCE", ("{0} notes",)),
    ),
    "likewise {} {} SOURCE..., or likewise update {} to read its recorded sources again": (
        Walk(
            "index x.index",
            r"(likewise index x.index) SOURCE..., or (likewise update x.index) to",
            ("{0} notes", "{1}"),
            "",
        ),
    ),
    "{}; --repair rebuilds what can be rebuilt": (
        Walk(
            "check x.index",
            "(--repair) rebuilds",
            ("likewise check x.index {0}",),
            before=(damage("x.index/segments/*.faiss"),),
        ),
    ),
    "no SOURCE is recorded: read one with likewise index {} SOURCE": (
        Walk("status s.index", r"with (likewise index s.index) SOURCE", ("{0} notes",), before=(FROM_STDIN,)),
    ),
    "{}: no SOURCE is recorded; read one with likewise index {} SOURCE": (
        Walk("update s.index", r"with (likewise index s.index) SOURCE", ("{0} notes",), before=(FROM_STDIN,)),
    ),
    "{} --prune{} reads the changes and removes what is gone": (
        Walk(
            "status x.index", r"(likewise update x.index --prune) reads", ("{0}",), before=(delete("notes/pond.txt"),)
        ),
    ),
    "likewise update {}": (
        Walk("status x.index", r"(likewise update x.index) reads", ("{0}",), before=(write("notes/new.txt", "new"),)),
    ),
    "{} --moved OLD NEW names the new place of what is missing, and --forget SOURCE leaves it out": (
        Walk(
            "status x.index",
            r"(likewise update x.index) --moved OLD NEW names .* and (--forget) SOURCE leaves",
            ("{0} {1} more",),
            before=("index x.index more", delete("more")),
        ),
        Walk(
            "status x.index",
            r"(likewise update x.index --moved) OLD NEW names",
            ("{0} more most",),
            before=("index x.index more", lambda: Path("more").rename("most")),
        ),
    ),
    "{}, name the new place of what was moved with --moved OLD NEW, or leave out what is gone for good: {}": (
        Walk(
            "update x.index",
            r"with (--moved) OLD NEW",
            ("likewise update x.index {0} more most",),
            before=("index x.index more", lambda: Path("more").rename("most")),
        ),
    ),
    "likewise update {} --forget SOURCE": (
        Walk(
            "update x.index",
            r"(likewise update x.index --forget) SOURCE",
            ("{0} more",),
            before=("index x.index more", delete("more")),
        ),
    ),
    "--prune{} removes {}": (
        Walk(
            "index x.index notes",
            "(--prune) removes it",
            ("likewise index x.index notes {0}",),
            before=(delete("notes/a.md"),),
        ),
    ),
    " --yes": (
        Walk(
            "index x.index notes",
            "(--prune --yes) removes them",
            ("likewise index x.index notes {0}",),
            before=(delete("notes/a.md"), delete("notes/pond.txt")),
        ),
        Walk(
            "status x.index",
            r"(likewise update x.index --prune --yes) reads",
            ("{0}",),
            before=(delete("notes/a.md"), delete("notes/pond.txt")),
        ),
    ),
    "skipped: {}{}; likewise info {} --ledger skipped lists all": (
        Walk(
            "index x.index notes",
            "(--ledger skipped) lists all",
            ("info x.index {0}",),
            before=(write("notes/picture.png", "\0"),),
        ),
    ),
    "{} {}: likewise info {} --ledger noted": (),  # needs a scanned page; --ledger is followed below
    "pruning would remove {} of {} documents, more than half: nothing was pruned; add --yes if that is meant": (
        Walk(
            "index x.index notes --prune",
            "add (--yes)",
            ("likewise index x.index notes --prune {0}",),
            before=(delete("notes/a.md"), delete("notes/pond.txt")),
        ),
    ),
    "such as {}: likewise remove {} URI... removes them, --no-ignore reads their files again": (
        Walk(
            "index x.index notes",
            r"such as (\S+): (likewise remove x.index) URI",
            ("{1} {0}",),
            before=(write("notes/.likewiseignore", "pond.txt\n"),),
        ),
        Walk(
            "index x.index notes",
            r"(--no-ignore) reads",
            ("likewise index x.index notes {0}",),
            "",
            before=(write("notes/.likewiseignore", "pond.txt\n"),),
        ),
    ),
    "likewise info {} --ledger failed": (
        Walk(
            "index x.index notes",
            r"(likewise info x.index --ledger failed)",
            ("{0}",),
            "",
            before=(write("notes/bad.pdf", "not a PDF"),),
        ),
    ),
    "--prune would remove {}": (
        Walk(
            "index x.index notes --prune --dry-run",
            r"x.index: (--prune) would remove 1 of 3 documents",
            ("index x.index notes {0}",),
            before=(delete("notes/a.md"),),
        ),
    ),
    "add --prune": (
        Walk("index x.index notes --dry-run", ": add (--prune)", ("index x.index notes --dry-run {0}",), ""),
    ),
    "leave out --rebuild and --stream": (),  # with the sentence that it ends
    "--dry-run prints what --prune would remove: {}": (
        Walk(
            "index x.index notes --prune --dry-run --rebuild",
            "(leave out --rebuild)",
            ("index x.index notes --prune --dry-run",),
            "",
        ),
    ),
    "likewise status {} says why": (
        Walk(
            "index x.index notes",
            r"1 failed as before: (likewise status x.index) says why",
            ("{0}",),
            "",
            before=(write("notes/bad.pdf", "not a PDF"), "index x.index notes"),
        ),
    ),
    "and {} more (--json names all)": (
        Walk(
            "info s.index",
            "and 2 more [(](--json) names all",
            ("likewise info s.index {0}",),
            "",
            before=(FROM_STDIN,),
            stdin='{"id": "r", "text": "moon", ' + ", ".join(f'"f{number}": 1' for number in range(12)) + "}\n",
        ),
    ),
    "{} MB, over the limit of {} MB: raise --max-file-mb": (
        Walk(
            "info x.index --ledger skipped",
            "raise (--max-file-mb)",
            ("likewise index x.index notes {0} 1",),
            before=(write("notes/big.txt", "frogs " * 1000), "index x.index notes --max-file-mb 0.002"),
        ),
    ),
    "ignored by default: --no-ignore reads it": (
        Walk(
            "info x.index --ledger skipped",
            "(--no-ignore) reads it",
            ("likewise index x.index notes {0}",),
            before=(write("notes/uv.lock", "a lock"), "index x.index notes"),
        ),
    ),
    'has no text: give it a "text", or name the member with --text-field': (
        Walk(
            "info r.index --ledger",
            "with (--text-field)",
            ("likewise index r.index r.jsonl {0} words",),
            before=(write("r.jsonl", RECORD + '{"id": "b", "words": "b"}\n'), "index r.index r.jsonl"),
        ),
    ),
    "; likewise list shows the whole uri of each": (
        Walk("remove x.index bread.md", "(likewise list) shows the whole uri", ("{0} x.index",), ""),
    ),
    "; likewise list shows what there is, and show also takes the path of a table or a mailbox": (
        Walk("show x.index nothing", "(likewise list) shows", ("{0} x.index",), ""),
    ),
    " (--mode words)": (
        Walk("search v.index moon", "(--mode words)", ("likewise search v.index moon {0}",), "", before=(own_vectors,)),
    ),
    "{}: was made with {} {} and not {}: leave {} out, or add --rebuild": (
        Walk(
            "index x.index notes --max-tokens 16",
            "or add (--rebuild)",
            ("likewise index x.index notes --max-tokens 16 {0}",),
        ),
        Walk("index x.index notes --max-tokens 16", "leave --max-tokens out", ("likewise index x.index notes",), ""),
    ),
    "more than half: nothing was removed; if that is meant, run it again with --yes": (
        Walk(
            "remove x.index --where 'exists uri'",
            "again with (--yes)",
            ("likewise remove x.index --where 'exists uri' {0}",),
        ),
    ),
    "{} is a folder but not an index; likewise index NAME.index {} makes one of it": (
        Walk(
            "search notes 'two words'",
            "(likewise index NAME.index notes) makes",
            ("{0}",),
            "search NAME.index 'two words'",
            before=("index more",),
        ),
    ),
    "{}: {} cannot be set in a file: give --trust-remote-code each time it is meant": (
        Walk(
            "search x.index frogs",
            "give (--trust-remote-code)",
            ("likewise show x.index notes/pond.txt",),
            "",
            before=(write(".likewise.toml", "trust_remote_code = true\n"),),
        ),
    ),
    "--stream prints what can be searched now, but --rebuild replaces the index at its end": (
        Walk(
            "index x.index notes --stream --rebuild",
            "leave one of them out",
            ("likewise index x.index notes --stream",),
            "",
        ),
    ),
    ": likewise --help --all names all commands": (Walk("frobnicate", "(likewise --help --all) names", ("{0}",), ""),),
    ': to ask a question, write likewise search "{}"': (
        Walk("'where are frogs'", '(likewise search "where are frogs")', ("{0}",), "", before=("index notes",)),
    ),
    "--json and -l are different outputs: choose one": (
        Walk("search x.index frogs --json -l", "choose one", ("likewise search x.index frogs -l",), ""),
    ),
    "give either URIs or --where FILTER": (
        Walk("remove x.index", "(--where) FILTER", ("likewise remove x.index {0} 'title = \"pond\"'",), ""),
    ),
}
"""Walks by a part of the message, as it is in the source."""

ENDPOINT = "needs an endpoint: tests/parts/endpoints/test_remote.py follows it"
MODEL = "needs two models: tests/parts/migration/test_migrate.py and test_migrate_command.py follow it"
DATABASE = "needs a database: tests/parts/postgres/test_database_errors.py and test_copy.py follow it"
INSIDE = "needs a model whose inside is looked at: the message names the options that were left out or contradict"
DAMAGE = "needs damage of one kind: tests/engine/crash/test_damage.py makes it and repairs it"
RECORDS = "a variant of the advice on --text-field and --max-file-mb above, for tables, members and missing columns"
USAGE = "refuses options that contradict, and names those to leave out or to add"
SERVICE = "starts a service: tests/parts/service/test_run.py and test_open_command.py"

ELSEWHERE = {
    "likewise/endpoints/remote.py": ENDPOINT,
    "likewise/endpoints/named_hosts.py": ENDPOINT,
    "likewise/endpoints/tokenizer_file.py": ENDPOINT,
    "indexer/encoders/recipes/locate.py": "needs a model that has moved, or the hub",
    "indexer/encoders/recipes/notes.py": MODEL,
    "indexer/encoders/torch/automodel.py": MODEL,
    "indexer/indexing/embedding.py": USAGE,
    "likewise/inspection": INSIDE,
    "likewise/cache/deferred.py": MODEL,
    "likewise/cache/vector_cache.py": "needs a damaged cache: tests/parts/cache/test_vector_cache.py",
    "likewise/workers/named.py": "needs a run of minutes: tests/parts/workers/test_quicker.py",
    "indexer/stores/reading/field_values.py": "needs a damaged value: tests/engine/stores/test_store_damage.py",
    "indexer/exchange.py": "names no way out: the record is not from an export",
    "indexer/indexing/identity.py": MODEL,
    "indexer/indexing/ingest.py": "needs vectors of another recipe: tests/engine/indexing/test_own_vectors.py",
    "likewise/shell/indexing/rebuild.py": MODEL,
    "indexer/languages/questions.py": "needs a model of English: tests/engine/languages/test_question_language.py",
    "indexer/languages/notes.py": "needs texts in two languages: tests/engine/languages/test_languages.py",
    "indexer/ledger.py": RECORDS,
    "likewise/migration": MODEL,
    "indexer/stores/addresses/side_index.py": MODEL,
    "indexer/stores/reading/document_rows.py": DAMAGE,
    "indexer/stores/vectors.py": DAMAGE,
    "indexer/stores/local/check.py": DAMAGE,
    "indexer/stores/local/engine.py": MODEL,
    "indexer/stores/local/disk/drafts.py": "needs a killed command: tests/engine/stores/test_drafts.py follows it",
    "indexer/stores/local/catalog/generation.py": DAMAGE,
    "indexer/stores/local/disk/lock.py": "needs a second writer: tests/engine/stores/test_lock.py",
    "likewise/postgres": DATABASE,
    "likewise/map/door.py": "computes a map, which takes seconds: tests/parts/shell/test_check_command.py",
    "likewise/cache/commands/cache.py": USAGE,
    "likewise/evaluation/commands/compare.py": INSIDE,
    "likewise/shell/commands/copy.py": DATABASE,
    "likewise/shell/commands/doctor.py": "loads torch: tests/parts/shell/test_doctor_command.py",
    "likewise/inspection/commands/embed.py": INSIDE,
    "likewise/evaluation/commands/evaluate.py": USAGE,
    "likewise/inspection/commands/export.py": "computes a map: tests/parts/map/test_map_command.py",
    "likewise/shell/arguments/workers.py": USAGE,
    "likewise/shell/commands/index.py": USAGE,
    "likewise/shell/commands/info.py": MODEL,
    "likewise/migration/commands/migrate.py": MODEL,
    "likewise/evaluation/commands/pairs.py": INSIDE,
    "likewise/service/commands/open.py": SERVICE,
    "likewise/service/commands/serve.py": SERVICE,
    "likewise/shell/commands/show.py": USAGE,
    "likewise/shell/program.py": "the help of a terminal: tests/parts/shell/test_commands.py",
    "likewise/shell/commands/update.py": USAGE,
    "likewise/shell/commands/status.py": "a list that is cut: --json is followed above for info",
    "likewise/inspection/commands/tokens.py": INSIDE,
    "likewise/watch/commands/watch.py": USAGE,
    "likewise/shell/indexing/vector_options.py": ENDPOINT,
    "likewise/service/http/run.py": SERVICE,
}
"""Files whose other advice is not walked here, and why."""


@pytest.fixture
def world(here: Path, likewise: Callable[..., Any]) -> None:
    """Three notes with an index, and a folder that no index has."""
    for name, text in (
        ("notes/pond.txt", "frogs live in the pond"),
        ("notes/a.md", "# Moon\n\nThe moon is full."),
        ("notes/tea.txt", "green tea"),
        ("more/sea.txt", "the sea is deep"),
    ):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(text)
    assert likewise("index", "x.index", "notes").code == 0


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(
    "walk",
    [
        pytest.param(walk, marks=pytest.mark.slow if number % 4 else [])
        for number, walk in enumerate(walk for walks in ADVICE.values() for walk in walks)
    ],
    ids=lambda walk: walk.provoke,
)
def test_advice_leads_out_of_the_message(likewise: Callable[..., Any], walk: Walk) -> None:
    def run(line: str) -> Any:
        return likewise(*shlex.split(line.removeprefix("likewise ")), stdin=walk.stdin or RECORD)

    for step in walk.before:
        run(step) if isinstance(step, str) else step()
    said = run(walk.provoke)
    message = re.search(walk.says, said.out + said.err)
    assert message, (walk.provoke, said)
    if "move the folder away" in walk.says:
        shutil.move("x.index", "away")
    if "--trust-remote-code" in walk.says:
        Path(".likewise.toml").unlink()
    for line in walk.follow:
        run(line.format(*message.groups())).succeeded()
    if walk.again != "":
        said = run(walk.again or walk.provoke).succeeded()
        assert re.search(walk.says, said.out + said.err) is None


def test_every_piece_of_advice_is_walked() -> None:
    unknown = [
        f"{each.file}:{each.line}: {each.text}"
        for each in sentences()
        if not any(part in each.text for part in ADVICE)
        and not any(each.file.is_relative_to(place) for place in ELSEWHERE)
    ]
    assert unknown == [], "add a walk to ADVICE"


def test_no_advice_is_walked_that_is_not_given() -> None:
    texts = [each.text for each in sentences()]
    assert [part for part in ADVICE if not any(part in text for text in texts)] == []


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("name", ["x.index", "new.index"])
def test_swapped_arguments_are_named_in_their_order(likewise: Callable[..., Any], name: str) -> None:
    said = likewise("index", "notes", name)
    assert said.code == 2
    (command,) = re.findall(r"INDEX comes first: (likewise .*)\n", said.err)
    assert command == f"likewise index {name} notes"
    assert likewise(*shlex.split(command)[1:]).code == 0


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("command", ["show", "similar", "remove", "index"])
def test_a_file_that_begins_with_a_dash_is_named(likewise: Callable[..., Any], command: str) -> None:
    Path("-dash.txt").write_text("a dash")
    assert likewise("index", ".").code == 0
    said = likewise(command, "-dash.txt")
    assert said.code == 2
    assert "(if -dash.txt is a file, write ./-dash.txt)" in said.err
    assert likewise(command, "./-dash.txt").code == 0


@pytest.mark.usefixtures("world")
def test_a_reranker_that_is_not_here_can_be_left_out(
    likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    said = likewise("search", "x.index", "frogs", "--rerank", "nobody/reranker")
    assert said.failed(2).endswith("give the path of a folder that holds it, or leave the reranker out")
    assert likewise("search", "x.index", "frogs").code == 0
