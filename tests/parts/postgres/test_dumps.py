"""pg_dump and pg_restore as docs/postgres.md writes them: an index comes back in another database."""

from __future__ import annotations

import re
import shlex
import subprocess
from contextlib import closing
from pathlib import Path

import numpy as np
import psycopg
from postgres_server import new_address, programs

from indexer import Document, Index
from likewise.postgres.address import parse_address
from search import Searcher

DOCS = Path(__file__).parents[3] / "docs" / "postgres.md"


def test_a_dump_restores_an_index_into_a_fresh_database(tmp_path: Path) -> None:
    address = new_address()
    documents = [Document(f"d{n}", f"apple {n}", metadata={"n": n}) for n in range(9)]
    with Index.create(address, dimensions=2) as index:
        index.add(documents, vectors=np.random.default_rng(0).normal(size=(9, 2)).astype(np.float32))
    parsed = parse_address(address)
    restored = f"restored_{tmp_path.parent.name}_{tmp_path.name}".replace("-", "_")[-60:]
    with closing(psycopg.connect(parsed.conninfo, autocommit=True)) as connection:
        ((tables,),) = connection.execute(
            "SELECT tables FROM likewise.index WHERE name = %s", (parsed.index,)
        ).fetchall()
        host, user = connection.info.host, connection.info.user
        written = re.search(r"```sh\n(createdb .*?)```", DOCS.read_text(), re.DOTALL)
        assert written
        for line in written[1].replace("likewise_0123456789abcdef", tables).splitlines():
            program, *arguments = shlex.split(line.replace("OLD", "postgres").replace("NEW", restored))
            told = ["-h", host, "-p", str(connection.info.port), "-U", user]
            subprocess.run([programs() / program, *told, *arguments], cwd=tmp_path, check=True, capture_output=True)
        there = address.replace("/postgres?", f"/{restored}?")
        try:
            with Searcher(address) as before, Searcher(there) as after, Index.open(there) as index:
                query = np.array([1, 0], np.float32)
                assert after.search_vector(query, where="n > 3").hits == before.search_vector(query, where="n > 3").hits
                assert len(after) == 9
                assert index.check().problems == ()
                assert index.remove(["d0"]) == 1
        finally:
            connection.execute(f'DROP DATABASE "{restored}" WITH (FORCE)')
