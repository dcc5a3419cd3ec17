"""Messages that a client of the service may get do not speak of the command line."""

from __future__ import annotations

from pathlib import Path

from messages import sentences

from indexer.errors import BadInput, Message, in_shell

ONLY_THE_SHELL_READS = {
    "likewise/shell": "the shell itself",
    "likewise/service/http/run.py": "refusals before the service starts",
    "indexer/ledger.py": "printed by likewise info --ledger and by runs",
    "indexer/indexing/ingest.py": "runs over sources, which only the shell starts",
    "indexer/indexing/prune.py": "runs over sources, which only the shell starts",
    "likewise/workers/named.py": "workers and advice for the command line",
    "likewise/migration/migrate.py": "a change of the model, which only the shell starts",
    "indexer/exchange.py": "reading an export, which only runs do",
    "likewise/inspection": "likewise embed and likewise tokens",
    "indexer/stores/local/check.py": "the report of likewise check",
    "likewise/postgres/check.py": "the report of likewise check",
}


def test_messages_for_every_reader_do_not_name_commands_or_options() -> None:
    spoken = [
        f"{each.file}:{each.line}: {each.text}"
        for each in sentences()
        if not each.for_shell
        and each.file.parent.name != "commands"
        and not any(each.file.is_relative_to(place) for place in ONLY_THE_SHELL_READS)
    ]
    assert spoken == [], "give the command as the second argument of indexer.errors.Message: only the shell prints it"


def test_the_list_names_no_file_without_need() -> None:
    files = {each.file for each in sentences()}
    assert [
        place for place in ONLY_THE_SHELL_READS if not any(file.is_relative_to(Path(place)) for file in files)
    ] == []


def test_only_the_shell_adds_the_command() -> None:
    error = BadInput(Message("there is no index here", ": make one with likewise index"))
    assert (str(error), in_shell(error)) == (
        "there is no index here",
        "there is no index here: make one with likewise index",
    )
    assert in_shell(BadInput("the text is empty")) == "the text is empty"
