package io.loadwise.broker;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32;
import java.util.zip.DeflaterOutputStream;
import org.apache.kafka.common.Uuid;

/** Writes notes, valid or not. */
final class NoteWriter {
    int epoch = 7;
    int members = -1; // other than the number of capacities
    int topics = -1;
    final Map<Long, Integer> capacities = new TreeMap<>(Long::compareUnsigned);
    final Map<Uuid, Integer> sizes = new TreeMap<>(Group.BY_BYTES);
    int[] owners = {};
    byte[] weights = {};

    /** Returns the body. */
    byte[] body() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream body = new DataOutputStream(bytes)) {
            body.writeInt(epoch);
            body.writeInt(members < 0 ? capacities.size() : members);
            for (var member : capacities.entrySet()) {
                body.writeLong(member.getKey());
                body.writeInt(member.getValue());
            }
            body.writeInt(topics < 0 ? sizes.size() : topics);
            for (var topic : sizes.entrySet()) {
                body.writeLong(topic.getKey().getMostSignificantBits());
                body.writeLong(topic.getKey().getLeastSignificantBits());
                body.writeInt(topic.getValue());
            }
            for (int owner : owners) {
                body.writeByte(owner >> Byte.SIZE);
            }
            for (int owner : owners) {
                body.writeByte(owner);
            }
            body.write(weights);
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return bytes.toByteArray();
    }

    /** Returns the place of a member's hash. */
    int place(long hash) {
        return List.copyOf(capacities.keySet()).indexOf(hash);
    }

    static byte[] deflated(byte[] body) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DeflaterOutputStream stream = new DeflaterOutputStream(bytes)) {
            stream.write(body);
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return bytes.toByteArray();
    }

    static List<String> parts(byte[] data, long sequence, int count) {
        CRC32 checksum = new CRC32();
        checksum.update(data);
        List<String> parts = new ArrayList<>();
        for (int index = 0; index < count; index++) {
            int from = (int) ((long) data.length * index / count);
            int to = (int) ((long) data.length * (index + 1) / count);
            byte[] part = java.util.Arrays.copyOfRange(data, from, to);
            String text = Base64.getEncoder().withoutPadding().encodeToString(part);
            parts.add(String.format("loadwise-plan:1 %d %d %d %08x %s", sequence, index, count, checksum.getValue(), text));
        }
        return parts;
    }

    List<String> parts(long sequence, int count) {
        return parts(deflated(body()), sequence, count);
    }

    static long hash(String name) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(name.getBytes(StandardCharsets.UTF_8));
            return ByteBuffer.wrap(digest).getLong();
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
