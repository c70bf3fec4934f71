"""The numbers by which a group's load is judged, by stage, and why each is what it is; the simulator sweeps them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalsTuning:
    """How fast partitions are taken to fill; see `loadwise.assignor.live.arrivals`."""

    readings: int = 13
    """So many readings are kept: a minute of them, where they come every five seconds."""
    oldest_ms: int = 180_000
    """Readings older than this count no more, but for the last one before the newest."""
    at_least_ms: int = 4_000
    """A rate is the mean over so long at least..."""
    enough: float = 300.0
    """... and as long as it takes for so many records to come to the mean partition: they vary by 6 % then."""
    risen: float = 2.0
    """A rate that has risen to so many times what it was must be seen by a second reading: the end may be wrong..."""
    rose: float = 1.25
    """... unless the reading before has it so many times higher already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityTuning:
    """When a member goes on, lags or stands still; see `loadwise.assignor.live.activity` and `.watched`."""

    backlog_s: float = 1.0
    """A member lags where more than so many seconds of its arrivals wait..."""
    never_a_backlog: float = 10.0
    """... and more than so few records, however slowly they come."""
    still_s: float = 5.0
    """What has a backlog and has shown nothing for so long (who joins in a shorter rebalance polls)..."""
    still_commits: float = 2.0
    """... and for the time of so many commits, stands still: a partition, or its member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityTuning:
    """What members can process; see `loadwise.assignor.live.evidence` and `.capacity`."""

    shortest_ms: int = 8_000
    """A member must be seen for at least this long before its processing counts as a measurement."""
    longest_ms: int = 30_000
    """What a member processes is its mean over the last half minute, or less if it was not watched that long..."""
    longest_commits: int = 4
    """... or over the time of so many commits, where these come rarely."""
    recent_ms: int = 60_000
    """What a member has told or shown so long ago is not compared any more with what it shows or tells now."""
    held_ms: int = 15_000
    """What members say that fell behind counts again so long after the last of them was seen to do so."""
    recalled: float = 0.9
    """How much of an estimate is kept that another leader has made; the rest is the median of the group."""
    measured_within: float = 0.16
    """What a member measures of itself is off by so many octaves, which is an eighth: two standard errors."""
    twins: float = 0.3
    """Members less than so many octaves from the median are as fast as it is: identical machines are identical."""
    furthest: float = 8.0
    """Estimates stay within an eighth of the median and eight times the median."""
    used: float = 0.7
    """A member that keeps up with more than what others can do is taken to be used to this part of its capacity."""
    half_life_ms: int = 1_800_000
    """A low estimate that nothing confirms has come half of its way back to the median after this time."""
    forgotten_ms: int = 3_600_000
    """What is known of a member is kept for so long after it was learned, while the member is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostTuning:
    """What records of topics cost; see `loadwise.assignor.live.costs`. In octaves."""

    furthest: float = 7.0
    """Costs differ by so much at most: what is beyond is an error of measuring."""
    apart: float = 0.7
    """From here on a topic is told from the busiest one..."""
    alike: float = 0.5
    """... and below this it is not any more."""
    stays: float = 0.25
    """A cost stays as it is while what is found now is no further away: it must not go to and fro."""
    much_busier: float = 2.0
    """Topics are compared with the busiest one until another has so many times its arrivals: it must change rarely."""


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
    outdone_ms: int = 8_000
    """Who has processed more than its capacity for so long has more of it: work comes in steps."""
    lately_ms: int = 6_000
    """A backlog that has grown grows for so long, whatever the next interval shows: it may be a short one."""
    in_hand: float = 0.3
    """Seconds of work that a program may have in hand when it commits; two notes differ by so much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandTuning:
    """What a partition asks of its member; see `loadwise.assignor.live.demand`."""

    drain_s: float = 30.0
    """A backlog is planned to be gone after so many seconds: in less, small backlogs would move partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestraintTuning:
    """When a rebalance is worth its price; see `loadwise.assignor.live.restraint`."""

    patience_s: float = 2.0
    """Seconds of one member's work that an imbalance must have cost: most bursts are over by then."""
    least_interval_s: float = 10.0
    """Time from the end of one rebalance to a request for another: members are deployed one after the other."""
    longest_step_s: float = 15.0
    """A pause between readings counts for no more than this: what was in between is not known."""
    stopped_share: float = 0.2
    """A cooperative rebalance costs every member this part of its time at least: members join again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonTuning:
    """When most members fall behind at a time; see `loadwise.assignor.live.common`."""

    at_least_ms: int = 15_000
    """So long after most members began to fall behind, or ceased to, no rebalance is asked for..."""
    longest_ms: int = 60_000
    """... or so long while members that would get partitions have a backlog themselves."""


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
class WorkTuning:
    """What a member measures of itself; see `loadwise.assignor.live.work`."""

    moment_ns: int = 250_000_000
    """Polls that give alike within this time are added up at once: a program may poll for each record."""
    again_ns: int = 2_000_000_000
    """What is expected of a poll is found again after so long."""
    half_life_s: float = 90.0
    """What was measured is forgotten by half in this time: a machine may get slower, and records may cost more."""
    enough_s: float = 0.5
    """So much work must have been seen before it is a measurement..."""
    share: float = 0.02
    """... and so large a part of all time: an application that polls again at once does its work elsewhere."""
    large_poll: float = 100.0
    """What a large poll gives at least. Members get such polls once they are busy."""
    fewest_polls: float = 4.0
    """So many polls must have given records for a speed..."""
    precise: float = 0.05
    """... and its standard error must be no larger than this part of it."""
    fewest_polls_of_topics: float = 20.0
    """So many polls must have given records for the times of topics..."""
    polls_of_topic: float = 3.0
    """... so many must have had the topic..."""
    precise_for_topics: float = 0.2
    """... and a standard error up to this part of a time will do: the leader takes the median of all members."""
    topics: int = 32
    """Of so many topics the times are measured; all others are one."""
    far: float = 8.0
    """A poll that takes longer than so many times what is expected counts as no more: a process may stand still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """All of them."""

    arrivals: ArrivalsTuning = field(default_factory=ArrivalsTuning)
    activity: ActivityTuning = field(default_factory=ActivityTuning)
    capacity: CapacityTuning = field(default_factory=CapacityTuning)
    cost: CostTuning = field(default_factory=CostTuning)
    seen: SeenTuning = field(default_factory=SeenTuning)
    demand: DemandTuning = field(default_factory=DemandTuning)
    restraint: RestraintTuning = field(default_factory=RestraintTuning)
    common: CommonTuning = field(default_factory=CommonTuning)
    scaling: ScalingTuning = field(default_factory=ScalingTuning)
    work: WorkTuning = field(default_factory=WorkTuning)
    soon_s: float = 2.0
    """A reading that shows an overload is confirmed by another one so much later."""
