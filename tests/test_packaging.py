"""The wheel and the sdist hold the whole package, however the checkout was made."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BROKER = "assignor/broker/src/main/java/io/loadwise/broker"
PARTS = ("assignor", "coordinator", "protocol", "spark_source")


def _build(checkout: Path, target: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(checkout / "dist")]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what git tracks, links kept as links."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode != 0:
        pytest.skip("this is not a git checkout")
    copy = tmp_path / "checkout"
    for name in filter(None, tracked.stdout.split("\0")):
        source, target = ROOT / name, copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(source.readlink())
        elif source.exists():
            target.write_bytes(source.read_bytes())
    return copy


def _wheel_of(built_in: Path) -> set[str]:
    built = _build(built_in, "wheel")
    assert built.returncode == 0, built.stderr
    [wheel] = (built_in / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [entry_points] = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
        assert "[pytest11]\nloadwise = loadwise.pytest_plugin" in archive.read(entry_points).decode()
        [metadata] = (name for name in names if name.endswith(".dist-info/METADATA"))
        links = re.findall(r"\]\(([^)]*)\)", archive.read(metadata).decode())
    assert len(names) == len(set(names))
    assert len(links) > 20
    assert all(link.startswith(("https://", "#")) for link in links), "a page of PyPI has no other files"
    return set(names)


EVERY_MODULE = {f"loadwise/{path.relative_to(ROOT)}" for part in PARTS for path in (ROOT / part).rglob("*.py")}
EVERY_MODULE |= {f"loadwise/assignor/clients/{client}/stock.pyi" for client in ("aiokafka", "kafka_python")}
EVERY_MODULE |= {"loadwise/protocol/kafka_messages.pyi", "loadwise/protocol/messages.txt"}
EVERY_MODULE |= {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/loadwise/dispatcher").rglob("*.py")}
EVERY_MODULE |= {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}
EVERY_MODULE |= {"loadwise/py.typed", "loadwise/__init__.pyi", "loadwise/coordinator/__init__.pyi"}


def test_the_wheel_built_from_the_sdist_holds_every_part(checkout: Path, tmp_path: Path) -> None:
    built = _build(checkout, "sdist")
    assert built.returncode == 0, built.stderr
    [sdist] = (checkout / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
        assert all(member.isfile() or member.isdir() for member in members), "links are lost on some systems"
        assert not any("/src/loadwise/assignor/" in member.name for member in members), "each part once"
        sources = {member.name.partition("/")[2] for member in members}
        assert {"assignor/broker/pom.xml", f"{BROKER}/LoadwiseAssignor.java"} <= sources
        assert not any(name.endswith((".jar", ".class")) for name in sources)
        # Python 3.11.0 to 3.11.3 have no filters yet; later ones warn when none is named.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path / "unpacked")
    [unpacked] = (tmp_path / "unpacked").iterdir()
    assert _wheel_of(unpacked) == _wheel_of(checkout)
    [wheel] = (unpacked / "dist").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert names >= EVERY_MODULE
    assert not any("broker/src" in name for name in names), "brokers run it"


def test_a_checkout_that_lost_its_links_builds_the_same_wheel_but_is_not_installed_editable(checkout: Path) -> None:
    link = checkout / "src" / "loadwise" / "protocol"
    link.unlink()
    link.write_text("../../protocol")
    assert _wheel_of(checkout) >= EVERY_MODULE
    program = "from hatchling.build import build_editable; build_editable('dist')"
    refused = subprocess.run([sys.executable, "-c", program], cwd=checkout, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "src/loadwise/protocol is not a link to ../../protocol" in refused.stderr + refused.stdout
