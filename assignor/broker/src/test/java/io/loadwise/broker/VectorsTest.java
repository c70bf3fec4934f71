package io.loadwise.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

class VectorsTest {
    /** Returns a test for each group of vectors.txt; loadwise's Python is tested with them too. */
    @TestFactory
    Stream<DynamicTest> vectors() throws IOException {
        try (InputStream file = VectorsTest.class.getResourceAsStream("/vectors.txt")) {
            String[] blocks = new String(file.readAllBytes(), StandardCharsets.UTF_8).split("\n\n");
            return Stream.of(blocks).skip(1)
                    .map(block -> DynamicTest.dynamicTest(block.lines().findFirst().get(), () -> check(block)));
        }
    }

    private static void check(String block) {
        FakeGroup group = new FakeGroup();
        Set<String> expected = new TreeSet<>();
        block.lines().skip(1).forEach(line -> {
            if (line.startsWith("owner\t")) {
                expected.add(line.substring("owner\t".length()));
            } else {
                Twin.add(group, line.split("\t", -1));
            }
        });
        assertEquals(expected, new TreeSet<>(Twin.rows(group.assigned())));
    }
}
