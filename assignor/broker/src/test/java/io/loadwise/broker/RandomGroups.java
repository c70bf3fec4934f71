package io.loadwise.broker;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.common.Uuid;

/** Groups of a few members in every state: dead owners, doubled owners, topics that grew, were deleted or are not read. */
final class RandomGroups {
    private RandomGroups() {}

    static FakeGroup without(Random random) {
        FakeGroup group = new FakeGroup();
        List<Uuid> topics = new ArrayList<>();
        for (int topic = random.nextInt(5); topic >= 0; topic--) {
            topics.add(new Uuid(random.nextLong(), random.nextLong()));
            if (random.nextInt(8) > 0) {
                group.topic(topics.get(topics.size() - 1), random.nextInt(12));
            }
        }
        boolean alike = random.nextBoolean();
        for (int member = random.nextInt(9); member > 0; member--) {
            Set<Uuid> reads = new HashSet<>(topics);
            reads.removeIf(topic -> !alike && random.nextInt(3) == 0);
            Map<Uuid, Set<Integer>> owned = new HashMap<>();
            for (int some = random.nextBoolean() ? random.nextInt(20) : 0; some > 0; some--) {
                owned.computeIfAbsent(topics.get(random.nextInt(topics.size())), any -> new HashSet<>())
                        .add(random.nextInt(14) - 1);
            }
            String id = List.of("a", "é", "\uffee", "\ud83d\ude00").get(random.nextInt(4)) + member;
            group.member(id, random.nextInt(4) == 0 ? "i" + member : null, random.nextInt(4) == 0 ? "rack-1" : null,
                    reads, owned);
        }
        return group;
    }

    static NoteWriter note(FakeGroup group, Random random) {
        NoteWriter note = new NoteWriter();
        group.members.forEach((id, member) -> {
            if (random.nextInt(4) > 0) {
                String name = member.instanceId().map(instance -> "i:" + instance).orElse("m:" + id);
                note.capacities.put(NoteWriter.hash(name), 1 + random.nextInt(3));
            }
        });
        if (random.nextBoolean()) {
            note.capacities.put(random.nextLong(), -1);
        }
        int partitions = 0;
        for (Uuid topic : group.topics.keySet()) {
            if (random.nextInt(5) > 0) {
                int size = random.nextInt(14);
                note.sizes.put(topic, size);
                partitions += size;
            }
        }
        note.owners = new int[partitions];
        note.weights = new byte[partitions];
        for (int each = 0; each < partitions; each++) {
            note.owners[each] = random.nextInt(note.capacities.size() + 1);
            note.owners[each] = note.owners[each] == note.capacities.size() ? 0xFFFF : note.owners[each];
            note.weights[each] = (byte) (random.nextInt(8) == 0 ? random.nextInt(256) : random.nextInt(30));
        }
        return note;
    }
}
