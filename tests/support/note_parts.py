"""Notes of `loadwise steer` in more parts than they need: small ones, for tests of parts."""

from __future__ import annotations

import base64

from loadwise.protocol.steering_note import Part, Plan


def parts_of(plan: Plan, sequence: int, number: int) -> list[str]:
    """The rack ids of a plan in at most this many parts."""
    whole = Part.decode(plan.encode(sequence)[0])
    assert whole is not None
    step = -(-len(whole.data) // number)
    pieces = [whole.data[start : start + step] for start in range(0, len(whole.data), step)]
    texts = [base64.b64encode(each).rstrip(b"=").decode() for each in pieces]
    head = f"loadwise-plan:1 {sequence}"
    return [f"{head} {place} {len(texts)} {whole.checksum} {text}" for place, text in enumerate(texts)]
