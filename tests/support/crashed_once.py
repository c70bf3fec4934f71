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
        for file in self.assigned_work[node].values():
            crashed = next((test for test, is_over in file.items() if not is_over), None)
            if crashed is not None:
                file[crashed] = True
                # The scheduler asks for the test by what is not over; so the rest is handed over here.
                self.workqueue.update(self.assigned_work.pop(node))
                for other in self.assigned_work:
                    self._reschedule(other)
                return crashed
        return super().remove_node(node)
