"""What `SpreadKeys` makes of hot keys, beside hashing: ``python -m benchmarks.dispatcher.hot_keys``.

Keys are drawn by Zipf's law, exponent 1.2. The imbalance is the fullest partition's records by the mean.
"""

from __future__ import annotations

import argparse

import numpy as np

from loadwise import SpreadKeys
from loadwise.dispatcher.keys import partition_of
from loadwise.dispatcher.spread_keys import KeySpreader

EXPONENT = 1.2


def main() -> None:
    """Spread the same records over several numbers of partitions, and print a table."""
    options = argparse.ArgumentParser(prog="benchmarks.dispatcher.hot_keys", description=__doc__)
    options.add_argument("--keys", type=int, default=100_000)
    options.add_argument("--records", type=int, default=300_000)
    given = options.parse_args()
    weights = np.arange(1, given.keys + 1) ** -EXPONENT
    drawn = np.random.default_rng(1).choice(given.keys, size=given.records, p=weights / weights.sum())
    keys = [b"key-%d" % key for key in drawn.tolist()]
    for partitions in (12, 36, 90, 360):
        spreader = KeySpreader(SpreadKeys(choices=2), partitions)
        spread = [spreader.partition(key, 100) for key in keys]
        hashed = [partition_of(key, partitions) for key in keys]
        ours, theirs = _imbalance(spread, partitions), _imbalance(hashed, partitions)
        print(f"{partitions} partitions: imbalance {ours:.3f}, by hashing {theirs:.2f}")


def _imbalance(placed: list[int], partitions: int) -> float:
    records = np.bincount(placed, minlength=partitions)
    return float(records.max() / records.mean())


if __name__ == "__main__":
    main()
