"""The default suite on every Python that is installed: `pipx run nox` or `uvx nox`, or one with `nox -s tests-3.13`.

torch alone comes from TORCH_INDEX if the variable is set, as in the Makefile.
"""

import os

import nox

nox.options.default_venv_backend = "venv"


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def tests(session: nox.Session) -> None:
    """Install the extras and what the tests need, and run the tests, or those that are named after --."""
    if index := os.environ.get("TORCH_INDEX"):
        session.install("-c", "constraints.txt", "--no-deps", "--index-url", index, "torch")
    session.install("-c", "constraints.txt", "-e", ".[all,dev]")
    session.run("python", "-m", "pytest", "-n", "auto", "--dist", "loadfile", *session.posargs)
