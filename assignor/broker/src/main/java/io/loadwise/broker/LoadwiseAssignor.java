package io.loadwise.broker;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/**
 * Puts the plan of a steering process into force: {@code group.consumer.assignors} names this class.
 *
 * <p>docs/steering-note.md specifies the plan and what happens without one. The class has no state, so several threads
 * may use it. No exception leaves it: Kafka answers one with UNKNOWN_SERVER_ERROR, which ends some clients.
 */
public final class LoadwiseAssignor implements ConsumerGroupPartitionAssignor {
    private static final System.Logger LOG = System.getLogger(LoadwiseAssignor.class.getName());

    /** Returns what members and plans call this assignor. */
    @Override
    public String name() {
        return "loadwise";
    }

    /** Returns an owner for each partition that has a reader. */
    @Override
    public GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber describer) {
        try {
            Group group = Group.of(spec, describer);
            return group.assignment(owners(group));
        } catch (RuntimeException | Error failed) {
            LOG.log(System.Logger.Level.ERROR, "cannot assign; the present assignment stays", failed);
            return Present.of(spec, describer);
        }
    }

    /** Returns the owner of each partition. */
    static int[] owners(Group group) {
        int[] owner = group.ownersNow();
        long[] weight = new long[owner.length];
        long[] capacity = new long[group.members()];
        boolean[] newcomer = new boolean[group.members()];
        int[] planned = new int[owner.length];
        Arrays.fill(planned, Placement.NONE);
        Arrays.fill(newcomer, true);
        Optional<Note> note = Note.newest(group.rackIds());
        int[] known = note.isPresent() ? known(note.get(), group) : null;
        if (known == null) {
            Arrays.fill(weight, 1);
            Arrays.fill(capacity, 1);
            clear(newcomer, owner);
        } else {
            for (int member = 0; member < known.length; member++) {
                capacity[member] = known[member] < 0 ? note.get().meanCapacity() : note.get().capacity(known[member]);
            }
            read(note.get(), group, known, planned, weight);
            clear(newcomer, planned);
            for (int here = 0; here < owner.length; here++) {
                if (planned[here] != Placement.NONE && (owner[here] == Placement.NONE || !newcomer[owner[here]])) {
                    owner[here] = planned[here];
                }
            }
        }
        return Placement.of(group.starts(), group.readers(), owner, planned, weight, capacity, newcomer);
    }

    /** Owners are no newcomers. */
    private static void clear(boolean[] newcomer, int[] owners) {
        for (int owner : owners) {
            if (owner != Placement.NONE) {
                newcomer[owner] = false;
            }
        }
    }

    /** Returns the place in the note of each member, or -1; null if two members have the same hash. */
    private static int[] known(Note note, Group group) {
        int[] known = new int[group.members()];
        Map<Long, Integer> seen = new HashMap<>(2 * known.length);
        for (int member = 0; member < known.length; member++) {
            long hash = group.hash(member);
            if (seen.put(hash, member) != null) {
                return null;
            }
            known[member] = note.place(hash);
        }
        return known;
    }

    /** Writes the weights of the note, and its owners that read their partition. */
    private static void read(Note note, Group group, int[] known, int[] planned, long[] weight) {
        int[] memberAt = new int[note.members()];
        Arrays.fill(memberAt, Placement.NONE);
        for (int member = 0; member < known.length; member++) {
            if (known[member] >= 0) {
                memberAt[known[member]] = member;
            }
        }
        Arrays.fill(weight, note.meanWeight());
        int[] start = group.starts();
        for (int topic = 0; topic + 1 < start.length; topic++) {
            int from = note.first(group.topic(topic));
            int size = Math.min(note.partitions(group.topic(topic)), start[topic + 1] - start[topic]);
            for (int partition = 0; partition < size; partition++) {
                int here = start[topic] + partition;
                weight[here] = note.weight(from + partition);
                int place = note.owner(from + partition);
                int member = place == Note.UNOWNED ? Placement.NONE : memberAt[place];
                if (member != Placement.NONE && group.readers().has(topic, member)) {
                    planned[here] = member;
                }
            }
        }
    }
}
