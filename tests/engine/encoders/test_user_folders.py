"""The folders of a user: named by a variable, or where the platform has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from indexer.doors import has_part
from indexer.encoders.machine.user_folders import cache_folder, configuration_folder, state_folder
from indexer.errors import StorageError


@pytest.mark.parametrize(
    ("platform", "cache", "configuration", "state"),
    [
        ("linux", ".cache", ".config", ".local/state"),
        ("darwin", "Library/Caches", "Library/Application Support", "Library/Application Support"),
    ],
)
def test_folders_of_a_platform(
    platform: str, cache: str, configuration: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, "relative/is/ignored")
    folders = (cache_folder(), configuration_folder(), state_folder())
    assert folders == tuple(tmp_path / each / "likewise" for each in (cache, configuration, state))
    for variable in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, f"/var/{variable}")
    folders = (cache_folder(), configuration_folder(), state_folder())
    assert folders == tuple(Path(f"/var/XDG_{name}_HOME/likewise") for name in ("CACHE", "CONFIG", "STATE"))


def test_a_user_without_a_home_folder_is_told_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", unknown)
    for variable in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(StorageError, match="no home folder: set HOME, or XDG_CACHE_HOME, to a folder"):
        cache_folder()
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache")
    assert cache_folder() == Path("/var/cache/likewise")
    if has_part("shell"):
        from likewise.shell.terminal.terminal import short_path

        assert short_path("/var/cache/likewise") == "/var/cache/likewise"
