package io.loadwise.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import org.apache.kafka.common.Uuid;
import org.junit.jupiter.api.Test;

class NoteTest {
    private static NoteWriter writer() {
        NoteWriter note = new NoteWriter();
        note.capacities.put(5L, 3);
        note.capacities.put(-5L, -1);
        note.sizes.put(new Uuid(1, 2), 2);
        note.sizes.put(new Uuid(-1, 2), 3);
        note.owners = new int[] {0, 1, 0xFFFF, 1, 0};
        note.weights = new byte[] {0, 7, 8, (byte) 255, 15};
        return note;
    }

    private static String refused(Consumer<NoteWriter> change) {
        NoteWriter note = writer();
        change.accept(note);
        byte[] data = NoteWriter.deflated(note.body());
        String message = assertThrows(MalformedNoteException.class, () -> Note.decode(data)).getMessage();
        assertTrue(Note.newest(NoteWriter.parts(data, 1, 1)).isEmpty());
        return message;
    }

    @Test
    void aNoteIsReadAsItWasWritten() throws MalformedNoteException {
        Note note = Note.decode(NoteWriter.deflated(writer().body()));
        assertEquals(2, note.members());
        assertEquals(0, note.place(5));
        assertEquals(1, note.place(-5));
        assertEquals(-1, note.place(6));
        assertEquals(0xFFFFFFFFL, note.capacity(1));
        assertEquals((3 + 0xFFFFFFFFL) / 2, note.meanCapacity());
        assertEquals(3, note.partitions(new Uuid(-1, 2)));
        assertEquals(2, note.first(new Uuid(-1, 2)));
        assertEquals(0, note.partitions(new Uuid(3, 3)));
        long[] weights = {1, 7, 8, 15L << 30, 15};
        for (int partition = 0; partition < 5; partition++) {
            assertEquals(writer().owners[partition], note.owner(partition));
            assertEquals(weights[partition], note.weight(partition));
        }
        assertEquals(Arrays.stream(weights).sum() / 5, note.meanWeight());
    }

    @Test
    void anEmptyNoteIsValid() throws MalformedNoteException {
        Note note = Note.decode(NoteWriter.deflated(new NoteWriter().body()));
        assertEquals(1, note.meanWeight());
        assertEquals(1, note.meanCapacity());
    }

    @Test
    void eachFieldOutOfRangeIsRefused() {
        assertEquals("the epoch is negative", refused(note -> note.epoch = -1));
        assertEquals("the number of members is out of range", refused(note -> note.members = 65_536));
        assertEquals("members are missing", refused(note -> note.members = 65_535));
        assertEquals("a member has no capacity", refused(note -> note.capacities.put(5L, 0)));
        assertEquals("topics are missing", refused(note -> note.topics = Integer.MAX_VALUE));
        assertEquals(
                "a topic has a negative number of partitions", refused(note -> note.sizes.put(new Uuid(1, 2), -1)));
        assertEquals("there are too many partitions", refused(note -> note.sizes.put(new Uuid(1, 2), 4_999_998)));
        assertEquals("there are too many partitions", refused(note -> note.sizes.put(new Uuid(9, 9), 0x7FFFFFFF)));
        String missing = "owners and weights are not three bytes a partition";
        assertEquals(missing, refused(note -> note.sizes.put(new Uuid(1, 2), 3)));
        assertEquals(missing, refused(note -> note.weights = new byte[4]));
        assertEquals(missing, refused(note -> note.weights = new byte[6]));
        assertEquals("an owner is none of the members", refused(note -> note.owners[4] = 2));
        assertEquals("an owner is none of the members", refused(note -> note.owners[4] = 0xFFFE));
    }

    @Test
    void unsortedMembersAndTopicsAreRefused() {
        for (int swapped : new int[] {8, 36}) { // where two members, and two topics, begin
            int length = swapped == 8 ? 12 : 20;
            byte[] body = writer().body();
            byte[] first = Arrays.copyOfRange(body, swapped, swapped + length);
            System.arraycopy(body, swapped + length, body, swapped, length);
            byte[] doubled = body.clone();
            System.arraycopy(first, 0, body, swapped + length, length);
            for (byte[] each : List.of(body, doubled)) {
                var error = assertThrows(
                        MalformedNoteException.class, () -> Note.decode(NoteWriter.deflated(each)));
                assertTrue(error.getMessage().endsWith("not in ascending order"), error.getMessage());
            }
        }
    }

    @Test
    void aBodyThatEndsEarlyOrGoesOnIsRefused() {
        byte[] body = writer().body();
        for (int length = 0; length <= body.length + 1; length++) {
            byte[] data = NoteWriter.deflated(Arrays.copyOf(body, length));
            if (length != body.length) {
                assertThrows(MalformedNoteException.class, () -> Note.decode(data));
            }
        }
    }

    @Test
    void aStreamThatEndsEarlyGoesOnOrIsTooLargeIsRefused() {
        byte[] data = NoteWriter.deflated(writer().body());
        for (int length = 0; length <= data.length + 1; length++) {
            byte[] other = Arrays.copyOf(data, length);
            if (length != data.length) {
                assertThrows(MalformedNoteException.class, () -> Note.decode(other));
            }
        }
        byte[] large = NoteWriter.deflated(new byte[(16 << 20) + 1]);
        assertEquals(
                "the body is too large",
                assertThrows(MalformedNoteException.class, () -> Note.decode(large)).getMessage());
        byte[] dictionary = {0x78, (byte) 0xbb, 0, 0, 0, 1, 3, 0};
        assertThrows(MalformedNoteException.class, () -> Note.decode(dictionary));
    }

    @Test
    void rackIdsThatOnlyLookLikePartsAreNone() {
        assertTrue(Part.of("loadwise-plan:1 0 0 1 00000000 ").isPresent());
        assertTrue(Part.of("loadwise-plan:1 9223372036854775807 9 10 0123abcf AAA").isPresent());
        String mark = "loadwise-plan:1 ";
        for (String other : List.of(
                "", "rack-1", "loadwise-plan:1", "loadwise-plan:2 0 0 1 00000000 AA", " " + mark + "0 0 1 00000000 AA",
                mark + " 0 0 1 00000000 AA", mark + "00 0 1 00000000 AA", mark + "-1 0 1 00000000 AA",
                mark + "+1 0 1 00000000 AA", mark + "\u0661 0 1 00000000 AA", mark + "9223372036854775808 0 1 00000000 AA",
                mark + "9".repeat(5000) + " 0 1 00000000 AA", mark + "0 1 1 00000000 AA", mark + "0 10 10 00000000 AA",
                mark + "0 0 0 00000000 AA", mark + "0 0 11 00000000 AA", mark + "0 0 01 00000000 AA",
                mark + "0 0 1 0000000 AA", mark + "0 0 1 0000000A AA", mark + "0 0 1 00000000 AA==",
                mark + "0 0 1 00000000 A", mark + "0 0 1 00000000 AA\n", mark + "0 0 1 00000000 A-",
                mark + "0 0 1 00000000 AA AA", mark + "0 0 1 00000000", mark + "0 0 1 00000000 AA ",
                mark + "0 0 1 00000000 " + "A".repeat(30_000))) {
            assertFalse(Part.of(other).isPresent(), other);
        }
    }

    @Test
    void theCompleteNoteWithTheHighestSequenceCounts() {
        NoteWriter old = writer();
        NoteWriter later = writer();
        later.capacities.put(77L, 9);
        List<String> rackIds = new ArrayList<>(old.parts(3, 2));
        rackIds.addAll(later.parts(4, 3));
        Collections.shuffle(rackIds, new Random(1));
        assertEquals(3, Note.newest(rackIds).orElseThrow().members());
        for (String part : later.parts(4, 3)) {
            List<String> less = new ArrayList<>(rackIds);
            less.remove(part);
            assertEquals(2, Note.newest(less).orElseThrow().members());
        }
        assertTrue(Note.newest(List.of("rack-1", old.parts(3, 2).get(0))).isEmpty());
    }

    @Test
    void ofTwoPartsWithOneIndexTheFirstCounts() {
        List<String> parts = writer().parts(3, 2);
        String wrong = parts.get(0).substring(0, parts.get(0).length() - 4) + "AAAA";
        assertTrue(Note.newest(List.of(parts.get(0), wrong, parts.get(1))).isPresent());
        assertTrue(Note.newest(List.of(wrong, parts.get(0), parts.get(1))).isEmpty());
    }

    @Test
    void mutatedNotesNeverRaise() {
        Random random = new Random(39);
        int valid = 0;
        for (int number = 0; number < 10_000; number++) {
            byte[] body = writer().body();
            boolean inside = random.nextBoolean();
            byte[] data = mutated(inside ? body : NoteWriter.deflated(body), random);
            data = inside ? NoteWriter.deflated(data) : data;
            List<String> parts = NoteWriter.parts(data, random.nextInt(5), 1 + random.nextInt(10));
            if (random.nextInt(4) == 0) {
                int which = random.nextInt(parts.size());
                byte[] text = mutated(parts.get(which).getBytes(java.nio.charset.StandardCharsets.ISO_8859_1), random);
                parts.set(which, new String(text, java.nio.charset.StandardCharsets.ISO_8859_1));
            }
            valid += Note.newest(parts).isPresent() ? 1 : 0;
        }
        assertTrue(valid > 100, "only " + valid + " of them remained valid");
    }

    private static byte[] mutated(byte[] bytes, Random random) {
        byte[] mutated = bytes.clone();
        for (int some = 1 + random.nextInt(3); some > 0 && mutated.length > 0; some--) {
            int at = random.nextInt(mutated.length);
            switch (random.nextInt(4)) {
                case 0 -> mutated[at] ^= (byte) (1 << random.nextInt(8));
                case 1 -> mutated[at] = (byte) List.of(0, 1, 127, 128, 255).get(random.nextInt(5)).intValue();
                case 2 -> mutated = Arrays.copyOf(mutated, mutated.length + random.nextInt(9) - 4 < 0 ? 0 : at);
                default -> mutated[at] = mutated[random.nextInt(mutated.length)];
            }
        }
        return mutated;
    }
}
