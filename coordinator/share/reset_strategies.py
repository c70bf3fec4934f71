"""Where a share group begins in a partition that it has not read yet (share.auto.offset.reset): what can be set."""

from __future__ import annotations

import re

BY_DURATION = "by_duration:"
_DURATION = re.compile(
    r"P(?:(?P<days>[0-9]{1,15})D)?(?:T(?:(?P<hours>[0-9]{1,15})H)?(?:(?P<minutes>[0-9]{1,15})M)?(?:(?P<seconds>[0-9]{1,15})(?:\.(?P<fraction>[0-9]{1,15}))?S)?)?",
    re.IGNORECASE,
)


def duration_ms(text: str) -> int | None:
    """An ISO 8601 duration as Java's ``Duration.parse`` reads it, in milliseconds; None if it is none."""
    found = _DURATION.fullmatch(text)
    if found is None or text[-1:] in "PpTt":
        return None
    days, hours, minutes, seconds = (int(found[name] or 0) for name in ("days", "hours", "minutes", "seconds"))
    fraction_ms = int(((found["fraction"] or "") + "000")[:3])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + fraction_ms


def is_reset_strategy(text: str) -> bool:
    """Whether this is a value of share.auto.offset.reset: latest, earliest, or by_duration:PT1H."""
    kind = text.lower()
    return kind in {"latest", "earliest"} or (
        kind.startswith(BY_DURATION) and duration_ms(text[len(BY_DURATION) :]) is not None
    )
