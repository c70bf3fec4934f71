package io.loadwise.broker;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/**
 * A group as a broker shows it, read once, since its metadata may change meanwhile.
 *
 * <p>Members that read a topic, topics and partitions are numbered in the orders of docs/steering-note.md.
 */
final class Group {
    /** The order of ids: that of their UTF-8 bytes, which differs from Java's beyond U+FFFF. */
    private static final Comparator<Member> BY_ID = (one, other) -> Arrays.compareUnsigned(one.utf8, other.utf8);

    /** The order of topics: that of their ids as unsigned bytes, which differs from Uuid's own. */
    static final Comparator<Uuid> BY_BYTES = (one, other) -> {
        int upper = Long.compareUnsigned(one.getMostSignificantBits(), other.getMostSignificantBits());
        return upper != 0
                ? upper
                : Long.compareUnsigned(one.getLeastSignificantBits(), other.getLeastSignificantBits());
    };

    private final List<Member> everyone;
    private final List<Member> members;
    private final Uuid[] topics;
    private final int[] starts;
    private final Readers readers;
    private final int[] owner;

    private Group(List<Member> everyone, List<Member> members, Uuid[] topics, int[] starts, Readers readers) {
        this.everyone = everyone;
        this.members = members;
        this.topics = topics;
        this.starts = starts;
        this.readers = readers;
        this.owner = new int[starts[topics.length]];
    }

    /** One member; {@code reads} are its topics that exist, in the order in which they were met. */
    private record Member(
            String id, byte[] utf8, Optional<String> instanceId, Optional<String> rackId, BitSet reads) {}

    /** Reads a group. Raises what the broker's objects raise, and ArithmeticException beyond 2³¹ partitions. */
    static Group of(GroupSpec spec, SubscribedTopicDescriber describer) {
        Map<Uuid, Integer> met = new HashMap<>(); // the number of each topic that was met, -1 if it does not exist
        List<Uuid> found = new ArrayList<>();
        List<Integer> sizes = new ArrayList<>();
        List<Member> everyone = new ArrayList<>();
        for (String id : spec.memberIds()) {
            MemberSubscription subscription = spec.memberSubscription(id);
            BitSet reads = new BitSet();
            for (Uuid topic : subscription.subscribedTopicIds()) {
                Integer number = met.get(topic);
                if (number == null) {
                    int size = describer.numPartitions(topic);
                    number = size < 0 ? -1 : found.size();
                    met.put(topic, number);
                    if (size >= 0) {
                        found.add(topic);
                        sizes.add(size);
                    }
                }
                if (number >= 0) {
                    reads.set(number);
                }
            }
            byte[] utf8 = id.getBytes(StandardCharsets.UTF_8);
            everyone.add(new Member(id, utf8, subscription.instanceId(), subscription.rackId(), reads));
        }
        everyone.sort(BY_ID);
        List<Member> members = everyone.stream().filter(member -> !member.reads.isEmpty()).toList();

        Uuid[] topics = found.toArray(Uuid[]::new);
        Arrays.sort(topics, BY_BYTES);
        int[] order = new int[topics.length]; // the number of a topic by the number with which it was met
        int[] starts = new int[topics.length + 1];
        for (int topic = 0; topic < topics.length; topic++) {
            int number = met.get(topics[topic]);
            order[number] = topic;
            starts[topic + 1] = Math.addExact(starts[topic], sizes.get(number));
        }
        Readers readers = Readers.of(members.stream().map(Member::reads).toList(), order);
        Group group = new Group(everyone, members, topics, starts, readers);
        group.readOwners(spec, met, order);
        return group;
    }

    private void readOwners(GroupSpec spec, Map<Uuid, Integer> met, int[] order) {
        Arrays.fill(owner, Placement.NONE);
        for (int member = 0; member < members.size(); member++) {
            for (var entry : spec.memberAssignment(members.get(member).id).partitions().entrySet()) {
                int number = met.getOrDefault(entry.getKey(), -1);
                if (number < 0 || !members.get(member).reads.get(number)) {
                    continue;
                }
                int start = starts[order[number]];
                int end = starts[order[number] + 1];
                for (int partition : entry.getValue()) {
                    if (partition >= 0 && partition < end - start && owner[start + partition] == Placement.NONE) {
                        owner[start + partition] = member;
                    }
                }
            }
        }
    }

    /** Returns the number of members that read a topic. */
    int members() {
        return members.size();
    }

    /** Returns the id of a topic. */
    Uuid topic(int topic) {
        return topics[topic];
    }

    /** Returns the first partition of each topic, then the number of partitions. */
    int[] starts() {
        return starts;
    }

    /** Returns which member reads which topic. */
    Readers readers() {
        return readers;
    }

    /** Returns a copy of the owner now of each partition, or {@link Placement#NONE}. */
    int[] ownersNow() {
        return owner.clone();
    }

    /** Returns all rack ids, in the order of the member ids. */
    List<String> rackIds() {
        return everyone.stream().flatMap(member -> member.rackId.stream()).toList();
    }

    /** Returns the hash by which a note knows a member. */
    long hash(int member) {
        String id = members.get(member).id;
        String name = members.get(member).instanceId.map(instance -> "i:" + instance).orElse("m:" + id);
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(name.getBytes(StandardCharsets.UTF_8));
            return ByteBuffer.wrap(digest).getLong();
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException("every Java has SHA-256", impossible);
        }
    }

    /** Returns these owners as Kafka wants them, with all members of the group. */
    GroupAssignment assignment(int[] owners) {
        List<Map<Uuid, Set<Integer>>> owned = new ArrayList<>();
        members.forEach(member -> owned.add(new HashMap<>()));
        for (int topic = 0; topic < topics.length; topic++) {
            for (int here = starts[topic]; here < starts[topic + 1]; here++) {
                if (owners[here] != Placement.NONE) {
                    owned.get(owners[here])
                            .computeIfAbsent(topics[topic], any -> new HashSet<>())
                            .add(here - starts[topic]);
                }
            }
        }
        Map<String, MemberAssignment> answer = new HashMap<>();
        everyone.forEach(member -> answer.put(member.id, new Owned(Map.of())));
        for (int member = 0; member < owned.size(); member++) {
            answer.put(members.get(member).id, new Owned(owned.get(member)));
        }
        return new GroupAssignment(answer);
    }
}
