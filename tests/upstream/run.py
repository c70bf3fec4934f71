"""Runs other projects' own tests against our coordinator: kafka-python's integration tests and franz-go's client tests.

``make test-upstream`` runs both, ``make test-upstream CLIENTS=franz-go`` one. The sources come from PyPI and the Go
proxy, in the versions that the interop tests use. What asks for APIs that the coordinator does not have is left out, by
name below.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from coordinator_process import coordinator

# kafka-python's source archive misses two files of its tests: the package's own, and what starts services for them. A
# broker that runs already needs no more of the latter than this.
MISSING = {
    "__init__.py": "",
    "service.py": """
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port


class SpawnedService:
    def __init__(self, args=None, env=None):
        raise RuntimeError("the tests are to use the broker that runs")
""",
}
# As the broker has that kafka-python's tests are made for: four partitions a topic, and ACLs that hinder nobody.
OPTIONS = (
    "--config=num.partitions=4",
    "--config=super.users=User:ANONYMOUS",
    "--config=authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
)
FRANZ_GO = "github.com/twmb/franz-go@v1.22.2"
NOT_SERVED = {
    "franz-go": (),
    "kafka-python": (
        "test_alter_replica_log_dirs",
        "test_create_partitions",  # wants a broker whose id is 0; ours begin at 1
    ),
}


def kafka_python(address: str, folder: Path) -> int:
    """Run its integration tests, of the version that is installed; the exit status."""
    package = f"kafka-python=={version('kafka-python')}"
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "kafka-python", package]
    subprocess.run(download, cwd=folder, check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as sources:
        sources.extraction_filter = getattr(tarfile, "data_filter", None)
        sources.extractall(folder)
    (root,) = (each for each in folder.iterdir() if each.is_dir())
    for name, text in MISSING.items():
        (root / "test" / name).write_text(text)
    (root / "servers" / "4.3.0" / "kafka-bin").mkdir(parents=True)  # looked for even where a broker runs already
    left_out = " and ".join(f"not {name}" for name in NOT_SERVED["kafka-python"])
    tests = [f"test/integration/test_{each}_integration.py" for each in ("admin", "consumer", "producer")]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout", "300", "-k", left_out, *tests]
    environment = os.environ | {"PYTHONPATH": str(root), "KAFKA_URI": f"kafka://{address}", "KAFKA_VERSION": "4.3.0"}
    return subprocess.run(command, cwd=root, env=environment, check=False).returncode


def franz_go(address: str, folder: Path) -> int:
    """Run the tests of its client, groups of both protocols among them; the exit status."""
    go = shutil.which("go")
    if go is None:
        raise SystemExit("franz-go's tests need Go 1.21 or later: apt-get install golang-go")
    found = subprocess.run([go, "mod", "download", "-json", FRANZ_GO], cwd=folder, check=True, stdout=subprocess.PIPE)
    root = folder / "franz-go"
    shutil.copytree(json.loads(found.stdout)["Dir"], root, copy_function=shutil.copyfile)
    for each in (root, *root.rglob("*")):
        each.chmod(0o755 if each.is_dir() else 0o644)  # Go keeps its modules read-only
    environment = os.environ | {"KGO_SEEDS": address, "KGO_TEST_RF": "1", "KGO_TEST_RECORDS": "20000"}
    left_out = ["-skip", "|".join(NOT_SERVED["franz-go"])] if NOT_SERVED["franz-go"] else []
    command = [go, "test", "-count=1", "-timeout=900s", *left_out, "./pkg/kgo"]
    return subprocess.run(command, cwd=root, env=environment, check=False).returncode


SUITES = {"kafka-python": kafka_python, "franz-go": franz_go}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("clients", nargs="*", help=f"{' or '.join(SUITES)} (default: both)")
    chosen = options.parse_args().clients or list(SUITES)
    failed = []
    for name in chosen:
        print(f"{name}'s own tests; left out: {', '.join(NOT_SERVED[name]) or 'none'}", flush=True)
        with coordinator(*OPTIONS) as address, tempfile.TemporaryDirectory() as folder:
            if SUITES[name](address, Path(folder)) != 0:
                failed.append(name)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
