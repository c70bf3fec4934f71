"""The wheel and the sdist hold the whole package, however the checkout was made."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
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


def test_the_wheel_built_from_the_sdist_holds_every_part(checkout: Path, tmp_path: Path) -> None:
    built = _build(checkout, "sdist")
    assert built.returncode == 0, built.stderr
    [sdist] = (checkout / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        # Python 3.11.0 to 3.11.3 have no filters yet; later ones warn when none is named.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path / "unpacked")
    [unpacked] = (tmp_path / "unpacked").iterdir()
    built = _build(unpacked, "wheel")
    assert built.returncode == 0, built.stderr
    [wheel] = (unpacked / "dist").glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    expected = {f"loadwise/{path.relative_to(ROOT)}" for part in PARTS for path in (ROOT / part).rglob("*.py")}
    assert expected <= packed
    assert {"loadwise/py.typed", "loadwise/__init__.py", "loadwise/pytest_plugin.py", "pyspark_loadwise.py"} <= packed
    [entry_points] = (name for name in packed if name.endswith(".dist-info/entry_points.txt"))
    assert "[pytest11]\nloadwise = loadwise.pytest_plugin" in zipfile.ZipFile(wheel).read(entry_points).decode()


def test_a_checkout_that_lost_its_links_is_refused_by_name(checkout: Path) -> None:
    link = checkout / "src" / "loadwise" / "protocol"
    link.unlink()
    link.write_text("../../protocol")
    built = _build(checkout, "wheel")
    assert built.returncode != 0
    assert "src/loadwise/protocol is not a link to ../../protocol" in built.stderr + built.stdout
