import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line programs, one after the other in one process, since starting Java takes longer than they
 * do. A line of input is a class and its arguments, with tabs between them; ETX begins what the program reads. The
 * answer is what it wrote, the number that it ended with, and a line with EOT.
 */
public class Tools {
    static class Ended extends RuntimeException {
        final int code;

        Ended(int code, String message) {
            super(message, null, false, false);
            this.code = code;
        }
    }

    public static void main(String[] ignored) throws Exception {
        PrintStream out = System.out;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        Exit.setExitProcedure((code, message) -> { throw new Ended(code, message); });
        Exit.setHaltProcedure((code, message) -> { throw new Ended(code, message); });
        // One stream for all of them: those in Scala print to the one that there was when Scala's Console was loaded.
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        PrintStream to = new PrintStream(written, true, "UTF-8");
        System.setOut(to);
        System.setErr(to);
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.split("\t", -1);
            int input = Arrays.asList(words).indexOf("\u0003");
            String[] arguments = Arrays.copyOfRange(words, 1, input < 0 ? words.length : input);
            String read = input < 0 ? "" : String.join("\n", Arrays.copyOfRange(words, input + 1, words.length));
            written.reset();
            System.setIn(new ByteArrayInputStream(read.getBytes("UTF-8")));
            int code = 0;
            try {
                Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
            } catch (InvocationTargetException failed) {
                Throwable cause = failed.getCause();
                if (cause instanceof Ended ended) {
                    code = ended.code;
                    if (ended.getMessage() != null)
                        to.println(ended.getMessage());
                } else {
                    code = 1;
                    to.println(cause);
                }
            }
            to.flush();
            out.print(written.toString("UTF-8"));
            out.println("\nended " + code);
            out.println("\u0004");
            out.flush();
        }
    }
}
