package io.loadwise.broker;

import java.util.Arrays;
import java.util.BitSet;

/**
 * Places partitions: those without an owner, then those that newcomers return or take.
 *
 * <p>Pure. Members, topics and partitions are numbered; the partitions of a topic follow each other. A member's level is
 * the sum of its weights over its capacity.
 */
final class Placement {
    /** The owner of a partition that has none. */
    static final int NONE = -1;

    private static final int PARTITION_BITS = 29;

    /** The most rounds in which newcomers return and take: a broker cannot wait for long. */
    private static final int ROUNDS = 10;

    private final int[] start;
    private final Readers readers;
    private final int[] owner;
    private final long[] weight;
    private final long[] capacity;
    private final long[] load;
    private final int[] count;
    private final double[] level;
    private final int[] topicOf;

    private Placement(int[] start, Readers readers, int[] owner, long[] weight, long[] capacity) {
        this.start = start;
        this.readers = readers;
        this.owner = owner.clone();
        this.weight = weight;
        this.capacity = capacity;
        this.load = new long[capacity.length];
        this.count = new int[capacity.length];
        this.level = new double[capacity.length];
        this.topicOf = new int[owner.length];
        for (int topic = 0; topic + 1 < start.length; topic++) {
            Arrays.fill(topicOf, start[topic], start[topic + 1], topic);
        }
        for (int partition = 0; partition < owner.length; partition++) {
            if (owner[partition] != NONE) {
                load[owner[partition]] += weight[partition];
                count[owner[partition]]++;
            }
        }
        for (int member = 0; member < capacity.length; member++) {
            level[member] = (double) load[member] / capacity[member];
        }
    }

    /**
     * Returns the owner of each partition; {@link #NONE} only if it has no reader.
     *
     * @param start the first partition of each topic, then the number of partitions
     * @param readers which member reads which topic
     * @param owner the member that keeps each partition, or {@link #NONE}; not changed
     * @param planned the member that is to have each partition by the plan, or {@link #NONE}
     * @param weight the weight of each partition, 1 to 2³⁴−1
     * @param capacity the capacity of each member, at least 1
     * @param newcomer which members take from others, in their order
     */
    static int[] of(
            int[] start,
            Readers readers,
            int[] owner,
            int[] planned,
            long[] weight,
            long[] capacity,
            boolean[] newcomer) {
        Placement placement = new Placement(start, readers, owner, weight, capacity);
        placement.place();
        placement.settle(planned, newcomer);
        return placement.owner;
    }

    /** Gives partitions without an owner, heaviest first, to the reader with the lowest level. */
    private void place() {
        int[] left = heaviestFirst(NONE);
        if (left.length == 0) {
            return;
        }
        Lowest lowest = new Lowest();
        for (int partition : left) {
            int kind = lowest.find(topicOf[partition]);
            if (kind != NONE) {
                give(partition, lowest.of[kind].top());
                lowest.sink(kind);
            }
        }
    }

    /** Lets newcomers return what others are to have, and take their share, until nothing moves. */
    private void settle(int[] planned, boolean[] newcomer) {
        boolean any = false;
        for (boolean each : newcomer) {
            any |= each;
        }
        if (!any) {
            return;
        }
        int[] order = heaviestFirst(-2);
        for (int round = 0; round < ROUNDS; round++) {
            boolean returned = giveBack(order, planned, newcomer);
            if (!take(order, newcomer) && !returned) {
                return;
            }
        }
    }

    /** Returns partitions of newcomers to their planned owners where those stay below; returns whether any moved. */
    private boolean giveBack(int[] order, int[] planned, boolean[] newcomer) {
        boolean moved = false;
        for (int partition : order) {
            int to = planned[partition];
            int from = owner[partition];
            if (to != NONE && from != NONE && newcomer[from] && levelWith(to, partition) < level[from]) {
                move(partition, to);
                moved = true;
            }
        }
        return moved;
    }

    /** Lets each newcomer below the mean take from the members with the highest levels; returns whether any did. */
    private boolean take(int[] order, boolean[] newcomer) {
        double mean = (double) Arrays.stream(load).sum() / Arrays.stream(capacity).sum();
        Held held = null;
        double[] below = new double[level.length];
        int[] ties = new int[level.length];
        boolean moved = false;
        for (int member = 0; member < newcomer.length; member++) {
            if (!newcomer[member] || level[member] >= mean) {
                continue;
            }
            if (held == null) {
                held = new Held(order);
            }
            held.turn();
            Heap highest = new Heap(below, ties, level.length);
            for (int giver = 0; giver < level.length; giver++) {
                if (held.mayGive(giver, member)) {
                    below[giver] = -level[giver];
                    highest.add(giver);
                }
            }
            while (level[member] < mean && !highest.isEmpty() && level[highest.top()] > level[member]) {
                int giver = highest.top();
                int partition = held.take(member, giver);
                if (partition == NONE) {
                    highest.pop();
                } else {
                    move(partition, member);
                    moved = true;
                    below[giver] = -level[giver];
                    highest.sink();
                }
            }
        }
        return moved;
    }

    private double levelWith(int member, int partition) {
        return (double) (load[member] + weight[partition]) / capacity[member];
    }

    private void move(int partition, int member) {
        int giver = owner[partition];
        load[giver] -= weight[partition];
        count[giver]--;
        level[giver] = (double) load[giver] / capacity[giver];
        give(partition, member);
    }

    private void give(int partition, int member) {
        owner[partition] = member;
        load[member] += weight[partition];
        count[member]++;
        level[member] = (double) load[member] / capacity[member];
    }

    /** Returns the partitions of one owner, or of all ({@code -2}). */
    private int[] heaviestFirst(int of) {
        long[] keys = new long[owner.length];
        int size = 0;
        for (int partition = 0; partition < owner.length; partition++) {
            if (of < NONE || owner[partition] == of) {
                keys[size++] = -weight[partition] << PARTITION_BITS | partition;
            }
        }
        Arrays.sort(keys, 0, size);
        int[] partitions = new int[size];
        for (int place = 0; place < size; place++) {
            partitions[place] = (int) keys[place] & (1 << PARTITION_BITS) - 1;
        }
        return partitions;
    }

    /**
     * The members with the lowest levels. Those of one kind are alike: only the lowest of a kind can be the lowest of a
     * topic's readers. Partitions of one topic often follow each other, and only the member on top changes meanwhile:
     * from the second one on, the kinds that read it are a heap.
     */
    private final class Lowest {
        private final Heap[] of = new Heap[readers.kinds()]; // the members of each kind
        private final double[] low = new double[of.length]; // the level of the member on top of each kind
        private final int[] heap = new int[of.length];
        private int size;
        private int last = NONE;

        Lowest() {
            Arrays.setAll(of, kind -> new Heap(level, count, readers.membersOf(kind)));
            for (int member = 0; member < level.length; member++) {
                of[readers.kind(member)].add(member);
            }
            Arrays.setAll(low, kind -> level[of[kind].top()]);
        }

        /** Returns the kind whose top is the lowest reader of a topic, or {@link #NONE}. */
        int find(int topic) {
            if (topic != last) {
                last = topic;
                size = 0;
                return scan(topic);
            }
            if (size == 0) {
                for (int kind = readers.next(topic, 0); kind >= 0; kind = readers.next(topic, kind + 1)) {
                    heap[size++] = kind;
                }
                for (int place = size / 2 - 1; place >= 0; place--) {
                    sinkFrom(place);
                }
            }
            return size == 0 ? NONE : heap[0];
        }

        private int scan(int topic) {
            int best = NONE;
            double lowest = Double.POSITIVE_INFINITY;
            for (int kind = readers.next(topic, 0); kind >= 0; kind = readers.next(topic, kind + 1)) {
                if (low[kind] < lowest || low[kind] == lowest && before(kind, best)) {
                    best = kind;
                    lowest = low[kind];
                }
            }
            return best;
        }

        /** Takes notice that the level of the member on top of a kind rose, which was found last. */
        void sink(int kind) {
            of[kind].sink();
            low[kind] = level[of[kind].top()];
            if (size > 0) {
                sinkFrom(0);
            }
        }

        private void sinkFrom(int from) {
            int kind = heap[from];
            int place = from;
            for (int child = 2 * place + 1; child < size; child = 2 * place + 1) {
                if (child + 1 < size && before(heap[child + 1], heap[child])) {
                    child++;
                }
                if (!before(heap[child], kind)) {
                    break;
                }
                heap[place] = heap[child];
                place = child;
            }
            heap[place] = kind;
        }

        private boolean before(int kind, int other) {
            return of[kind].before(of[kind].top(), of[other].top());
        }
    }

    /** The partitions that members may give in a round, of each member heaviest first: those that it had before. */
    private final class Held {
        private final int[] first = new int[level.length + 1]; // where each member's begin
        private final int[] lightest = new int[level.length]; // partition of each member, or NONE
        private final BitSet[] topics = new BitSet[level.length]; // of each member's partitions

        private final int[] partition;
        private final int[] next; // from each place the first one whose partition is not taken, in some steps
        private final int[] at = new int[level.length]; // where the newcomer whose turn it is goes on

        Held(int[] order) {
            for (int member = 0; member < level.length; member++) {
                first[member + 1] = first[member] + count[member];
            }
            partition = new int[first[level.length]];
            next = new int[partition.length + 1];
            Arrays.setAll(next, place -> place);
            turn();
            for (int each : order) {
                if (owner[each] != NONE) {
                    partition[at[owner[each]]++] = each;
                }
            }
            for (int member = 0; member < level.length; member++) {
                lightest[member] = count[member] == 0 ? NONE : partition[first[member + 1] - 1];
                topics[member] = new BitSet();
                for (int place = first[member]; place < first[member + 1]; place++) {
                    topics[member].set(topicOf[partition[place]]);
                }
            }
        }

        /** Returns false if a giver has nothing for a newcomer, which is often found out without its partitions. */
        boolean mayGive(int giver, int member) {
            return lightest[giver] != NONE
                    && levelWith(member, lightest[giver]) < level[giver]
                    && topics[giver].intersects(readers.topicsOf(member));
        }

        /** Begins the turn of another newcomer. */
        void turn() {
            System.arraycopy(first, 0, at, 0, at.length);
        }

        /** Removes the giver's heaviest partition that a newcomer can take; {@link #NONE} without one. */
        int take(int member, int giver) {
            int end = first[giver + 1];
            // In one turn the newcomer's level rises and the giver's falls: what was too heavy stays so.
            int place = left(lightEnough(member, giver, at[giver], end));
            while (place < end && !readers.has(topicOf[partition[place]], member)) {
                place = left(place + 1);
            }
            at[giver] = place;
            if (place >= end) {
                return NONE;
            }
            next[place] = place + 1;
            return partition[place];
        }

        /** Returns the first place from which a newcomer stays below a giver with one partition more. */
        private int lightEnough(int member, int giver, int from, int end) {
            int low = from;
            int high = end;
            while (low < high) {
                int middle = (low + high) >>> 1;
                if (levelWith(member, partition[middle]) < level[giver]) {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            return low;
        }

        private int left(int from) {
            int place = from;
            while (next[place] != place) {
                next[place] = next[next[place]];
                place = next[place];
            }
            return place;
        }
    }
}
