"""The plans of the statements: over 20,000 documents, a filter reads an index and no whole table of values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from opened import store_of
from postgres_server import new_address, remove_index

from indexer import Document, Index
from indexer.filters.parse import parse
from likewise.postgres.selection import PostgresSelection, compiled
from likewise.postgres.vectors import IdArray

COUNT = 20_000


_MORE = """
INSERT INTO {t}.document SELECT i, int8send(i), 'https://example.org/' || i, '',
    '/folder' || i % 100 || '/' || i || '.txt', NULL, NULL, '', '', '', 1, 1, 'text', NULL, ''
    FROM generate_series(100, {count}) i;
INSERT INTO {t}.passage SELECT i, i, 0, 4, 1, '', NULL, '', ARRAY[1, i, 0, 0]::real[]::halfvec
    FROM generate_series(100, {count}) i;
INSERT INTO {t}.field_value SELECT f.id, i, CASE f.name WHEN 'n' THEN i WHEN 'tenth' THEN i % 10 END,
    CASE f.name WHEN 'topic' THEN 'topic ' || i % 500 WHEN 'tags' THEN 't' || i % 300 END
    FROM {t}.field f, generate_series(100, {count}) i WHERE f.type IN ('number', 'text');
INSERT INTO {t}.field_value SELECT f.id, i, 1e15 + i * 1e10 FROM {t}.field f, generate_series(100, {count}) i
    WHERE f.type = 'date';
ANALYZE {t}.document; ANALYZE {t}.passage; ANALYZE {t}.field_value;
UPDATE likewise.index SET generation = generation + 1 WHERE tables = '{t}'
"""


@pytest.fixture(scope="module")
def view() -> Iterator[Any]:
    with Index.create(new_address(), dimensions=4) as index:
        metadata = {"n": 1, "tenth": 1, "topic": "topic 1", "tags": ["t1"]}
        first = Document("first", "text", modified="2020-01-01", metadata={**metadata, "rare": True})
        index.add([first], vectors=np.eye(4)[:1])
        store: Any = store_of(index)
        with store.snapshot() as snapshot:
            tables = snapshot._view.state.row.tables
        with store._connections.connection() as connection:
            for part in _MORE.format(t=tables, count=COUNT).split(";"):
                connection.execute(part)
        with store.snapshot() as snapshot:
            yield snapshot._view
        remove_index(store.engine)


def plan(view: Any, where: str) -> str:
    condition = compiled(view, parse(where))
    rows = view.rows(
        f"EXPLAIN SELECT count(*), coalesce(sum(d.passages), 0) FROM {{tables}}.document d WHERE {condition.text}",
        *condition.parameters,
    )
    return "\n".join(row[0] for row in rows)


@pytest.mark.parametrize(
    ("where", "index"),
    [
        ("n = 7", "field_number"),
        ("n < 200", "field_number"),
        ("n in (1, 2, 3)", "field_number"),
        ("topic = 'topic 7'", "field_text"),
        ("topic in ('topic 7', 'topic 8')", "field_text"),
        ("tags = 't7'", "field_text"),
        ("topic >= 'topic 499'", "field_text"),
        ("topic = 'topic 7' and n < 1000", "field_"),
        ("modified >= 2019-09-11", "field_number"),
        ("uri = 'https://example.org/77'", "document_uri"),
        ("exists(rare)", "field_number"),
        ("not exists(rare)", "field_number"),
        ("path = '/folder7/7.txt'", "document_path"),
    ],
)
def test_a_filter_uses_an_index(view: Any, where: str, index: str) -> None:
    chosen = plan(view, where)
    assert index in chosen
    assert "Seq Scan on field_value" not in chosen, chosen


@pytest.mark.parametrize("where", ["topic = 'topic 7'", "n < 200", "n < 5000 and not (tenth = 7 or topic = 'topic 7')"])
def test_questions_read_the_passages_of_a_narrow_filter_by_their_documents(view: Any, where: str) -> None:
    condition, parameters = PostgresSelection(view, parse(where))._condition()
    rows = view.rows(
        "EXPLAIN (ANALYZE, TIMING OFF) SELECT p.id FROM {tables}.passage p"
        f"{condition} ORDER BY (p.vector <#> '[1,0,0,0]') + 0, p.id LIMIT 10",
        *parameters,
    )
    chosen = "\n".join(row[0] for row in rows)
    assert "Index Scan using passage_document on passage" in chosen, chosen
    assert "document d" not in chosen  # the ids of the documents are known
    assert "Seq Scan" not in chosen


@pytest.mark.parametrize("ids", [[], [7], [-(2**63), 0, 2**63 - 1]])
def test_ids_are_sent_in_binary(view: Any, ids: list[int]) -> None:
    assert view.rows("SELECT %s, pg_typeof(%s)::text", *[IdArray.of(np.array(ids, np.int64))] * 2) == [
        (ids, "bigint[]")
    ]
