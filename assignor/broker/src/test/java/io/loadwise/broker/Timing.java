package io.loadwise.broker;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;

/**
 * Prints how long assignments take in a warm JVM: CPU time of the thread, and by the clock.
 *
 * <p>{@code java -cp target/classes:target/test-classes:JARS io.loadwise.broker.Timing [PARTITIONS MEMBERS TOPICS]}
 */
final class Timing {
    private Timing() {}

    private static final int CALLS = 15;

    public static void main(String[] arguments) {
        int partitions = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 100_000;
        int members = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 1_000;
        int topics = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 100;
        System.out.printf("%,d partitions of %,d topics, %,d members%n", partitions, topics, members);
        for (double density : new double[] {1, 0.5, 0.02}) {
            for (boolean noted : new boolean[] {true, false}) {
                for (String state : new String[] {"settled", "unowned", "half new", "all but one new"}) {
                    time(partitions, members, topics, density, noted, state);
                }
            }
        }
    }

    private static void time(int partitions, int members, int topics, double density, boolean noted, String state) {
        Random random = new Random(1);
        int old = state.equals("half new") ? members / 2 : state.equals("all but one new") ? 1 : members;
        FakeGroup group = new FakeGroup();
        for (int topic = 0; topic < topics; topic++) {
            group.topic(new Uuid(random.nextLong(), random.nextLong()), partitions / topics);
        }
        for (int member = 0; member < members; member++) {
            Set<Uuid> reads = new HashSet<>(group.topics.keySet());
            int number = member;
            reads.removeIf(topic -> number > 0 && random.nextDouble() >= density);
            group.member("member-" + member, null, null, reads, Map.of());
        }
        FakeGroup first = new FakeGroup();
        first.topics.putAll(group.topics);
        group.members.entrySet().stream().limit(old).forEach(entry -> first.members.put(entry.getKey(), entry.getValue()));
        if (!state.equals("unowned")) {
            GroupAssignment answer = first.assigned();
            group = group.after(with(answer, group));
        }
        int bytes = 0;
        if (noted) {
            var parts = note(group, old, partitions, random).parts(1, 10);
            bytes = parts.stream().mapToInt(String::length).sum();
            group.note(parts);
        }
        ThreadMXBean thread = ManagementFactory.getThreadMXBean();
        long[] nanos = new long[CALLS];
        long[] busy = new long[CALLS];
        for (int call = -10; call < CALLS; call++) {
            long start = System.nanoTime();
            long began = thread.getCurrentThreadCpuTime();
            GroupAssignment answer = group.assigned();
            busy[Math.max(call, 0)] = thread.getCurrentThreadCpuTime() - began;
            nanos[Math.max(call, 0)] = System.nanoTime() - start;
            if (call == -10) {
                group.check(answer);
            }
        }
        Arrays.sort(nanos);
        Arrays.sort(busy);
        System.out.printf(
                "members read %3.0f %% of the topics, %-18s %-16s CPU time: median %4d ms, longest %4d; by the clock: median %4d, longest %4d%n",
                100 * density,
                noted ? "note of " + bytes / 1000 + " kB," : "no note,",
                state + ":",
                busy[CALLS / 2] / 1_000_000,
                busy[CALLS - 1] / 1_000_000,
                nanos[CALLS / 2] / 1_000_000,
                nanos[CALLS - 1] / 1_000_000);
    }

    private static GroupAssignment with(GroupAssignment answer, FakeGroup group) {
        var all = new HashMap<>(answer.members());
        group.members.keySet().forEach(id -> all.putIfAbsent(id, new Owned(Map.of())));
        return new GroupAssignment(all);
    }

    private static NoteWriter note(FakeGroup group, int old, int partitions, Random random) {
        NoteWriter note = new NoteWriter();
        group.members.keySet().stream().limit(old).forEach(
                id -> note.capacities.put(NoteWriter.hash("m:" + id), 1000 + random.nextInt(1000)));
        note.sizes.putAll(group.topics);
        int all = note.sizes.values().stream().mapToInt(Integer::intValue).sum();
        note.owners = new int[all];
        note.weights = new byte[all];
        for (int each = 0; each < all; each++) {
            note.owners[each] = random.nextInt(old);
            note.weights[each] = (byte) (80 + random.nextGaussian() * 16);
        }
        return note;
    }
}
