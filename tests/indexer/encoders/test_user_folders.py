"""The folders of a user: named by a variable, or where the platform has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from indexer.encoders.machine.user_folders import cache_folder, configuration_folder, state_folder


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
