"""A user's on_decision has a thread of its own: nothing waits for it."""

import threading

import pytest

from loadwise.assignor import listener as listener_module
from loadwise.assignor.listener import Listener


class Function:
    """It waits for its permission, and keeps what it got."""

    def __init__(self):
        self.got, self.entered, self.may = [], threading.Semaphore(0), threading.Semaphore(0)
        self.threads = set()

    def __call__(self, decision):
        self.threads.add(threading.current_thread())
        self.entered.release()
        assert self.may.acquire(timeout=60)
        self.got.append(decision)


@pytest.fixture
def function():
    made = Function()
    yield made
    made.may.release(100)


def test_of_decisions_that_come_meanwhile_the_newest_is_next(function):
    listener = Listener(function)
    listener.tell(1)
    assert function.entered.acquire(timeout=60)
    for decision in (2, 3, 4):
        listener.tell(decision)
    function.may.release(2)
    assert function.entered.acquire(timeout=60)
    function.may.release()
    listener.close()
    assert (function.got, listener.skipped) == ([1, 4], 2)
    assert threading.current_thread() not in function.threads


def test_closing_waits_a_second_at_most_and_nothing_comes_after_it(function, monkeypatch):
    monkeypatch.setattr(listener_module, "_CLOSING_S", 0.01)
    listener = Listener(function)
    listener.tell(1)
    assert function.entered.acquire(timeout=60)
    listener.close()
    listener.tell(2)
    assert function.got == []
    function.may.release()
    (thread,) = function.threads
    thread.join(60)
    assert (thread.is_alive(), function.got) == (False, [1])


def test_the_thread_of_an_idle_listener_ends_and_another_begins(monkeypatch):
    monkeypatch.setattr(listener_module, "_IDLE_S", 0.01)
    threads = []
    listener = Listener(lambda _: threads.append(threading.current_thread()))
    for decision in (1, 2):
        listener.tell(decision)
        while len(threads) < decision:
            pass
        threads[-1].join(60)
        assert not threads[-1].is_alive()
    assert threads[0] is not threads[1]


def test_a_function_may_close_its_consumer():
    done = threading.Event()

    def close(_):
        listener.close()
        done.set()

    listener = Listener(close)
    listener.tell(1)
    assert done.wait(60)


def test_what_it_raises_is_logged_once_until_it_works_again(caplog):
    listener, seen = Listener(lambda fails: raises(fails)), threading.Semaphore(0)

    def raises(fails):
        seen.release()
        if fails:
            raise RuntimeError("nobody answers the pager")

    for fails in (True, True, False, True):
        listener.tell(fails)
        assert seen.acquire(timeout=60)
    listener.close()
    assert caplog.text.count("on_decision failed") == 2
