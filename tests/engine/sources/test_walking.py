"""The files of a folder that are read or left out, unchanged files, and the files that a SOURCE covers."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hardware import needs_any_file_name, needs_no_root

from indexer.errors import SourceError
from indexer.ledger import Code
from indexer.records import KnownFile, Stamp
from indexer.sources import Entry, ReadOptions, open_sources, read
from indexer.sources.folders.ignores import DEFAULT_PATTERNS
from indexer.stores.addresses.open import holds_store

Collect = Callable[..., list[Entry]]


def put(root: Path, **files: str) -> None:
    for name, text in files.items():
        write(root / name, text)


def write(path: Path, text: str | bytes = "some text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def names(entries: list[Entry], root: Path, state: str = "read") -> list[str]:
    return [os.path.relpath(entry.uri, root) for entry in entries if entry.state == state]


def reasons(entries: list[Entry], root: Path) -> dict[str, str]:
    return {os.path.relpath(entry.uri, root): entry.reason.text() for entry in entries if entry.reason.text()}


def test_a_folder_is_read_in_sorted_order_with_file_metadata(tmp_path: Path, collect: Collect) -> None:
    for name in ("b.txt", "a.txt", "sub/c.py", "sub/deep/d"):
        write(tmp_path / name)
    os.utime(tmp_path / "a.txt", (0, 1_700_000_000))
    entries = collect(tmp_path)
    assert names(entries, tmp_path) == ["a.txt", "b.txt", "sub/c.py", "sub/deep/d"]
    document = entries[0].document
    assert document is not None
    assert (document.uri, document.path, document.title) == (str(tmp_path / "a.txt"),) * 2 + ("a",)
    assert (document.format, document.modified) == ("text", "2023-11-14T22:13:20+00:00")
    assert document.metadata == {"size": 9}
    assert [entry.document.format for entry in entries if entry.document] == [
        "text",
        "text",
        "python",
        "text",
    ]


def test_what_is_left_out_is_said_once(tmp_path: Path, collect: Collect) -> None:
    write(tmp_path / "kept.txt")
    for name in (".hidden", ".secret/a", ".secret/b", "built/x.txt", "built/y.txt", "old.index/catalog.db"):
        write(tmp_path / name)
    write(tmp_path / "old.index" / "LOCK", b"")
    write(tmp_path / ".gitignore", "built/\n")
    write(tmp_path / "image.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    write(tmp_path / "void.txt", b"")
    write(tmp_path / "blank.txt", " \n\t\n")
    write(tmp_path / "large.txt", b"x" * 2_200_000)
    os.mkfifo(tmp_path / "pipe")
    assert reasons(collect(tmp_path, max_file_mb=2), tmp_path) == {
        ".gitignore": "hidden file",
        ".hidden": "hidden file",
        ".secret": "hidden folder",
        "built": "ignored by .gitignore",
        "old.index": "an index of likewise",
        "image.png": Code.IMAGE().text(),
        "void.txt": "empty",
        "blank.txt": "holds no text",
        "large.txt": "2.1 MB, over the limit of 2 MB: raise --max-file-mb",
        "pipe": "a pipe, not a file",
    }


def test_a_picture_an_archive_and_a_film_are_never_text(tmp_path: Path, collect: Collect) -> None:
    for name in ("cut.png", "photo.JPG", "song.mp3", "old.zip"):
        write(tmp_path / name, b"GIF89a \x89PNG caf\xe9")
    write(tmp_path / "letter.doc", "a text with this name")
    assert reasons(collect(tmp_path), tmp_path) == {
        "cut.png": Code.IMAGE().text(),
        "photo.JPG": Code.IMAGE().text(),
        "song.mp3": Code.AUDIO_OR_VIDEO().text(),
        "old.zip": Code.ARCHIVE().text(),
    }
    assert names(collect(tmp_path), tmp_path) == ["letter.doc"]


def test_a_socket_is_skipped(collect: Collect) -> None:
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{short}/s")
        assert reasons(collect(short), Path(short)) == {"s": "a socket, not a file"}


def test_a_named_file_is_read_even_if_hidden_or_ignored(tmp_path: Path, collect: Collect) -> None:
    write(tmp_path / ".gitignore", "*.log\n")
    hidden, ignored = write(tmp_path / ".hidden.txt"), write(tmp_path / "run.log")
    assert names(collect(hidden, ignored), tmp_path) == [".hidden.txt", "run.log"]
    assert names(collect(tmp_path, ignored), tmp_path) == ["run.log"]


def test_an_empty_folder_has_no_entries(tmp_path: Path, collect: Collect) -> None:
    assert collect(tmp_path) == []


def test_missing_paths_are_all_named_before_anything_is_read(tmp_path: Path, collect: Collect) -> None:
    write(tmp_path / "a.txt")
    with pytest.raises(SourceError) as caught:
        collect(tmp_path, tmp_path / "none", tmp_path / "*.pdf", tmp_path / "a.txt" / "b", "")
    for missing in ("none", "*.pdf", 'b"', '""'):
        assert missing in str(caught.value)


def test_links_inside_are_followed_once_and_links_outside_are_not(tmp_path: Path, collect: Collect) -> None:
    outside, root = write(tmp_path / "outside/o.txt"), tmp_path / "root"
    write(root / "real/a.txt")
    write(root / ".hidden/b.txt")
    write(root / ".hidden/c.txt")
    for name, target in {
        "file": root / "real/a.txt",
        "folder": root / "real",
        "cycle": root,
        "to_hidden": root / ".hidden",
        "again": root / ".hidden",
        "real/loop": root / "real",
        "out": outside,
        "out_folder": outside.parent,
        "broken": root / "gone",
    }.items():
        (root / name).symlink_to(target)
    (root / ".hidden/loop").symlink_to(root / ".hidden")
    entries = collect(root)
    assert names(entries, root) == ["real/a.txt", "again/b.txt", "again/c.txt"]
    assert reasons(entries, root) == {
        ".hidden": "hidden folder",
        "broken": "a link that leads nowhere",
        "cycle": "a link to ., which is read itself",
        "file": "a link to real/a.txt, which is read itself",
        "folder": "a link to real, which is read itself",
        "out": f"a link that leaves the folder, to {outside}",
        "out_folder": f"a link that leaves the folder, to {outside.parent}",
        "real/loop": "a link to real, which is read itself",
        "to_hidden": "a link to .hidden, which is read itself",
        "again/loop": "a link to .hidden, which is read itself",
    }


@needs_any_file_name
def test_a_link_to_a_name_that_is_not_utf_8_has_a_reason_that_can_be_stored(tmp_path: Path, collect: Collect) -> None:
    outside = tmp_path / os.fsdecode(b"caf\xe9.txt")
    outside.write_text("x")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(outside)
    (entry,) = collect(root)
    assert entry.reason.text() == f"a link that leaves the folder, to {tmp_path}/caf\ufffd.txt"
    assert entry.reason.stored().encode()


def test_a_root_that_is_a_link_is_followed_under_its_own_name(tmp_path: Path, collect: Collect) -> None:
    write(tmp_path / "real/a.txt")
    (tmp_path / "link").symlink_to("real")
    assert names(collect(tmp_path / "link"), tmp_path) == ["link/a.txt"]


@pytest.mark.parametrize(
    ("file", "rounds"),
    [(".gitignore", 10), (".likewiseignore", 10), pytest.param(".gitignore", 60, marks=pytest.mark.slow)],
)
def test_ignore_files_agree_with_git(tmp_path: Path, collect: Collect, file: str, rounds: int) -> None:
    chance = random.Random(7)
    folders = ["docs/build/", "build/", "", "a/", "a/b/", "docs/", "docs/api/v1/", "weird [x]/"]
    files = ["x.txt", "y.log", "keep.log", "build", "#hash", "!bang", "tmp1", "tmp22", "sp ace.txt", "z.md"]
    for folder in folders:
        for name in files:
            if not (tmp_path / folder / name).exists():
                write(tmp_path / folder / name)
    patterns = [
        "*.log",
        "!keep.log",
        "/x.txt",
        "build/",
        "build",
        "docs/*.md",
        "docs/**/z.md",
        "**/tmp?",
        "tmp[0-9]*",
    ]
    patterns += [
        "# comment",
        "\\#hash",
        "\\!bang",
        "a/b/",
        "!a/b/x.txt",
        "*",
        "!*/",
        "!*.txt",
        "docs/*",
        "!docs/api",
        "  ",
    ]
    patterns += [
        "sp\\ ace.txt",
        "sp ace.txt  ",
        "foo/**",
        "**/api/**",
        "/docs/**/",
        "weird \\[x\\]/",
        "a/**/x.txt",
    ]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for _ in range(rounds):
        for folder in ("", "docs/", "a/"):
            write(
                tmp_path / folder / file,
                "\n".join(chance.sample(patterns, chance.randint(1, 5))) + "\n",
            )
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--others", f"--exclude-per-directory={file}"],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        expected = {path for path in listed.split("\0") if path and not path.endswith(file)}
        rules = {folder: (tmp_path / folder / file).read_text() for folder in ("", "docs/", "a/")}
        assert set(names(collect(tmp_path), tmp_path)) == expected, rules


def test_likewiseignore_decides_before_the_gitignore_beside_it(tmp_path: Path, collect: Collect) -> None:
    for name in ("a.log", "b.log", "c.txt", "sub/b.log", "sub/c.txt"):
        write(tmp_path / name)
    write(tmp_path / ".gitignore", "*.log\n")
    write(tmp_path / ".likewiseignore", "!b.log\nc.txt\n")
    write(tmp_path / "sub/.gitignore", "b.log\n!c.txt\n")
    entries = collect(tmp_path)
    assert names(entries, tmp_path) == ["b.log", "sub/c.txt"]
    ignored = {name: reason for name, reason in reasons(entries, tmp_path).items() if "hidden" not in reason}
    assert ignored == {
        "a.log": "ignored by .gitignore",
        "c.txt": "ignored by .likewiseignore",
        "sub/b.log": "ignored by .gitignore",
    }
    assert len(names(collect(tmp_path, ignore=False), tmp_path)) == 5


def test_what_programs_write_is_ignored_by_default(tmp_path: Path, collect: Collect) -> None:
    kept = ["Cargo.toml", "lock", "min.js", "my.lock", "src/package.json", "src/~notes.txt", "uv.lock"]
    written = ["app.min.js", "node_modules", "src/__pycache__", "src/Cargo.lock", "src/~$plan.docx"]
    for name in (*kept, *written):
        write(tmp_path / name / "x.py" if name.endswith(("modules", "__")) else tmp_path / name)
    write(tmp_path / ".likewiseignore", "!/uv.lock\n")
    entries = collect(tmp_path)
    assert names(entries, tmp_path) == sorted(kept, key=lambda name: ("/" in name, name))
    default = {name for name, reason in reasons(entries, tmp_path).items() if "ignored by default" in reason}
    assert default == set(written)
    assert all(entry.ignored for entry in entries if "ignored" in entry.reason.text())
    assert (
        len(collect(tmp_path, ignore=False)) == len(kept) + len(written) + 1
    )  # the hidden file is left out in any case
    assert names(collect(tmp_path / "node_modules", tmp_path / "app.min.js"), tmp_path) == [
        "node_modules/x.py",
        "app.min.js",
    ]


def test_the_default_list_is_in_the_manual() -> None:
    manual = (Path(__file__).parents[3] / "docs/operations.md").read_text()
    assert [pattern for pattern in DEFAULT_PATTERNS if f"`{pattern}`" not in manual] == []


def test_gitignore_above_the_folder_counts_within_a_repository(tmp_path: Path, collect: Collect) -> None:
    write(tmp_path / ".gitignore", "*.log\n/out/\n")
    write(tmp_path / "sub/.gitignore", "!keep.log\n")
    for name in ("sub/inner/a.log", "sub/inner/keep.log", "sub/inner/a.txt", "out/b.txt"):
        write(tmp_path / name)
    assert len(names(collect(tmp_path / "sub/inner"), tmp_path)) == 3
    (tmp_path / ".git").mkdir()
    assert names(collect(tmp_path / "sub/inner"), tmp_path) == ["sub/inner/a.txt", "sub/inner/keep.log"]
    assert names(collect(tmp_path / "out"), tmp_path) == ["out/b.txt"], "an ignored folder that is named is read"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.md", ["a.md"]),
        ("**/*.md", ["a.md", "docs/b.md", "docs/deep/c.md"]),
        ("docs/*.md", ["docs/b.md"]),
        ("docs/**/*.md", ["docs/b.md", "docs/deep/c.md"]),
        ("do*", ["docs/b.md", "docs/b.txt", "docs/deep/c.md"]),
        ("[a-c].*", ["a.md"]),
        ("docs/deep/?.md", ["docs/deep/c.md"]),
    ],
)
def test_globs(tmp_path: Path, collect: Collect, pattern: str, expected: list[str]) -> None:
    for name in ("a.md", "x.txt", "docs/b.md", "docs/b.txt", "docs/deep/c.md", ".git/d.md"):
        write(tmp_path / name)
    assert names(collect(tmp_path / pattern), tmp_path) == expected
    (source,) = open_sources([str(tmp_path / pattern)], ReadOptions(), holds_store)
    covered = [path for path in tmp_path.rglob("*") if path.is_file() and ".git" not in path.parts]
    assert {str(path) for path in covered if source.covers(str(path))} == {str(tmp_path / name) for name in expected}


def test_the_glob_option_keeps_what_matches_below_a_folder(tmp_path: Path, collect: Collect) -> None:
    for name in ("a.md", "b.txt", "docs/c.md", "docs/d.rst", "src/e.md"):
        write(tmp_path / name)
    assert names(collect(tmp_path, glob=("*.md",)), tmp_path) == ["a.md", "docs/c.md", "src/e.md"]
    assert names(collect(tmp_path, glob=("docs/*.md", "*.txt")), tmp_path) == ["b.txt", "docs/c.md"]
    assert names(collect(tmp_path / "b.txt", glob=("*.md",)), tmp_path) == ["b.txt"]


def test_a_file_whose_name_has_wildcards_is_itself(tmp_path: Path, collect: Collect) -> None:
    write(tmp_path / "a[1].txt")
    write(tmp_path / "a1.txt")
    assert names(collect(tmp_path / "a[1].txt"), tmp_path) == ["a[1].txt"]


def test_overlapping_sources_read_each_file_once(tmp_path: Path, collect: Collect) -> None:
    for name in ("a.md", "docs/b.md", "docs/.notes/c.md"):
        write(tmp_path / name)
    arguments = [
        tmp_path,
        tmp_path / "docs",
        tmp_path / "docs/b.md",
        tmp_path / "*.md",
        tmp_path,
        tmp_path / "docs/.notes",
    ]
    for order in (arguments, arguments[::-1]):
        assert sorted(names(collect(*order), tmp_path)) == ["a.md", "docs/.notes/c.md", "docs/b.md"]


def test_covers(tmp_path: Path) -> None:
    write(tmp_path / "docs/a.md")
    file, folder, stdin, kept = open_sources(
        [str(tmp_path / "docs/a.md"), str(tmp_path / "docs"), "-"], ReadOptions(), holds_store
    ) + open_sources([str(tmp_path)], ReadOptions(glob=("*.md",)), holds_store)
    a, b, near = (str(tmp_path / name) for name in ("docs/a.md", "docs/x/b.txt", "docs2/a.md"))
    assert [file.covers(path) for path in (a, b, near)] == [True, False, False]
    assert [folder.covers(path) for path in (a, b, near)] == [True, True, False]
    assert [stdin.covers(path) for path in (a, "-")] == [False, False]
    assert [kept.covers(path) for path in (a, b, near)] == [True, False, True]


def recorded(entries: list[Entry], age_s: float = 10) -> dict[str, KnownFile]:
    known: dict[str, KnownFile] = {}
    for entry in entries:
        if entry.stamp:
            stamp = Stamp(
                entry.stamp.size,
                entry.stamp.mtime_ns,
                entry.stamp.inode,
                entry.stamp.mtime_ns + int(age_s * 1e9),
            )
            rows = known[entry.file].entries if entry.file in known else ()
            state = "indexed" if entry.state == "read" else entry.state
            known[entry.file] = KnownFile(stamp, (*rows, (entry.uri, state, entry.reason)))
    return known


def test_an_unchanged_file_is_not_opened(tmp_path: Path, collect: Collect, monkeypatch: pytest.MonkeyPatch) -> None:
    put(
        tmp_path,
        **{"a.txt": "one", "empty.txt": "", "r.jsonl": '{"id": 1, "text": "x"}\n{"id": 2, "text": ""}\n'},
    )
    first = collect(tmp_path)
    known = recorded(first)
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", lambda *_, **__: pytest.fail("opened"))
        again = collect(tmp_path, known=known)
    assert [(entry.uri, entry.state, entry.reason.text()) for entry in again] == [
        (entry.uri, "unchanged" if entry.state == "read" else "skipped", entry.reason.text()) for entry in first
    ]
    assert [entry.state for entry in collect(tmp_path, known=known, rehash=True)] == [entry.state for entry in first]


def test_a_file_that_changed_or_was_too_young_or_failed_is_read_again(tmp_path: Path, collect: Collect) -> None:
    path = write(tmp_path / "a.txt", "one")
    known = recorded(collect(path))
    assert collect(path, known=recorded(collect(path), age_s=1.9))[0].state == "read"
    failed = {str(path): KnownFile(known[str(path)].stamp, ((str(path), "failed", Code.OTHER("why")),))}
    assert collect(path, known=failed)[0].state == "read"
    status = path.stat()
    path.write_text("two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert collect(path, known=known)[0].state == "read"
    replacement = write(tmp_path / "b.txt", "one")
    os.utime(replacement, ns=(status.st_atime_ns, status.st_mtime_ns))
    replacement.replace(path)
    assert collect(path, known=known)[0].state == "read", "another inode"


def test_a_raised_limit_reads_what_was_too_large(tmp_path: Path, collect: Collect) -> None:
    path = write(tmp_path / "a.txt", "x" * 1000)
    first = collect(path, max_file_mb=0.0005)
    assert first[0].state == "skipped"
    assert collect(path, known=recorded(first))[0].state == "read"


def test_stamps_are_taken_before_reading(tmp_path: Path, collect: Collect) -> None:
    path = write(tmp_path / "a.txt")
    before = time.time_ns()
    (entry,) = collect(path)
    assert entry.stamp is not None
    assert (entry.stamp.size, entry.stamp.inode) == (9, path.stat().st_ino)
    assert before <= entry.stamp.read_ns <= time.time_ns()


def test_a_link_whose_target_cannot_be_looked_at_fails(
    tmp_path: Path, collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / ".hidden/b.txt")
    (tmp_path / "link").symlink_to(tmp_path / ".hidden/b.txt")
    (tmp_path / "nowhere").symlink_to(tmp_path / "nothing")
    stat = os.stat

    def refuse(path: str, **options: bool) -> os.stat_result:
        if str(path).endswith("link"):
            raise PermissionError(13, "Permission denied")
        return stat(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", refuse)
    assert reasons(collect(tmp_path), tmp_path) == {
        ".hidden": "hidden folder",
        "link": "cannot be read: Permission denied",
        "nowhere": "a link that leads nowhere",
    }


@needs_no_root
def test_unreadable_files_and_folders_fail(tmp_path: Path, collect: Collect) -> None:
    write(tmp_path / "a.txt").chmod(0)
    write(tmp_path / "sub/b.txt").parent.chmod(0)
    try:
        assert reasons(collect(tmp_path), tmp_path) == {
            "a.txt": "cannot be read: Permission denied",
            "sub": "cannot be listed: Permission denied",
        }
    finally:
        (tmp_path / "sub").chmod(0o700)


def test_an_unreadable_file_fails_and_the_rest_is_read(
    tmp_path: Path, collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, **{"a.txt": "one", "b.txt": "two"})
    opened = open

    def refuse(path: str, mode: str) -> object:
        if path.endswith("a.txt"):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, mode)

    monkeypatch.setattr("builtins.open", refuse)
    entries = collect(tmp_path)
    assert [(entry.state, entry.reason.text()) for entry in entries] == [
        ("failed", "cannot be read: Permission denied"),
        ("read", ""),
    ]


@needs_any_file_name
def test_a_name_that_is_no_utf8_fails_by_a_name_that_can_be_stored(tmp_path: Path, collect: Collect) -> None:
    write(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt")))
    (entry,) = collect(tmp_path)
    assert entry.state == "failed"
    entry.uri.encode("utf-8")


def test_a_deep_tree_is_walked(tmp_path: Path, collect: Collect) -> None:
    deep = tmp_path.joinpath(*["d"] * 900)
    deep.mkdir(parents=True)
    write(deep / "a.txt")
    assert len(names(collect(tmp_path), tmp_path)) == 1


@pytest.mark.parametrize("folders", [4, pytest.param(200, marks=pytest.mark.long, id="a hundred thousand files")])
def test_of_unchanged_files_none_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folders: int) -> None:
    for folder in range(folders):
        (tmp_path / str(folder)).mkdir()
        for file in range(500):
            (tmp_path / str(folder) / f"{file}.txt").touch()
    (source,) = open_sources([str(tmp_path)], ReadOptions(), holds_store)
    known = {
        found.path: KnownFile(
            Stamp(0, found.status.st_mtime_ns, found.status.st_ino, 2**62), ((found.path, "indexed", ""),)
        )
        for found in source.files()
        if found.status
    }

    def refuse(path: object, *_: object, **__: object) -> None:
        raise AssertionError(f"{path} was opened")

    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", refuse)
        patch.setattr(os, "open", refuse)
        assert sum(entry.state == "unchanged" for entry in read(source, ReadOptions(), known.get)) == 500 * folders


def test_the_file_that_takes_the_output_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "a.txt")
    code = "import sys; from indexer.sources import ReadOptions, open_sources\n"
    code += "from indexer.stores.addresses.open import holds_store\n"
    code += f"(source,) = open_sources([{str(tmp_path)!r}], ReadOptions(), holds_store)\n"
    code += (
        "print([(f.path.rpartition('/')[2], f.reason.text(), f.ignored) for f in source.files()], file=sys.stderr)\n"
    )
    code += f"print(source.may_read({str(tmp_path / 'log.txt')!r}), file=sys.stderr)"
    with (tmp_path / "log.txt").open("w") as log:
        ended = subprocess.run([sys.executable, "-c", code], stdout=log, stderr=subprocess.PIPE, text=True, check=True)
    assert ended.stderr.splitlines() == [
        "[('a.txt', '', False), ('log.txt', 'the output of this command is written to it', True)]",
        "False",
    ]
