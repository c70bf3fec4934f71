package io.loadwise.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.junit.jupiter.api.Test;

class LoadwiseAssignorTest {
    private static final Uuid TOPIC = new Uuid(1, 1);
    private static final Uuid OTHER = new Uuid(-1, 1);

    private static Set<Integer> range(int from, int to) {
        return IntStream.range(from, to).boxed().collect(Collectors.toSet());
    }

    private static Map<String, Integer> counts(GroupAssignment answer) {
        Map<String, Integer> counts = new TreeMap<>();
        answer.members().forEach((id, owned) -> counts.put(
                id, owned.partitions().values().stream().mapToInt(Set::size).sum()));
        return counts;
    }

    @Test
    void randomGroupsKeepTheirRules() {
        Random random = new Random(848);
        for (int number = 0; number < 5_000; number++) {
            FakeGroup group = RandomGroups.without(random);
            if (random.nextBoolean()) {
                group.note(RandomGroups.note(group, random).parts(number, 1 + random.nextInt(3)));
            }
            GroupAssignment answer = group.assigned();
            group.check(answer);
            assertEquals(answer, group.shuffled(random).assigned(), "another order of members");
            assertEquals(answer, group.after(answer).assigned(), "a second call");
        }
    }

    @Test
    void withoutANoteAndNewcomersNothingMovesThatHasALivingOwner() {
        Random random = new Random(2);
        for (int number = 0; number < 5_000; number++) {
            FakeGroup any = RandomGroups.without(random);
            FakeGroup group = any.after(any.assigned());
            if (counts(any.assigned()).containsValue(0)) {
                continue;
            }
            group.members.keySet().removeIf(id -> random.nextInt(3) == 0);
            if (group.members.isEmpty()) {
                continue;
            }
            group.topics.replaceAll((topic, partitions) -> partitions + random.nextInt(3));
            GroupAssignment answer = group.assigned();
            group.check(answer);
            Map<Uuid, Map<Integer, String>> owners = FakeGroup.owners(answer);
            group.members.forEach((id, member) -> member.partitions().forEach((topic, partitions) -> partitions.forEach(
                    partition -> assertEquals(id, owners.get(topic).get(partition)))));
        }
    }

    @Test
    void aNewcomerWithoutANoteGetsItsCountAndNothingElseMoves() {
        FakeGroup group = new FakeGroup().topic(TOPIC, 12);
        group.member("a", null, null, Set.of(TOPIC), Map.of(TOPIC, range(0, 6)));
        group.member("b", null, null, Set.of(TOPIC), Map.of(TOPIC, range(6, 12)));
        group.member("c", null, null, Set.of(TOPIC), Map.of());
        assertEquals(Map.of("a", 4, "b", 4, "c", 4), counts(group.assigned()));
        assertEquals(group.assigned(), group.after(group.assigned()).assigned());
    }

    private static FakeGroup noted(String newcomer) {
        FakeGroup group = new FakeGroup().topic(TOPIC, 6).topic(OTHER, 2);
        group.member("a", null, null, Set.of(TOPIC, OTHER), Map.of(TOPIC, range(0, 6), OTHER, range(0, 2)));
        group.member("b", "static", null, Set.of(TOPIC, OTHER), Map.of());
        NoteWriter note = new NoteWriter();
        note.capacities.put(NoteWriter.hash("m:a"), 10);
        note.capacities.put(NoteWriter.hash("i:static"), 10);
        note.sizes.put(TOPIC, 6);
        int a = note.place(NoteWriter.hash("m:a"));
        note.owners = new int[] {a, a, 1 - a, 1 - a, a, 1 - a};
        note.weights = new byte[] {1, 2, 3, 4, 5, 6};
        if (newcomer != null) {
            group.member(newcomer, null, null, Set.of(TOPIC, OTHER), Map.of());
        }
        return group.note(note.parts(1, 2));
    }

    @Test
    void aNotesPlanComesIntoForce() {
        Map<Uuid, Map<Integer, String>> owners = FakeGroup.owners(noted(null).assigned());
        assertEquals(Map.of(0, "a", 1, "a", 2, "b", 3, "b", 4, "a", 5, "b"), owners.get(TOPIC));
        assertEquals(Map.of(0, "a", 1, "a"), owners.get(OTHER), "the note does not know this topic");
    }

    @Test
    void aMemberThatTheNoteDoesNotKnowGetsItsShareByWeight() {
        // a has 1 2 5 and twice the mean 3: 14; b has 3 4 6: 13; the mean level is 27 / 30.
        Map<Uuid, Map<Integer, String>> owners = FakeGroup.owners(noted("c").assigned());
        assertEquals(Map.of(0, "a", 1, "a", 2, "b", 3, "b", 4, "c", 5, "c"), owners.get(TOPIC));
        assertEquals(Map.of(0, "a", 1, "a"), owners.get(OTHER));
    }

    @Test
    void aMemberThatDiedIsReplacedByTheLeastLoaded() {
        FakeGroup before = noted("c");
        FakeGroup group = before.after(before.assigned());
        group.members.remove("b");
        group.check(group.assigned());
        // c has 5 and 6, a the rest: 3 and 4 have no owner.
        Map<Integer, String> owners = FakeGroup.owners(group.assigned()).get(TOPIC);
        assertEquals(Map.of(0, "a", 1, "a", 2, "c", 3, "a", 4, "c", 5, "c"), owners);
    }

    @Test
    void twoMembersWithOneHashMakeEveryNoteIncomplete() {
        FakeGroup group = noted(null);
        group.member("d", "static", null, Set.of(OTHER), Map.of());
        FakeGroup without = new FakeGroup();
        without.topics.putAll(group.topics);
        group.members.forEach((id, member) -> without.member(
                id, member.instanceId().orElse(null), null, member.subscribedTopicIds(), member.partitions()));
        assertEquals(without.assigned(), group.assigned());
    }

    @Test
    void theOrderOfMembersIsThatOfTheirUtf8Bytes() {
        // U+1F600 is before U+FFEE in Java's order, and behind in that of UTF-8.
        FakeGroup group = new FakeGroup().topic(TOPIC, 1);
        group.member("\ud83d\ude00", null, null, Set.of(TOPIC), Map.of());
        group.member("\uffee", null, null, Set.of(TOPIC), Map.of());
        assertEquals("\uffee", FakeGroup.owners(group.assigned()).get(TOPIC).get(0));
    }

    @Test
    void ifAnythingFailsTheValidPartOfThePresentAssignmentStays() {
        FakeGroup group = new FakeGroup().topic(TOPIC, 3);
        Map<Uuid, Set<Integer>> strange = new HashMap<>();
        strange.put(TOPIC, null);
        group.member("a", null, null, Set.of(TOPIC), Map.of(TOPIC, range(0, 9), OTHER, range(0, 1)));
        group.member("b", null, null, Set.of(TOPIC), Map.of(TOPIC, range(2, 3)));
        group.member("c", null, null, Set.of(TOPIC), strange);
        GroupAssignment answer = group.assigned();
        assertEquals(Map.of("a", 3, "b", 0, "c", 0), counts(answer));
        group.members.put("d", null);
        assertEquals(3, counts(group.assigned()).get("a"));
        assertTrue(new LoadwiseAssignor().assign(null, null).members().isEmpty());
    }
}
