package io.loadwise.broker;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Which member reads which topic. Members with equal subscriptions are of one kind. */
final class Readers {
    private final int[] kind;
    private final int[] membersOf;
    private final int words;
    private final long[] bits; // for each topic one bit a kind
    private final BitSet[] topicsOf; // of each kind

    private Readers(int[] kind, int kinds, int topics) {
        this.kind = kind;
        this.membersOf = new int[kinds];
        for (int each : kind) {
            membersOf[each]++;
        }
        this.words = (kinds + Long.SIZE - 1) / Long.SIZE;
        this.bits = new long[Math.multiplyExact(topics, words)];
        this.topicsOf = new BitSet[kinds];
        Arrays.setAll(topicsOf, each -> new BitSet());
    }

    /** Returns the readers of {@code number.length} topics, of each member's topics by the places in {@code number}. */
    static Readers of(List<BitSet> topics, int[] number) {
        int[] kind = new int[topics.size()];
        Map<BitSet, Integer> kinds = new HashMap<>();
        List<BitSet> distinct = new ArrayList<>();
        for (int member = 0; member < kind.length; member++) {
            Integer known = kinds.putIfAbsent(topics.get(member), distinct.size());
            kind[member] = known == null ? distinct.size() : known;
            if (known == null) {
                distinct.add(topics.get(member));
            }
        }
        Readers readers = new Readers(kind, distinct.size(), number.length);
        for (int each = 0; each < distinct.size(); each++) {
            int word = each / Long.SIZE;
            long bit = 1L << each;
            BitSet its = readers.topicsOf[each];
            distinct.get(each).stream().forEach(place -> {
                readers.bits[number[place] * readers.words + word] |= bit;
                its.set(number[place]);
            });
        }
        return readers;
    }

    /** Returns whether a member reads a topic. */
    boolean has(int topic, int member) {
        return kindReads(topic, kind[member]);
    }

    /** Returns whether members of a kind read a topic. */
    boolean kindReads(int topic, int each) {
        return (bits[topic * words + each / Long.SIZE] >>> each & 1) != 0;
    }

    /** Returns the topics that a member reads; not to be changed. */
    BitSet topicsOf(int member) {
        return topicsOf[kind[member]];
    }

    /** Returns the kind of a member. */
    int kind(int member) {
        return kind[member];
    }

    /** Returns the number of kinds. */
    int kinds() {
        return membersOf.length;
    }

    /** Returns the number of members of a kind. */
    int membersOf(int each) {
        return membersOf[each];
    }

    /** Returns the first kind from {@code from} that reads a topic, or -1. */
    int next(int topic, int from) {
        int word = from / Long.SIZE;
        if (word >= words) {
            return -1;
        }
        long left = bits[topic * words + word] & -1L << from;
        while (left == 0) {
            if (++word == words) {
                return -1;
            }
            left = bits[topic * words + word];
        }
        return word * Long.SIZE + Long.numberOfTrailingZeros(left);
    }
}
