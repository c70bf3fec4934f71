"""The numbers by which a group's load is judged, by stage, and why each is what it is; the simulator sweeps them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTuning:
    """When a member is seen to fall behind; see `loadwise.assignor.live.seen`."""

    marks: int = 8
    """Commits of each member that are kept: half a minute of readings."""
    shortest_ms: int = 1_500
    """Commits that are nearer to each other are no interval: what a program has in hand would be most of it."""
    off_ms: int = 15_000
    """A note is read up to so long after it was written, or its clock is another machine's."""
    intervals: int = 2
    """So many intervals in a row: a pause lies within one of them."""
    deviations: float = 3.0
    """A backlog grows where that is more than so many standard deviations of the arrivals..."""
    least_part: float = 0.05
    """... and than this part of them: clocks and what is in hand vary."""
    in_hand: float = 0.3
    """Seconds of work that a program may have in hand when it commits; two notes differ by so much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandTuning:
    """What a partition asks of its member; see `loadwise.assignor.live.demand`."""

    drain_s: float = 30.0
    """A backlog is planned to be gone after so many seconds: in less, small backlogs would move partitions..."""
    saving: float = 64.0
    """... or after so many times as many, where the rebalances of an hour must be saved for what arrives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestraintTuning:
    """When a rebalance is worth its price; see `loadwise.assignor.live.restraint`."""

    patience_s: float = 2.0
    """Seconds of one member's work that an imbalance must have cost: most bursts are over by then."""
    least_interval_s: float = 10.0
    """Time from the end of one rebalance to a request for another: members are deployed one after the other."""
    first_back_off_s: float = 20.0
    """So long the next one waits after one that did not help; twice as long after each further one..."""
    longest_back_off_s: float = 1800.0
    """... up to this: whatever was the matter may be over."""
    judged_after_s: float = 15.0
    """So long after its end a rebalance must have shown its effect: what waits in what it moved was foreseen."""
    longest_step_s: float = 15.0
    """A pause between readings counts for no more than this: what was in between is not known."""
    readings: int = 2
    """So many readings in a row must ask for it: one of them may be wrong."""
    stopped_share: float = 0.2
    """A cooperative rebalance costs every member this part of its time at least: members join again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingTuning:
    """When a group should have fewer members; see `loadwise.assignor.live.scaling`."""

    down_after_s: float = 300.0
    """Fewer members must have done for so long, as in Kubernetes' autoscaler: each change costs a rebalance..."""
    spare: float = 0.9
    """... and at this part of the healthy utilisation, or the next small rise would bring the member back."""
    longest_gap_s: float = 60.0
    """After so long without a reading, what was known before counts no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """All of them."""

    seen: SeenTuning = field(default_factory=SeenTuning)
    demand: DemandTuning = field(default_factory=DemandTuning)
    restraint: RestraintTuning = field(default_factory=RestraintTuning)
    scaling: ScalingTuning = field(default_factory=ScalingTuning)
    soon_s: float = 2.0
    """A reading that shows an overload is confirmed by another one so much later."""
