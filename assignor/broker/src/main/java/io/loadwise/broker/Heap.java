package io.loadwise.broker;

/** Members; on top the one with the lowest key, of equal keys the one with the lowest count, then the first. */
final class Heap {
    private final double[] key;
    private final int[] count;
    private final int[] heap;
    private int size;

    /** Makes an empty heap. {@code key} and {@code count} may change for the member on top, which then {@link #sink}s. */
    Heap(double[] key, int[] count, int capacity) {
        this.key = key;
        this.count = count;
        this.heap = new int[capacity];
    }

    boolean isEmpty() {
        return size == 0;
    }

    int top() {
        return heap[0];
    }

    void add(int member) {
        int at = size++;
        while (at > 0 && before(member, heap[(at - 1) / 2])) {
            heap[at] = heap[(at - 1) / 2];
            at = (at - 1) / 2;
        }
        heap[at] = member;
    }

    int pop() {
        int top = heap[0];
        heap[0] = heap[--size];
        sink();
        return top;
    }

    /** Moves the member on top to its place, after its key or count rose. */
    void sink() {
        int member = heap[0];
        int at = 0;
        for (int child = 1; child < size; child = 2 * at + 1) {
            if (child + 1 < size && before(heap[child + 1], heap[child])) {
                child++;
            }
            if (!before(heap[child], member)) {
                break;
            }
            heap[at] = heap[child];
            at = child;
        }
        heap[at] = member;
    }

    /** Returns whether one member comes before another one. */
    boolean before(int one, int other) {
        if (key[one] != key[other]) {
            return key[one] < key[other];
        }
        return count[one] != count[other] ? count[one] < count[other] : one < other;
    }
}
