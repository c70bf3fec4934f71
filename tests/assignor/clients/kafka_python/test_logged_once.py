"""A client that its user does not see logs the first line of a trouble, and a reader of offsets none."""

from __future__ import annotations

import gc
import logging
import threading

import pytest

from loadwise.assignor.clients.kafka_python import logged_once
from loadwise.assignor.clients.kafka_python.logged_once import log_nothing, log_once


@pytest.mark.parametrize(("how", "lines"), [(log_once, 1), (log_nothing, 0), (lambda _: None, 100)])
def test_how_many_warnings_an_unseen_client_logs(how, lines, caplog):
    logger = logging.getLogger("kafka.net.connection")  # which clients of earlier tests may use meanwhile
    thread = threading.Thread(target=lambda: [logger.warning("Connection %d failed", each) for each in range(100)])
    how(thread)
    thread.start()
    thread.join()
    assert len([record for record in caplog.records if record.thread == thread.ident]) == lines


@pytest.mark.parametrize(("how", "levels"), [(log_once, ["ERROR"]), (lambda _: None, ["WARNING", "ERROR"])])
def test_the_event_loop_of_an_unseen_client_warns_of_nothing(how, levels, caplog):
    logger = logging.getLogger("kafka.net.selector")

    def log() -> None:
        logger.warning("Selector got WRITE event without writer...")
        logger.error("Task failed")

    thread = threading.Thread(target=log)
    how(thread)
    thread.start()
    thread.join()
    assert [record.levelname for record in caplog.records if record.thread == thread.ident] == levels


def test_the_loggers_of_kafka_python_are_filtered_only_while_there_are_unseen_clients(monkeypatch):
    only = logged_once._FirstOfATrouble()  # clients of other tests may still be there
    monkeypatch.setattr(logged_once, "_filter", only)
    logger = logging.getLogger("kafka.net.connection")
    threads = [threading.Thread(), threading.Thread()]
    for thread in threads:
        log_once(thread)
    assert only in logger.filters
    del thread, threads[0]
    gc.collect()
    assert only in logger.filters
    threads.clear()
    gc.collect()
    assert only not in logger.filters
