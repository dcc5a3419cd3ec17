"""The wheel in an empty environment: how long it takes and what it weighs until it indexes, searches and serves.

`python -m benchmarks.install [PYTHON ...]`; the default is the Python that runs this. The wheel is built, and for
each of them installed with the core dependencies. `likewise index` and `search` run on data/collection with an empty
cache. Then the extra `serve` is added, `likewise serve` answers a question, and `likewise open` indexes a copy of the
collection and shows its page. The last table has what each core dependency weighs.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.machine import machine

ROOT = Path(__file__).parents[1]
QUESTION = "how can I stop my bread from going stale"


class Environment:
    """An empty environment of one Python, whose programs find no cache of this user."""

    def __init__(self, python: str, folder: Path) -> None:
        self.folder = folder / "venv"
        subprocess.run([python, "-m", "venv", str(self.folder)], check=True)
        self.variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self.variables |= {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CACHE", "CONFIG", "STATE")}
        self.variables["HF_HUB_OFFLINE"] = "1"

    def run(self, program: str, *arguments: str) -> tuple[float, str]:
        """Return the seconds that a program of the environment took, and what it printed."""
        start = time.perf_counter()
        done = subprocess.run(
            [str(self.folder / "bin" / program), *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env=self.variables,
        )
        if done.returncode:
            sys.exit(f"{program} {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return time.perf_counter() - start, done.stdout

    def install(self, wheel: str) -> float:
        # The cache of pip stays the user's: what is measured is unpacking, not the network.
        cache = subprocess.run(
            [sys.executable, "-m", "pip", "cache", "dir"], capture_output=True, text=True, check=True
        )
        self.variables["PIP_CACHE_DIR"] = cache.stdout.strip()
        return self.run("pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt"), wheel)[0]

    def packages(self) -> dict[str, Distribution]:
        (site,) = self.folder.glob("lib/python*/site-packages")
        return {canonicalize_name(each.metadata["Name"]): each for each in distributions(path=[str(site)])}

    def megabytes(self) -> float:
        return sum(map(size, self.packages().values()))

    @contextmanager
    def service(self, *arguments: str) -> Iterator[tuple[float, str]]:
        """Yield the seconds until a command of likewise serves, and its address. Interrupt it at the end."""
        start = time.perf_counter()
        command = [str(self.folder / "bin" / "likewise"), *arguments]
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=ROOT, env=self.variables
        ) as service:
            assert service.stderr is not None
            address = next((line.split()[-1] for line in service.stderr if " at http://" in line), None)
            if address is None:
                sys.exit(f"likewise {arguments[0]} ended without an address")
            yield time.perf_counter() - start, address
            service.send_signal(signal.SIGINT)
        assert service.returncode == 0

    def serve(self, index: Path) -> tuple[float, float]:
        """Return the seconds until the service answers, and of its first answer."""
        with self.service("serve", str(index), "--port", "0") as (ready, address):
            start = time.perf_counter()
            body = json.dumps({"query": QUESTION, "k": 1}).encode()
            route = f"{address}/v1/indexes/{index.stem}/search"
            with urllib.request.urlopen(urllib.request.Request(route, body)) as answer:
                assert json.load(answer)["hits"][0]["uri"] == "bread-keeping"
            return ready, time.perf_counter() - start

    def open(self, folder: Path) -> float:
        """Return the seconds until the page of a folder is there that has no index yet."""
        shutil.copytree(ROOT / "data" / "collection", folder)
        with self.service("open", str(folder), "--port", "0") as (ready, address):
            start = time.perf_counter()
            with urllib.request.urlopen(address) as page:
                assert b"<!doctype html>" in page.read(100).lower()
            return ready + time.perf_counter() - start


def size(package: Distribution) -> float:
    """Return the megabytes of a package's files, compiled bytecode included."""
    paths = {Path(str(package.locate_file(file))) for file in package.files or ()}
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def needs(package: Distribution) -> list[str]:
    """Return the names of the packages that a package needs here, without extras."""
    parsed = [Requirement(line) for line in package.requires or ()]
    return [canonicalize_name(each.name) for each in parsed if not each.marker or each.marker.evaluate({"extra": ""})]


def reached(start: list[str], packages: dict[str, Distribution]) -> set[str]:
    """Return these packages and all that they need, directly or not."""
    waiting, found = list(start), set[str]()
    while waiting:
        name = waiting.pop()
        if name not in found and name in packages:
            found.add(name)
            waiting += needs(packages[name])
    return found


def weights(packages: dict[str, Distribution]) -> list[tuple[str, float, float, list[str]]]:
    """Return for each core dependency: its size in MB, the MB that leave with it, and the packages it alone needs."""
    core = needs(packages["likewise"])
    rows = []
    for name in core:
        others = reached([other for other in core if other != name], packages)
        alone = reached([name], packages) - others
        freed = sum(size(packages[each]) for each in alone)
        rows.append((name, size(packages[name]), freed, sorted(alone - {name})))
    return sorted(rows, key=lambda row: -row[1])


def measure(python: str, wheel: Path) -> dict[str, Distribution]:
    """Print one row of the table and return the packages that the core consists of."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(python, Path(folder))
        version = environment.run("python", "--version")[1].split()[-1]
        installed = environment.install(str(wheel))
        core, packages = environment.megabytes(), environment.packages()
        index = Path(folder) / "notes.index"
        first, printed = environment.run("likewise", "index", str(index), "data/collection", "--json")
        assert json.loads(printed.splitlines()[-1])["indexed"] == 155
        found, hits = environment.run("likewise", "search", str(index), QUESTION, "-k", "1", "--json")
        assert json.loads(hits)["hits"][0]["uri"] == "bread-keeping"
        environment.install(f"{wheel}[serve]")
        ready, answered = environment.serve(index)
        opened = environment.open(Path(folder) / "notes")
        torch_for = "GPUs" if any(name.startswith("nvidia-") for name in packages) else "CPUs"
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
        sizes = (f"{core:,.0f}", str(len(packages)), f"{environment.megabytes() - core:,.0f}")
        times = (f"{seconds:.1f}" for seconds in (installed, first, found, ready, answered, opened))
        print("| " + " | ".join([version, system, torch_for, *sizes, *times]) + " |", flush=True)
        if python == sys.executable or len(sys.argv) == 2:
            table(packages)
    return packages


def table(packages: dict[str, Distribution]) -> None:
    print("\n| core dependency | MB | without it, MB less | brings alone |\n| --- | --- | --- | --- |")
    for name, own, freed, brought in weights(packages):
        print(f"| {name} | {own:.1f} | {freed:.1f} | {', '.join(brought)} |")
    print(f"\n{len(packages)} packages, {sum(map(size, packages.values())):,.0f} MB\n", flush=True)


def main() -> None:
    print(f"{machine()}\n")
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, str(ROOT)]
        subprocess.run(build, check=True, capture_output=True)
        (wheel,) = Path(folder).glob("*.whl")
        print(
            "| Python | system | torch for | core, MB | packages | serve, MB more "
            "| install, s | index, s | search, s | serve, s | first answer, s | open, s |"
        )
        print("| --- " * 12 + "|")
        for python in sys.argv[1:] or [sys.executable]:
            measure(shutil.which(python) or python, wheel)


if __name__ == "__main__":
    main()
