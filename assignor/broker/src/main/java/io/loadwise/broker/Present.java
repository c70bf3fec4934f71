package io.loadwise.broker;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/** The present assignment as far as it is valid: the answer if anything fails. It needs nothing that may have failed. */
final class Present {
    private static final System.Logger LOG = System.getLogger(Present.class.getName());

    private Present() {}

    /** Returns what each member has of its topics and nobody before it has; nothing for a member that cannot be read. */
    static GroupAssignment of(GroupSpec spec, SubscribedTopicDescriber describer) {
        Map<String, MemberAssignment> members = new HashMap<>();
        Map<Uuid, Set<Integer>> taken = new HashMap<>();
        try {
            for (String id : spec.memberIds()) {
                members.put(id, new Owned(valid(spec, describer, id, taken)));
            }
        } catch (RuntimeException | Error failed) {
            LOG.log(System.Logger.Level.ERROR, "cannot read the members; the rest of them own nothing", failed);
        }
        return new GroupAssignment(members);
    }

    private static Map<Uuid, Set<Integer>> valid(
            GroupSpec spec, SubscribedTopicDescriber describer, String id, Map<Uuid, Set<Integer>> taken) {
        Map<Uuid, Set<Integer>> valid = new HashMap<>();
        try {
            Set<Uuid> topics = spec.memberSubscription(id).subscribedTopicIds();
            spec.memberAssignment(id).partitions().forEach((topic, partitions) -> {
                int size = topics.contains(topic) ? describer.numPartitions(topic) : 0;
                Set<Integer> others = taken.computeIfAbsent(topic, any -> new HashSet<>());
                for (Integer partition : partitions) {
                    if (partition >= 0 && partition < size && others.add(partition)) {
                        valid.computeIfAbsent(topic, any -> new HashSet<>()).add(partition);
                    }
                }
            });
        } catch (RuntimeException | Error failed) {
            LOG.log(System.Logger.Level.ERROR, "cannot read all that " + id + " owns", failed);
        }
        return valid;
    }
}
