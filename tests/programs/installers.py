"""Installs the programs of the catalogue by the ordinary client of each registry, once, into the user's cache folder.

An installer answers with the environment in which the program's commands run: folders that come first on the PATH, and
variables.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from catalogue import HERE, Program
from maven import JarsMissingError
from maven import jars as fetched_jars

SOURCES = HERE / "sources"
JAVA_CLASSES = HERE / "java_classes.txt"
_INSTALL_TIMEOUT_S = 1200
_JAVA_OPTIONS = [
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
]


class NotInstalledError(Exception):
    """A program cannot be installed on this machine; the message tells what is missing, in a line."""


def environment_of(program: Program) -> dict[str, str]:
    """Install a program if it is not there yet; the environment for its commands. Raises `NotInstalledError`."""
    environment = dict(os.environ)
    # A program must not see the Python environment of whoever runs it.
    environment.pop("VIRTUAL_ENV", None)
    for name, wanted in program.install.items():
        for variable, value in INSTALLERS[name](wanted).items():
            before = environment.get(variable)
            environment[variable] = f"{value}:{before}" if variable == "PATH" and before else value
    return environment


def _maven(pom: str) -> dict[str, str]:
    """Jars by a pom, and a script for each of their programs that Kafka's download has one for."""
    try:
        libs = fetched_jars(HERE / pom, f"programs-{Path(pom).stem}")
    except JarsMissingError as error:
        raise NotInstalledError(str(error).splitlines()[0]) from error
    java = shutil.which("java")
    assert java is not None
    scripts = _folder("scripts", f"{libs}{JAVA_CLASSES.read_text()}{_JAVA_OPTIONS}")
    for line in JAVA_CLASSES.read_text().splitlines():
        name, words = line.split(maxsplit=1)
        command = shlex.join([java, *_JAVA_OPTIONS, "-cp", f"{libs}/*"])
        script = scripts / name
        script.write_text(f'#!/bin/sh\nexec {command} {words} "$@"\n')
        script.chmod(0o755)
    return {"PATH": str(scripts), "CLASSPATH": f"{libs}/*"}


def _jars(coordinates: Sequence[str]) -> dict[str, str]:
    """Libraries of Maven Central's, given as group:artifact:version, with what they need; on the class path."""
    folder = _folder("jars", coordinates)
    entries = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
        for group, artifact, version in (each.split(":") for each in coordinates)
    )
    pom = folder / "pom.xml"
    pom.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>loadwise</groupId><artifactId>program</artifactId>"
        f"<version>1</version><dependencies>{entries}</dependencies></project>"
    )
    try:
        return {"CLASSPATH": f"{fetched_jars(pom, 'programs')}/*"}
    except JarsMissingError as error:
        raise NotInstalledError(str(error).splitlines()[0]) from error


def _apt(packages: Sequence[str]) -> dict[str, str]:
    """Packages of Debian's, installed for the whole machine where whoever runs this may do that."""
    installed = subprocess.run(["dpkg", "-s", *packages], capture_output=True, check=False).returncode == 0
    if not installed:
        if shutil.which("apt-get") is None or os.geteuid() != 0:
            raise NotInstalledError(f"needs: apt-get install {' '.join(packages)}")
        _run(["apt-get", "install", "--yes", "--no-install-recommends", *packages], HERE)
    return {}


def _pip(packages: Sequence[str]) -> dict[str, str]:
    """Packages of PyPI's in a virtual environment of their own."""

    def make(folder: Path) -> None:
        _run([sys.executable, "-m", "venv", str(folder)], HERE)
        _run([str(folder / "bin" / "pip"), "install", "--quiet", *packages], HERE)

    return {"PATH": str(_once("pip", packages, make) / "bin")}


def _npm(packages: Sequence[str]) -> dict[str, str]:
    """Packages of npm's in a folder of their own."""

    def make(folder: Path) -> None:
        _run([_needed("npm"), "install", "--loglevel=error", "--no-audit", "--no-fund", *packages], folder)

    modules = _once("npm", packages, make) / "node_modules"
    return {"PATH": str(modules / ".bin"), "NODE_PATH": str(modules)}


def _go(packages: Sequence[str]) -> dict[str, str]:
    """Commands of Go modules, as ``go install`` makes them; those that are on this machine already are taken."""
    if all(shutil.which(_command_of(package)) for package in packages):
        return {}

    def make(folder: Path) -> None:
        for package in packages:
            _run([_needed("go"), "install", package], folder, GOBIN=str(folder))

    return {"PATH": str(_once("go", packages, make))}


def _go_source(source: str) -> dict[str, str]:
    """A program of ours over Go libraries of others'."""

    def make(folder: Path) -> None:
        _run(
            [_needed("go"), "build", "-o", str(folder / f"program-{source}"), "."],
            SOURCES / source,
            GOFLAGS="-mod=readonly",
        )

    content = [path.read_text() for path in sorted((SOURCES / source).iterdir())]
    return {"PATH": str(_once("go-source", content, make))}


def _cargo(source: str) -> dict[str, str]:
    """A program of ours over a crate of others'."""

    def make(folder: Path) -> None:
        build = [_needed("cargo"), "install", "--quiet", "--path", str(SOURCES / source), "--root", str(folder)]
        _run(build, folder, CARGO_TARGET_DIR=str(folder / "target"))
        shutil.rmtree(folder / "target")

    content = [path.read_text() for path in sorted((SOURCES / source).rglob("*.*"))]
    return {"PATH": str(_once("cargo", content, make) / "bin")}


INSTALLERS: Mapping[str, Callable[[Any], dict[str, str]]] = {
    "maven": _maven,
    "jars": _jars,
    "apt": _apt,
    "pip": _pip,
    "npm": _npm,
    "go": _go,
    "go_source": _go_source,
    "cargo": _cargo,
}


def cache_folder() -> Path:
    """Where everything is put that is wanted again by the next run."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "loadwise" / "programs"


def _folder(kind: str, wanted: object) -> Path:
    """A folder in the cache, one for each content that is wanted."""
    name = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:12]
    folder = cache_folder() / f"{kind}-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _once(kind: str, wanted: object, make: Callable[[Path], None]) -> Path:
    """The folder that ``make`` fills, unless it has done so before."""
    folder = _folder(kind, wanted)
    done = folder / ".installed"
    if not done.exists():
        shutil.rmtree(folder)
        folder.mkdir()
        make(folder)
        done.touch()
    return folder


def _command_of(package: str) -> str:
    """The name under which ``go install`` puts a package: the last part of its path that is no version."""
    *_, before, last = package.partition("@")[0].split("/")
    return before if re.fullmatch(r"v\d+", last) else last


def _needed(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise NotInstalledError(f"there is no {program} on this machine")
    return found


def _run(command: Sequence[str], folder: Path, **environment: str) -> str:
    """Run a registry's client; what it prints. Raises `NotInstalledError` with the end of what it told."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_INSTALL_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise NotInstalledError(f"{shlex.join(command)} took longer than {_INSTALL_TIMEOUT_S} s") from error
    if done.returncode != 0:
        told = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
        raise NotInstalledError(f"{Path(command[0]).name} failed: {told[-1]}")
    return done.stdout
