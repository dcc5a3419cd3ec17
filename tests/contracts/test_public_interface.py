"""The public interface, written down: it cannot change without a change of tests/contracts/public_interface.txt.

`python -m tests.contracts.test_public_interface` writes the file; a commit says what changed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import likewise
from indexer.indexing.new_index import NewIndex, NewIndexOptions
from likewise.client import Client
from likewise.service import create_app

FILE = Path(__file__).with_name("public_interface.txt")


def interface() -> str:
    """Return one line for every public name, every public member of a class, and every signature."""
    named = {name: getattr(likewise, name) for name in likewise.__all__}
    named |= {"client.Client": Client, "server.create_app": create_app}
    return "\n".join(line for name, value in sorted(named.items()) for line in lines_of(name, value)) + "\n"


def lines_of(name: str, value: Any) -> Iterator[str]:
    if not inspect.isclass(value):
        yield f"{name}{_signature(value)}" if inspect.isfunction(value) else name
        return
    bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
    yield f"class {name}({bases})"
    if is_dataclass(value):
        for member in fields(value):
            if member.init and not member.name.startswith("_"):
                yield f"{name}.{member.name}: {member.type}"
    elif value.__init__ is not object.__init__ and inspect.isfunction(value.__init__):
        yield f"{name}.__init__{_signature(value.__init__)}"
    listed = {member.name for member in fields(value)} if is_dataclass(value) else set(dir(Exception))
    for member_name, member in sorted(inspect.getmembers(value)):
        if member_name.startswith("_") or member_name in listed:
            continue
        if inspect.isroutine(member):
            yield f"{name}.{member_name}{_signature(member)}"
        elif isinstance(member, int | str):
            yield f"{name}.{member_name} = {member!r}"
        else:
            yield f"{name}.{member_name}"


def _signature(function: Any) -> str:
    return re.sub(r"<function <lambda> at 0x\w+>", "<lambda>", str(inspect.signature(function)))


def test_the_public_interface_is_as_written_down() -> None:
    assert interface().splitlines() == FILE.read_text(encoding="utf-8").splitlines(), (
        "the public interface has changed: if that is meant, run python -m tests.contracts.test_public_interface, and "
        "say in the commit what changes for a program"
    )


def test_arguments_after_k_are_keyword_only_and_in_one_order() -> None:
    for kind in (likewise.Searcher, Client):
        orders = {}
        for name in ("search", "search_many", "search_vector", "similar"):
            parameters = list(inspect.signature(getattr(kind, name)).parameters.values())[3:]
            assert {parameter.kind for parameter in parameters} == {inspect.Parameter.KEYWORD_ONLY}
            orders[name] = [parameter.name for parameter in parameters]
        for order in orders.values():
            assert order[0] == "where"
            common = [name for name in orders["search"] if name in order]
            assert [name for name in order if name in common] == common


def test_the_options_of_a_new_index_are_the_same_wherever_they_are_named() -> None:
    parameters = inspect.signature(likewise.Index.create).parameters.values()
    options = {each.name: each for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}
    listed = {field.name: field.default for field in fields(NewIndex)}
    assert {name: each.default for name, each in options.items()} == listed | {"language": "auto"}
    assert [*options] == [*listed]
    types = {name: type_.__forward_arg__ for name, type_ in NewIndexOptions.__annotations__.items()}
    assert types == {name: each.annotation for name, each in options.items()}


if __name__ == "__main__":
    FILE.write_text(interface(), encoding="utf-8")
