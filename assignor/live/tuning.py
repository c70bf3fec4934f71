"""The constants that judge a group's load, by stage, with the reason for each value; the simulator sweeps them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalsTuning:
    """How arrival rates are measured; see `loadwise.assignor.live.arrivals`."""

    readings: int = 13  # Readings that are kept: a minute of them, at one every five seconds.
    oldest_ms: int = 180_000  # Readings older than this are dropped, except the last one before the newest.
    at_least_ms: int = 4_000  # A rate is the mean over at least this time...
    enough: float = 300.0  # ... and until this many records have arrived in the mean partition: they vary by 6 % then.
    enough_to_fall: float = 100.0  # Half of so many records or less is no chance: the rate has fallen.
    risen: float = 2.0  # A rate that rises by this factor needs a second reading: it may be a batch or a wrong end.


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityTuning:
    """When a member makes progress, lags or stands still; see `loadwise.assignor.live.activity` and `.watched`."""

    backlog_s: float = 1.0  # A member lags if its backlog is more than the arrivals of this many seconds...
    never_a_backlog: float = 10.0  # ... and more than this many records, however slowly they arrive.
    still_s: float = 5.0  # A partition or member with a backlog stands still if it makes no progress for this time...
    still_commits: float = 2.0  # ... and for the time of this many commits. To join within ``still_s`` is to poll.

    def still_ms(self, slack_s: float) -> int:
        """Return the time without progress for a member that commits about every ``slack_s`` seconds."""
        return round(1000 * max(self.still_s, self.still_commits * slack_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitTuning:
    """How often an application commits by itself; see `loadwise.assignor.live.commits`."""

    least_s: float = 6.0  # Like the default of auto-commit and a second: readings do not show shorter intervals.
    unknown_s: float = 90.0  # The interval until commits show it: once a minute is usual, and a false alarm is worse.
    gaps: int = 2  # The newest gaps of a member that count. The shortest is its interval: a pause makes a single one.


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityTuning:
    """How capacities are measured; see `loadwise.assignor.live.evidence` and `.capacity`."""

    shortest_ms: int = 8_000  # A member must be seen for this long before its processing counts as a measurement.
    longest_ms: int = 30_000  # A member's rate is its mean over the last half minute...
    longest_commits: int = 4  # ... or over the time of this many commits, if they are rare.
    recent_ms: int = 60_000  # A report or observation older than this is not compared with newer ones.
    contradicts: int = 3  # A member's report is contradicted by this many intervals: a shift may fill two.
    held_ms: int = 15_000  # Reports of members that fell behind count again if no member fell behind for this time.
    measured_within: float = 0.16  # The error of a member's own measurement in octaves: two standard errors, an eighth.
    twins: float = 0.3  # Members within this many octaves of the median get it: identical machines get equal values.
    furthest: float = 128.0  # Estimates stay within this factor of the median: partitions may cost that much more.
    used: float = 0.7  # Assumed utilisation of a member that keeps up with more than the capacity of others.
    half_life_ms: int = 1_800_000  # An unconfirmed low estimate is halfway back to the median after this time.
    forgotten_ms: int = 3_600_000  # The estimate of an absent member is kept for this time after it was made.


@dataclass(frozen=True, slots=True, kw_only=True)
class CostTuning:
    """How costs of topics are learned; see `loadwise.assignor.live.costs`. In octaves."""

    furthest: float = 7.0  # The largest difference of costs: a larger one is a measuring error.
    apart: float = 0.7  # A topic gets its own cost if it differs from the busiest one by at least this...
    alike: float = 0.5  # ... and loses it below this.
    stays: float = 0.25  # A cost does not change by less than this, so that it does not oscillate.
    much_busier: float = 2.0  # Another topic becomes the busiest one with this many times its arrivals, which is rare.


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCostTuning:
    """How costs follow a user's own loads; see `loadwise.assignor.live.own_costs`."""

    newest: float = 0.3  # The weight of the newest loads in the mean.
    noise: float = 0.1  # Costs stay until they are wrong by this part of the demand: each change begins measuring anew.
    shown: float = 1 / 3  # A member's own speed counts if it has at least this part of it to do: others extrapolate.
    furthest: float = 128.0  # A partition's record costs at most this many mean ones, or this part of one.


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTuning:
    """When a member is seen to fall behind; see `loadwise.assignor.live.seen`."""

    marks: int = 8  # Commits that are kept of each member: half a minute of readings.
    shortest_ms: int = 1_500  # The shortest interval between two commits: in less, most records would be those in hand.
    off_ms: int = 15_000  # A note read later than this after it was written has another machine's clock.
    intervals: int = 2  # Intervals in a row in which the backlog must grow: a pause lies within one of them.
    deviations: float = 3.0  # A backlog grows if the growth exceeds this many standard deviations of the arrivals...
    least_part: float = 0.05  # ... and this part of them, because clocks and records in hand vary.
    outdone_ms: int = 8_000  # A member that exceeds its capacity for this time has a larger one; less may be a step.
    lately_ms: int = 6_000  # A backlog that grew counts as growing for this time: the next interval may be a short one.
    in_hand: float = 0.3  # Seconds of work that a program has in hand when it commits: the error between two notes.


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandTuning:
    """How demand is computed; see `loadwise.assignor.live.demand`."""

    drain_s: float = 30.0  # Seconds in which to process a backlog: with fewer, small backlogs would move partitions.


@dataclass(frozen=True, slots=True, kw_only=True)
class RestraintTuning:
    """When a rebalance is worth its cost; see `loadwise.assignor.live.restraint`."""

    patience_s: float = 2.0  # Seconds of one member's work that an imbalance must cost first: most bursts end earlier.
    longest_step_s: float = 15.0  # A longer pause between readings counts as this: the imbalance in it is unknown.
    stopped_share: float = 0.2  # The least part of a cooperative rebalance that costs work: all members join again.
    saved_s: float = 600.0  # Unused standstill is kept for this time: some shifts in a row are answered at once.
    room: float = 0.15  # What a busy member with time left counts while rebalances have cost more lag than they saved.
    stop_s: float = 2.0  # The standstill of a rebalance that a leader of an older version requested.
    dearest: float = 8.0  # The most by which the price rises while gains do not last until they have paid for it.


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowTuning:
    """How the lag under ``sticky`` is estimated; see `loadwise.assignor.live.shadow`."""

    half_life_s: float = 600.0  # The lags are means of about this time: a burst is shorter, a shift of habits longer.
    at_least: float = 0.05  # The least part of such a mean that readings must fill: three quarters of a minute.
    tolerated: float = 0.1  # ``sticky`` is clearly better if the lag is above its lag by this part...
    tolerated_s: float = 0.1  # ... and by this much, which is less than readings five seconds apart can show.


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonTuning:
    """When most members fall behind at the same time; see `loadwise.assignor.live.common`."""

    at_least_ms: int = 15_000  # No rebalance for this time after most members begin or cease to fall behind...
    longest_ms: int = 60_000  # ... or for this time if members that would get partitions have a backlog themselves.


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingTuning:
    """When a group should have fewer members; see `loadwise.assignor.live.scaling`."""

    down_after_s: float = 300.0  # Fewer must suffice for this time, as in Kubernetes: each change costs a rebalance...
    spare: float = 0.9  # ... at this part of the healthy utilisation, or the next small rise brings the member back.
    missing_for_s: float = 30.0  # Members are missing once they have been needed for this time: a burst is shorter.
    longest_gap_s: float = 60.0  # Earlier readings are dropped after a longer gap.


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTuning:
    """How a member measures its own speed; see `loadwise.assignor.live.work`."""

    moment_ns: int = 250_000_000  # Similar polls within this time are summed: a program may poll for each record.
    again_ns: int = 2_000_000_000  # The expected times of polls are computed again after this time.
    half_life_s: float = 90.0  # Half-life of measurements: a machine may get slower, and records may cost more.
    enough_s: float = 0.5  # The least work for a measurement...
    share: float = 0.02  # ... and its least part of all time: an application that polls at once works elsewhere.
    large_poll: float = 100.0  # The least records of a large poll. Members get such polls once they are busy.
    fewest_polls: float = 4.0  # The least polls with records for a speed...
    precise: float = 0.05  # ... and the largest standard error, as a part of the speed.
    fewest_polls_of_topics: float = 20.0  # The least polls with records for the times of topics...
    polls_of_topic: float = 3.0  # ... the least polls with records of the topic...
    precise_for_topics: float = 0.2  # ... and the largest standard error: the leader takes the median of all members.
    topics: int = 32  # Topics that are measured separately; all others count as one.
    far: float = 8.0  # A poll's time is capped at this many times the expected one, because a process may stand still.


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The constants of all stages."""

    arrivals: ArrivalsTuning = field(default_factory=ArrivalsTuning)
    activity: ActivityTuning = field(default_factory=ActivityTuning)
    commits: CommitTuning = field(default_factory=CommitTuning)
    capacity: CapacityTuning = field(default_factory=CapacityTuning)
    cost: CostTuning = field(default_factory=CostTuning)
    own_cost: OwnCostTuning = field(default_factory=OwnCostTuning)
    seen: SeenTuning = field(default_factory=SeenTuning)
    demand: DemandTuning = field(default_factory=DemandTuning)
    restraint: RestraintTuning = field(default_factory=RestraintTuning)
    shadow: ShadowTuning = field(default_factory=ShadowTuning)
    common: CommonTuning = field(default_factory=CommonTuning)
    scaling: ScalingTuning = field(default_factory=ScalingTuning)
    work: WorkTuning = field(default_factory=WorkTuning)
    soon_s: float = 2.0  # A reading that shows an overload is confirmed by another one this much later.
