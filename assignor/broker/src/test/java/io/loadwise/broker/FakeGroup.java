package io.loadwise.broker;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;

/** A group as a broker shows it to an assignor. */
final class FakeGroup implements GroupSpec, SubscribedTopicDescriber {
    final Map<Uuid, Integer> topics = new LinkedHashMap<>();
    final Map<String, FakeMember> members = new LinkedHashMap<>();

    record FakeMember(
            Optional<String> instanceId,
            Optional<String> rackId,
            Set<Uuid> subscribedTopicIds,
            Map<Uuid, Set<Integer>> partitions)
            implements MemberSubscription, MemberAssignment {}

    FakeGroup topic(Uuid id, int partitions) {
        topics.put(id, partitions);
        return this;
    }

    FakeGroup member(
            String id, String instanceId, String rackId, Set<Uuid> subscribed, Map<Uuid, Set<Integer>> owned) {
        members.put(id, new FakeMember(Optional.ofNullable(instanceId), Optional.ofNullable(rackId), subscribed, owned));
        return this;
    }

    /** Adds a steering member for each part. */
    FakeGroup note(List<String> parts) {
        for (int index = 0; index < parts.size(); index++) {
            member("~steer" + members.size(), null, parts.get(index), Set.of(), Map.of());
        }
        return this;
    }

    /** Returns this group with an answer as its present assignment. */
    FakeGroup after(GroupAssignment answer) {
        FakeGroup after = new FakeGroup();
        after.topics.putAll(topics);
        members.forEach((id, member) -> after.members.put(
                id,
                new FakeMember(
                        member.instanceId,
                        member.rackId,
                        member.subscribedTopicIds,
                        answer.members().get(id).partitions())));
        return after;
    }

    /** Returns this group with its members in another order. */
    FakeGroup shuffled(Random random) {
        FakeGroup shuffled = new FakeGroup();
        shuffled.topics.putAll(topics);
        List<String> ids = new ArrayList<>(members.keySet());
        Collections.shuffle(ids, random);
        ids.forEach(id -> shuffled.members.put(id, members.get(id)));
        return shuffled;
    }

    GroupAssignment assigned() {
        return new LoadwiseAssignor().assign(this, this);
    }

    /** Returns topic, partition and owner of an answer. Fails for a partition with two owners. */
    static Map<Uuid, Map<Integer, String>> owners(GroupAssignment answer) {
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        answer.members().forEach((id, owned) -> owned.partitions().forEach((topic, partitions) -> partitions.forEach(
                partition -> {
                    String other = owners.computeIfAbsent(topic, any -> new HashMap<>()).put(partition, id);
                    if (other != null) {
                        throw new AssertionError(topic + " " + partition + " is " + other + "'s and " + id + "'s");
                    }
                })));
        return owners;
    }

    /** Fails unless each partition that has a reader has one owner that reads it, and nothing else is owned. */
    void check(GroupAssignment answer) {
        if (!answer.members().keySet().equals(members.keySet())) {
            throw new AssertionError("other members: " + answer.members().keySet());
        }
        Map<Uuid, Map<Integer, String>> owners = owners(answer);
        Set<Uuid> read = new HashSet<>();
        members.values().forEach(member -> read.addAll(member.subscribedTopicIds));
        int owned = 0;
        for (Uuid topic : topics.keySet()) {
            for (int partition = 0; read.contains(topic) && partition < topics.get(topic); partition++, owned++) {
                String owner = owners.getOrDefault(topic, Map.of()).get(partition);
                if (owner == null || !members.get(owner).subscribedTopicIds.contains(topic)) {
                    throw new AssertionError(topic + " " + partition + " is owned by " + owner);
                }
            }
        }
        if (owned != owners.values().stream().mapToInt(Map::size).sum()) {
            throw new AssertionError("partitions are owned that do not exist");
        }
    }

    @Override
    public Collection<String> memberIds() {
        return members.keySet();
    }

    @Override
    public SubscriptionType subscriptionType() {
        return SubscriptionType.HETEROGENEOUS;
    }

    @Override
    public boolean isPartitionAssigned(Uuid topic, int partition) {
        return false;
    }

    @Override
    public boolean isPartitionAssignable(Uuid topic, int partition) {
        return true;
    }

    @Override
    public MemberSubscription memberSubscription(String id) {
        return members.get(id);
    }

    @Override
    public MemberAssignment memberAssignment(String id) {
        return members.get(id);
    }

    @Override
    public int numPartitions(Uuid topic) {
        return topics.getOrDefault(topic, -1);
    }

    @Override
    public Set<String> racksForPartition(Uuid topic, int partition) {
        return Set.of();
    }
}
