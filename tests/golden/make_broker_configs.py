"""Make the table of all that a broker of Kafka's can be configured with, from Kafka's own definitions.

    python tests/golden/make_broker_configs.py --libs FOLDER_OF_KAFKAS_JARS > coordinator/configs/broker_configs.tsv

Needs a JDK 17; CONTRIBUTING.md says where the jars are.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path


def answers(libs: str | Path, pairs: str = "") -> str:
    """What ``BrokerConfigs.java`` writes: the table, or whether a broker would start with each line ``name=value``."""
    java = ["java", "-Xmx256m", "-cp", f"{libs}/*", str(Path(__file__).with_name("BrokerConfigs.java"))]
    command = [*java, "check"] if pairs else java
    return subprocess.run(command, input=pairs, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Write the table to standard output."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--libs", required=True, help="folder with the jars of org.apache.kafka:kafka_2.13:4.3.1")
    sys.stdout.write(answers(options.parse_args().libs))


if __name__ == "__main__":
    main()
