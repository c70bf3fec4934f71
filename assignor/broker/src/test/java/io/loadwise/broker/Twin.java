package io.loadwise.broker;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;

/**
 * Answers cases from standard input, for a comparison with loadwise's Python.
 *
 * <p>Lines are UTF-8, with a tab between fields; {@code -} stands for nothing. A topic id is 32 hexadecimal digits.
 *
 * <pre>
 * topic   ID PARTITIONS
 * member  ID INSTANCE-ID RACK-ID TOPIC-IDS OWNED      e.g. 0a…01,0a…02 and 0a…01:0,1,5;0a…02:3
 * end
 * </pre>
 *
 * <p>After each {@code end} it prints a line {@code TOPIC-ID PARTITION MEMBER-ID} for each partition of each member, in
 * any order, and {@code end}. A topic to which a member subscribes need not exist.
 */
final class Twin {
    private Twin() {}

    public static void main(String[] arguments) throws IOException {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        FakeGroup group = new FakeGroup();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t", -1);
            switch (fields[0]) {
                case "end" -> {
                    rows(group.assigned()).forEach(out::println);
                    out.println("end");
                    out.flush();
                    group = new FakeGroup();
                }
                default -> add(group, fields);
            }
        }
    }

    /** Adds what a line says to a group. */
    static void add(FakeGroup group, String[] fields) {
        switch (fields[0]) {
            case "topic" -> group.topic(topic(fields[1]), Integer.parseInt(fields[2]));
            case "member" -> group.member(
                    fields[1], given(fields[2]), given(fields[3]), topics(fields[4]), owned(fields[5]));
            default -> throw new IllegalArgumentException("neither topic nor member: " + String.join(" ", fields));
        }
    }

    /** Returns a line for each partition of each member. */
    static List<String> rows(GroupAssignment answer) {
        List<String> rows = new ArrayList<>();
        answer.members().forEach((id, member) -> member.partitions().forEach((topic, partitions) ->
                partitions.forEach(partition -> rows.add(String.format("%s\t%d\t%s", hex(topic), partition, id)))));
        return rows;
    }

    private static String given(String field) {
        return field.equals("-") ? null : field;
    }

    private static Uuid topic(String hex) {
        return new Uuid(Long.parseUnsignedLong(hex.substring(0, 16), 16), Long.parseUnsignedLong(hex.substring(16), 16));
    }

    private static String hex(Uuid topic) {
        return String.format("%016x%016x", topic.getMostSignificantBits(), topic.getLeastSignificantBits());
    }

    private static Set<Uuid> topics(String field) {
        return field.equals("-")
                ? Set.of()
                : Arrays.stream(field.split(",")).map(Twin::topic).collect(Collectors.toSet());
    }

    private static Map<Uuid, Set<Integer>> owned(String field) {
        Map<Uuid, Set<Integer>> owned = new HashMap<>();
        if (!field.equals("-")) {
            for (String each : field.split(";")) {
                String[] sides = each.split(":");
                Set<Integer> partitions = owned.computeIfAbsent(topic(sides[0]), any -> new HashSet<>());
                Arrays.stream(sides[1].split(",")).map(Integer::valueOf).forEach(partitions::add);
            }
        }
        return owned;
    }
}
