package io.loadwise.broker;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.zip.CRC32;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;
import org.apache.kafka.common.Uuid;

/**
 * A plan for a group, made by a steering process: owners, weights and capacities. docs/steering-note.md has its format.
 *
 * <p>Members are known by their hash and numbered in its order; partitions are numbered by topic and partition.
 */
final class Note {
    /** The owner of a partition that has none. */
    static final int UNOWNED = 0xFFFF;

    private static final int MOST_BODY_BYTES = 16 << 20;
    private static final int MOST_MEMBERS = 0xFFFF;
    private static final int MOST_PARTITIONS = 5_000_000;
    private static final int MEMBER_BYTES = Long.BYTES + Integer.BYTES;
    private static final int TOPIC_BYTES = 2 * Long.BYTES + Integer.BYTES;

    private final Map<Long, Integer> places = new HashMap<>();
    private long[] capacities;
    private final Map<Uuid, Integer> firsts = new HashMap<>();
    private final Map<Uuid, Integer> sizes = new HashMap<>();
    private int partitions;
    private byte[] body;
    private int owners; // where the upper bytes of the owners begin in the body; the lower ones and weights follow

    private Note() {}

    /** Returns the complete note with the highest sequence. Rack ids come in the order of the member ids. */
    static Optional<Note> newest(List<String> rackIds) {
        Map<Name, Part[]> found = new HashMap<>();
        for (String rackId : rackIds) {
            Part.of(rackId).ifPresent(part -> {
                Name name = new Name(part.sequence(), part.checksum(), part.count());
                Part[] parts = found.computeIfAbsent(name, any -> new Part[part.count()]);
                if (parts[part.index()] == null) {
                    parts[part.index()] = part;
                }
            });
        }
        List<Name> names = new ArrayList<>(found.keySet());
        names.sort(Comparator.reverseOrder());
        for (Name name : names) {
            Optional<Note> note = whole(name, found.get(name));
            if (note.isPresent()) {
                return note;
            }
        }
        return Optional.empty();
    }

    /** What the parts of one note have in common; the one that counts is the highest. */
    private record Name(long sequence, String checksum, int count) implements Comparable<Name> {
        private static final Comparator<Name> ORDER =
                Comparator.comparingLong(Name::sequence).thenComparing(Name::checksum).thenComparing(Name::count);

        @Override
        public int compareTo(Name other) {
            return ORDER.compare(this, other);
        }
    }

    private static Optional<Note> whole(Name name, Part[] parts) {
        ByteArrayOutputStream data = new ByteArrayOutputStream();
        for (Part part : parts) {
            if (part == null) {
                return Optional.empty();
            }
            data.writeBytes(part.data());
        }
        CRC32 checksum = new CRC32();
        checksum.update(data.toByteArray());
        if (checksum.getValue() != Long.parseLong(name.checksum, 16)) {
            return Optional.empty();
        }
        try {
            return Optional.of(decode(data.toByteArray()));
        } catch (MalformedNoteException malformed) { // as without it: the group must go on
            return Optional.empty();
        }
    }

    /** Reads the joined data of all parts. */
    static Note decode(byte[] data) throws MalformedNoteException {
        Note note = new Note();
        note.body = inflate(data);
        ByteBuffer body = ByteBuffer.wrap(note.body);
        check(count(body, "epoch") >= 0, "the epoch is negative");
        note.readMembers(body);
        note.readTopics(body);
        note.owners = body.position();
        check(body.remaining() == 3L * note.partitions, "owners and weights are not three bytes a partition");
        for (int partition = 0; partition < note.partitions; partition++) {
            int owner = note.owner(partition);
            check(owner == UNOWNED || owner < note.capacities.length, "an owner is none of the members");
        }
        return note;
    }

    private void readMembers(ByteBuffer body) throws MalformedNoteException {
        int count = count(body, "number of members");
        check(count >= 0 && count <= MOST_MEMBERS, "the number of members is out of range");
        check(body.remaining() >= (long) count * MEMBER_BYTES, "members are missing");
        capacities = new long[count];
        long last = 0;
        for (int place = 0; place < count; place++) {
            long hash = body.getLong();
            check(place == 0 || Long.compareUnsigned(last, hash) < 0, "members are not in ascending order");
            capacities[place] = Integer.toUnsignedLong(body.getInt());
            check(capacities[place] > 0, "a member has no capacity");
            places.put(hash, place);
            last = hash;
        }
    }

    private void readTopics(ByteBuffer body) throws MalformedNoteException {
        int count = count(body, "number of topics");
        check(count >= 0, "the number of topics is negative");
        check(body.remaining() >= (long) count * TOPIC_BYTES, "topics are missing");
        Uuid last = null;
        for (int number = 0; number < count; number++) {
            Uuid topic = new Uuid(body.getLong(), body.getLong());
            check(last == null || Group.BY_BYTES.compare(last, topic) < 0, "topics are not in ascending order");
            int size = body.getInt();
            check(size >= 0, "a topic has a negative number of partitions");
            check(size <= MOST_PARTITIONS - partitions, "there are too many partitions");
            firsts.put(topic, partitions);
            sizes.put(topic, size);
            partitions += size;
            last = topic;
        }
    }

    private static int count(ByteBuffer body, String what) throws MalformedNoteException {
        check(body.remaining() >= Integer.BYTES, "the " + what + " is missing");
        return body.getInt();
    }

    private static void check(boolean holds, String message) throws MalformedNoteException {
        if (!holds) {
            throw new MalformedNoteException(message);
        }
    }

    /** Returns the content of a zlib stream, and never more than a body may have. */
    private static byte[] inflate(byte[] data) throws MalformedNoteException {
        Inflater inflater = new Inflater();
        try {
            inflater.setInput(data);
            ByteArrayOutputStream body = new ByteArrayOutputStream();
            byte[] chunk = new byte[1 << 16];
            while (!inflater.finished()) {
                int bytes = inflater.inflate(chunk);
                check(bytes > 0 || inflater.finished(), "the zlib stream ends early or wants a dictionary");
                check(bytes <= MOST_BODY_BYTES - body.size(), "the body is too large");
                body.write(chunk, 0, bytes);
            }
            check(inflater.getRemaining() == 0, "bytes follow the zlib stream");
            return body.toByteArray();
        } catch (DataFormatException malformed) {
            throw new MalformedNoteException("this is no zlib stream: " + malformed.getMessage());
        } finally {
            inflater.end();
        }
    }

    /** Returns the number of members. */
    int members() {
        return capacities.length;
    }

    /** Returns the place of the member with this hash, or -1. */
    int place(long hash) {
        return places.getOrDefault(hash, -1);
    }

    /** Returns the capacity of the member at a place. */
    long capacity(int place) {
        return capacities[place];
    }

    /** Returns the mean capacity, rounded down; 1 without members. */
    long meanCapacity() {
        long sum = 0;
        for (long capacity : capacities) {
            sum += capacity;
        }
        return Math.max(sum / Math.max(capacities.length, 1), 1);
    }

    /** Returns the first partition of a topic; 0 if the note does not know it. */
    int first(Uuid topic) {
        return firsts.getOrDefault(topic, 0);
    }

    /** Returns the number of partitions of a topic; 0 if the note does not know it. */
    int partitions(Uuid topic) {
        return sizes.getOrDefault(topic, 0);
    }

    /** Returns the place of a partition's owner, or {@link #UNOWNED}. */
    int owner(int partition) {
        return (body[owners + partition] & 0xFF) << Byte.SIZE | body[owners + partitions + partition] & 0xFF;
    }

    /** Returns the weight of a partition, below 2³⁴: three bits after the first one, and a shift. */
    long weight(int partition) {
        int code = body[owners + 2 * partitions + partition] & 0xFF;
        int shift = code >> 3;
        return shift == 0 ? Math.max(code, 1) : 8L + (code & 7) << shift - 1;
    }

    /** Returns the mean weight, rounded down; 1 without partitions. */
    long meanWeight() {
        long sum = 0;
        for (int partition = 0; partition < partitions; partition++) {
            sum += weight(partition);
        }
        return Math.max(sum / Math.max(partitions, 1), 1);
    }
}
