"""Write the options into the guide: ``python -m loadwise.spark_source.options docs/spark.md``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from loadwise.spark_source.options.declared import guide

TABLE = re.compile(r"(?<=<!-- begin: options -->\n).*?(?=<!-- end -->)", re.DOTALL)

if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(TABLE.sub(lambda _: guide(), page.read_text()))
