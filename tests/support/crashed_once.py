"""What pytest-xdist does with the rest of a test file whose process ended: all but the test that ended it."""

from __future__ import annotations

from xdist.scheduler.loadfile import LoadFileScheduling
from xdist.workermanage import WorkerController


class CrashedOnce(LoadFileScheduling):
    """``--dist loadfile``, where a test that ends its process is not run again by the process that replaces it.

    Without this, pytest-xdist gives the whole rest of the file to the next process, the test included, and a test that
    hangs takes its timeout nine times.
    """

    def remove_node(self, node: WorkerController) -> str | None:
        """Take a process out, and answer with the test that ended it, if one did."""
        files = self.assigned_work[node]
        tests = {test: file for file in files.values() for test, is_over in file.items() if not is_over}
        if not tests:
            return super().remove_node(node)
        crashed, file = next(iter(tests.items()))
        file[crashed] = True
        del self.assigned_work[node]
        # A file without any test left would be waited for without end.
        self.workqueue.update({path: file for path, file in files.items() if not all(file.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed
