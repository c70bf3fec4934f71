import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;

/** Reads cases, a line each, and answers which tasks Kafka's StickyTaskAssignor assigns: see make_tasks.py. */
public class StickyTasks {
    record Topology(Map<String, Integer> tasks, Set<String> stateful) implements TopologyDescriber {
        public List<String> subtopologies() { return List.copyOf(tasks.keySet()); }
        public int maxNumInputPartitions(String id) { return tasks.get(id); }
        public boolean isStateful(String id) { return stateful.contains(id); }
    }

    static String told(Map<String, Set<Integer>> tasks) {
        List<String> told = new ArrayList<>();
        new TreeMap<>(tasks).forEach((id, numbers) -> new TreeSet<>(numbers).forEach(each -> told.add(id + "_" + each)));
        return String.join(",", told);
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            String[] parts = line.split(";", -1);
            Topology topology = new Topology(new TreeMap<>(), new TreeSet<>());
            for (String each : parts[1].split(",")) {
                String[] field = each.split(":");
                topology.tasks().put(field[0], Integer.valueOf(field[1]));
                if (field[2].equals("s")) topology.stateful().add(field[0]);
            }
            Map<String, MemberAssignment> before = Map.of();
            List<String> answers = new ArrayList<>();
            for (String change : parts[2].split("\\|")) {
                Map<String, AssignmentMemberSpec> members = new HashMap<>();
                for (String each : change.split(" ")) {
                    String[] field = each.split("@");
                    MemberAssignment had = before.getOrDefault(field[0], MemberAssignment.empty());
                    members.put(field[0], new AssignmentMemberSpec(
                        Optional.empty(), Optional.empty(), had.activeTasks(), had.standbyTasks(), had.warmupTasks(),
                        field[1], Map.of(), Map.of(), Map.of()));
                }
                Map<String, String> configs = Map.of("num.standby.replicas", parts[0]);
                before = new StickyTaskAssignor().assign(new GroupSpecImpl(members, configs), topology).members();
                List<String> answer = new ArrayList<>();
                new TreeMap<>(before).forEach((member, tasks) ->
                    answer.add(member + "=" + told(tasks.activeTasks()) + "/" + told(tasks.standbyTasks())));
                answers.add(String.join(" ", answer));
            }
            System.out.println(String.join("|", answers));
        }
    }
}
