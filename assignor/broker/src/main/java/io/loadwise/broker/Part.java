package io.loadwise.broker;

import java.util.Base64;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** One part of a note, as in a rack id; {@code index} is its place among {@code count} parts. */
record Part(long sequence, int index, int count, String checksum, byte[] data) {
    private static final String MARK = "loadwise-plan:1 ";
    private static final int MOST_CHARS = 30_000;
    private static final Pattern FIELDS =
            Pattern.compile(MARK + "(0|[1-9][0-9]{0,18}) ([0-9]) ([1-9]|10) ([0-9a-f]{8}) ([A-Za-z0-9+/]*+)");

    /** Reads a rack id; empty if it is no part of a note. */
    static Optional<Part> of(String rackId) {
        if (!rackId.startsWith(MARK) || rackId.length() > MOST_CHARS) {
            return Optional.empty();
        }
        Matcher fields = FIELDS.matcher(rackId);
        if (!fields.matches()) {
            return Optional.empty();
        }
        int index = Integer.parseInt(fields.group(2));
        int count = Integer.parseInt(fields.group(3));
        try {
            long sequence = Long.parseLong(fields.group(1));
            byte[] data = Base64.getDecoder().decode(fields.group(5));
            return index < count
                    ? Optional.of(new Part(sequence, index, count, fields.group(4), data))
                    : Optional.empty();
        } catch (IllegalArgumentException notOne) { // a sequence from 2⁶³, or a single last character
            return Optional.empty();
        }
    }
}
