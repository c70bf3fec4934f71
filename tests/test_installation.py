"""The command that an error gives for a missing part, for every way in which pip records an installation (PEP 610)."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from loadwise.installation import command_for, pip_install

URL = "https://example.org/loadwise"


def recorded(url: str, **more: object) -> str:
    return json.dumps({"url": url, **more})


@pytest.mark.parametrize(
    ("origin", "url"),
    [
        (None, None),
        (recorded(f"{URL}.git", vcs_info={"vcs": "git", "commit_id": "1a2b"}), f"git+{URL}.git@1a2b"),
        (recorded(f"{URL}-1.whl", archive_info={}), f"{URL}-1.whl"),
    ],
)
def test_what_pip_is_told_is_a_requirement(origin: str | None, url: str | None) -> None:
    *command, text = shlex.split(command_for(origin, "spark"))
    assert command == ["pip", "install"]
    requirement = Requirement(text)
    assert (requirement.name, requirement.extras, requirement.url) == ("loadwise", {"spark"}, url)


@pytest.mark.parametrize("editable", [False, True])
def test_a_folder_stays_a_folder(editable: bool) -> None:
    origin = recorded("file:///home/me/my%20code", dir_info={"editable": editable})
    flag = ["--editable"] if editable else []
    assert shlex.split(command_for(origin, "demo")) == ["pip", "install", *flag, "/home/me/my code[demo]"]


def test_this_installation_is_a_folder_that_pip_can_install() -> None:
    origin = distribution("loadwise").read_text("direct_url.json")
    if origin is None or "dir_info" not in origin:
        pytest.skip("these tests run from an installation that did not come from a folder")
    folder = shlex.split(pip_install("optimal"))[-1].removesuffix("[optimal]")
    assert (Path(folder) / "pyproject.toml").is_file()


def test_a_checkout_that_nobody_installed(tmp_path: Path) -> None:
    source = Path(__file__).parents[1] / "src"
    code = f"import sys; sys.path.insert(0, {str(source)!r}); from loadwise.installation import pip_install as command"
    # -S: no site-packages, so no record of an installation either.
    command = [sys.executable, "-S", "-c", f"{code}; print(command('demo'))"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == f"pip install --editable '{source.parent}[demo]'"
