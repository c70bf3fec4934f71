"""The live page in a real browser without a window, beside groups of real clients."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from html import unescape

import confluent_kafka
import pytest

import loadwise
from loadwise.coordinator import Coordinator, HttpOptions, ThreadedCoordinator
from loadwise.coordinator.embedding.control import GroupControl
from loadwise.coordinator.embedding.http.server import HttpRequest, HttpResponse

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
WAIT_S = 90
NASTY = "<img src=x onerror=document.title='hacked'>"


@pytest.fixture(scope="module")
def browse(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], str]:
    """Opens a page, lets so many milliseconds pass for it, and answers with what it is by then."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("the page is looked at with Chromium, which is not here: apt-get install chromium")
    profile = tmp_path_factory.mktemp("profile")

    def page(url: str, time_ms: int) -> str:
        command = [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", f"--user-data-dir={profile}", f"--virtual-time-budget={time_ms}",
            "--dump-dom", url,
        ]  # fmt: skip
        shown = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=True).stdout
        return shown[: shown.index("<script>")] if "<script>" in shown else shown

    return page


def text(html: str) -> str:
    """What a reader sees, roughly: without tags."""
    return " ".join(unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL)).split())


@pytest.fixture
def viewed() -> Iterator[ThreadedCoordinator]:
    with Coordinator({"t": 2}, http=HttpOptions(open_view=True)).in_thread() as coordinator:
        yield coordinator


@pytest.fixture
def member(viewed: ThreadedCoordinator) -> Iterator[confluent_kafka.Consumer]:
    """The only member of a group with a name that no page should take for HTML; it has committed offset 1 of 3."""
    producer = confluent_kafka.Producer({"bootstrap.servers": viewed.bootstrap_servers, "log_level": 0})
    for _ in range(3):
        producer.produce("t", b"x", partition=0)
    producer.flush(WAIT_S)
    config = {"bootstrap.servers": viewed.bootstrap_servers, "group.id": NASTY, "client.id": "reader"}
    consumer = confluent_kafka.Consumer({**config, "enable.auto.commit": False})
    consumer.subscribe(["t"])
    while not consumer.assignment():
        consumer.poll(0.1)
    consumer.commit(offsets=[confluent_kafka.TopicPartition("t", 0, 1)], asynchronous=False)
    yield consumer
    consumer.close()


def test_the_page_shows_what_the_json_says(
    browse: Callable[[str, int], str], viewed: ThreadedCoordinator, member: confluent_kafka.Consumer
) -> None:
    with urllib.request.urlopen(f"{viewed.http_url}/groups") as answer:
        (group,) = json.load(answer)["groups"]
    html = browse(viewed.http_url, 500)
    shown = text(html)
    assert "<h2>&lt;img src=x " in html, "a name is text"
    assert "hacked" not in re.findall(r"<title>(.*?)</title>", html)[0]
    assert (group["group_id"], group["state"], group["lag"]) == (NASTY, "Stable", 2)
    assert f"type classic state Stable generation {group['generation']} protocol range members 1 lag 2" in shown
    assert "reader leader t: 0, 1 2 " in shown
    assert "t 0 1 3 2 reader" in shown
    assert "t 1 - 0 - reader" in shown
    broker = f"loadwise {loadwise.__version__} at {viewed.bootstrap_servers}"
    assert shown.startswith(f"1 group - {broker} Groups live {broker} 1 groups 1 members 2 lag")
    # A slow browser shows the page only after its second reading.
    assert "The lag over time is drawn from the next reading on." in shown or 'class="line c0"' in html
    assert group["leader"] not in shown, "members have short names, in reasons too"
    assert 'data-name="utilisation"' in html, "a narrow screen has no heads of columns"
    assert re.search(r"last rebalance, \d+ m?s ago: reader joined", shown)
    assert shown.index("CompletingRebalance Stable") < shown.index("Empty PreparingRebalance"), "the newest comes first"
    assert "status" in html


def test_the_page_follows_what_happens(
    browse: Callable[[str, int], str], viewed: ThreadedCoordinator, member: confluent_kafka.Consumer
) -> None:
    server = viewed._embedded.http
    assert server is not None
    handle = server.handle
    groups = GroupControl(viewed._embedded, lambda act: act())  # in the loop already, which `viewed.groups` waits for
    seen: list[str] = []

    def and_then_rebalance(request: HttpRequest) -> HttpResponse:
        response = handle(request)
        if request.path == "/groups":
            seen.append(request.path)
            if len(seen) == 1:  # after the page has been told the first time
                groups.rebalance(NASTY)
        return response

    server.handle = and_then_rebalance
    html = browse(viewed.http_url, 3000)
    shown = text(html)
    assert len(seen) > 1
    assert 'class="line c0"' in html
    assert re.search(r"records that wait for each member \d+ m?s ago \d+ m?s ago now", shown)
    assert re.search(r"last rebalance, \d+ m?s ago: forced by a test", shown)
    assert "Stable PreparingRebalance" in shown
    assert "forced by a test" in shown


def test_the_page_says_when_it_is_not_live(browse: Callable[[str, int], str], viewed: ThreadedCoordinator) -> None:
    server = viewed._embedded.http
    assert server is not None
    handle = server.handle
    server.handle = lambda request: handle(
        HttpRequest(method="PUT" if request.path == "/groups" else "GET", path=request.path, headers=request.headers)
    )
    assert "not live: it answers 401" in text(browse(viewed.http_url, 500))


def test_without_groups_it_says_so(browse: Callable[[str, int], str], viewed: ThreadedCoordinator) -> None:
    viewed.clock.freeze()
    shown = text(browse(viewed.http_url, 500))
    assert f"No group yet. Start a consumer with a group.id and bootstrap.servers= {viewed.bootstrap_servers}" in shown
    assert "live; the clock is frozen" in shown
