package io.loadwise.broker;

import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;

/** The partitions of one member, by topic. */
record Owned(Map<Uuid, Set<Integer>> partitions) implements MemberAssignment {}
