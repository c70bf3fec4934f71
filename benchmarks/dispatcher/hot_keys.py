"""What `SpreadKeys` makes of hot keys, beside hashing: ``python -m benchmarks.dispatcher.hot_keys``.

Keys are drawn by Zipf's law, exponent 1.2. The imbalance is the fullest partition's records by the mean.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections import Counter

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
        hashed = Counter(partition_of(key, partitions) for key in keys)
        tracemalloc.start()
        spreader = KeySpreader(SpreadKeys(choices=2), partitions)
        for key in keys:
            spreader.partition(key, 100)
        state_bytes = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        places: dict[bytes, set[int]] = {}
        spreader, spread = KeySpreader(SpreadKeys(choices=2), partitions), Counter[int]()
        began_s = time.process_time()
        chosen = [spreader.partition(key, 100) for key in keys]
        cost_us = (time.process_time() - began_s) / len(keys) * 1e6
        for key, partition in zip(keys, chosen, strict=True):
            spread[partition] += 1
            places.setdefault(key, set()).add(partition)
        hottest = max(Counter(keys).items(), key=lambda each: each[1])[0]
        widths = [len(each) for each in places.values()]
        print(
            f"{partitions} partitions: imbalance {_imbalance(spread, partitions):.3f}, by hashing"
            f" {_imbalance(hashed, partitions):.2f}; the hottest key is in {len(places[hottest])}, a key on average in"
            f" {sum(widths) / len(widths):.2f}; {state_bytes / 1000:,.0f} kB, {cost_us:.1f} µs a record"
        )


def _imbalance(placed: Counter[int], partitions: int) -> float:
    return max(placed.values()) * partitions / placed.total()


if __name__ == "__main__":
    main()
