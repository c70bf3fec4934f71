"""Large requests, which are answered in slices: one slice in each turn of the loop.

A request with more than `AT_ONCE` elements in its arrays is cut into slices (`loadwise.protocol.cutting`). Each slice
is handled as a separate request, so it sees the changes of other requests since the slice before. All bytes are checked
before the first slice. An error for a whole slice, such as NOT_COORDINATOR, ends the request and is its answer.
Requests that are answered as a whole (`rows_inward`) are not cut, and fail if they are too large. A heartbeat may still
name all partitions of a large cluster: a thread decodes it, so that the loop stays free.

The slices of a Fetch wait side by side. Once one has a result, the others stop waiting.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias, TypeVar

from loadwise.coordinator.calls import Answer, Call, HangUp, LastAnswer, NoAnswer, Response
from loadwise.coordinator.cluster.topics import MAX_NEW_PARTITIONS, TOO_MANY_AT_ONCE
from loadwise.coordinator.groups.events import Token
from loadwise.coordinator.refusals import refusal, rows_inward
from loadwise.protocol.cutting import Cut, Cutter, Joiner, Path, cutter
from loadwise.protocol.decoding import AT_ONCE
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.errors import MalformedBytesError, TooManyElementsError
from loadwise.protocol.kafka_messages import CreatePartitionsRequest, CreateTopicsRequest
from loadwise.protocol.messages import Api, Request, decode_request, request_header, unreadable
from loadwise.protocol.structs import Struct


class Joined(NamedTuple):
    """A response with its encoded body in pieces."""

    response: Struct
    pieces: list[bytes]


_Topic = TypeVar("_Topic", CreateTopicsRequest.CreatableTopic, CreatePartitionsRequest.CreatePartitionsTopic)
_Slices: TypeAlias = Iterator[tuple[bytes, Path]]


class _Repeated(set[str]):
    """Names of topics that several slices create or grow, which Kafka refuses as duplicates."""

    def __init__(self) -> None:
        super().__init__()
        self._refused: set[str] = set()

    def refused_once(self, topics: Sequence[_Topic]) -> list[_Topic]:
        """Return a slice's topics. The first slice with a repeated one has it twice, the others do not have it."""
        result = []
        for topic in topics:
            if topic.name not in self:
                result.append(topic)
            elif topic.name not in self._refused:
                self._refused.add(topic.name)
                result += [topic, topic]
        return result


def without_body(frame: bytes, apis: Mapping[int, Api]) -> Request:
    """Decode a request with empty arrays, for what must be known before they are decoded."""
    api, version, correlation_id, client_id, _ = request_header(frame, apis)
    return Request(api, version, correlation_id, client_id, api.request())


class LargeRequests:
    """The large requests of all connections, handled in turn.

    ``few_elements`` is the maximum for a request that is decoded in one turn. ``most_elements`` is the maximum for a
    request that is not cut, and for a slice. ``new_partitions`` returns for an API key the function that counts the
    partitions that a request would create. ``handle`` handles a slice, ``hurry`` completes a waiting fetch, and `take`
    gets the answers.
    ``forget`` drops an answer that is no longer needed.
    """

    def __init__(
        self,
        apis: Mapping[int, Api],
        *,
        handle: Callable[[Call], None],
        hurry: Callable[[Token], None],
        forget: Callable[[Token], None],
        new_token: Callable[[], Token],
        few_elements: int,
        most_elements: Callable[[], int],
        new_partitions: Callable[[int], Callable[[Any], int] | None],
        max_bytes: int,
    ) -> None:
        self._apis = apis
        self._handle = handle
        self._hurry = hurry
        self._forget = forget
        self._new_token = new_token
        self._few_elements = few_elements
        self._most_elements = most_elements
        self._new_partitions = new_partitions
        self._max_bytes = max_bytes
        self._turn = asyncio.Lock()
        self._waiting: dict[Token, asyncio.Future[Response]] = {}
        self._joiners: set[Joiner] = set()

    def take(self, answer: Answer) -> bool:
        """Accept an answer if it belongs to a slice, and return whether it does."""
        waiting = self._waiting.pop(answer.call.token, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer.response)
        return answer.call.is_slice

    async def response(self, call: Call, frame: bytes) -> Response | Joined:
        """Return the response to a request; ``call`` has an empty body.

        Raises `MalformedBytesError`.
        """
        api, version = call.request.api, call.version
        rows = rows_inward(api.name, version)
        try:
            if rows is None:
                async with self._turn:
                    request = await self._whole(frame)
                    whole = call._replace(request=request, token=self._new_token(), is_slice=True)
                    answer = self._ask(whole)
                    await asyncio.sleep(0)
                return await self._answered(whole, answer)
            cutting = cutter(api.request.schema, version, rows[0])
            cut = await self._cut(cutting, frame)
        except TooManyElementsError as problem:
            refused = refusal(call, ErrorCode.INVALID_REQUEST, str(problem))
            return refused if getattr(refused, "error_code", 0) else HangUp(str(problem))
        except (struct.error, IndexError, ValueError) as problem:
            raise unreadable(api, version, problem) from problem
        joiner = Joiner(api.response.schema, version, rows[1])
        self._joiners.add(joiner)
        try:
            slices = cutting.requests(frame, cut)
            if api.name == "Fetch":
                return await self._side_by_side(call, slices, joiner)
            makes_too_many, repeated = await self._look_ahead(call, cutting.requests(frame, cut))
            return await self._one_by_one(call, slices, joiner, repeated, makes_too_many=makes_too_many)
        finally:
            self._joiners.discard(joiner)

    async def _whole(self, frame: bytes) -> Request:
        """Decode a request that is answered as a whole."""
        with suppress(TooManyElementsError):
            return decode_request(frame, self._apis, most=self._few_elements)
        return await asyncio.to_thread(decode_request, frame, self._apis, most=self._most_elements())

    async def _cut(self, cutting: Cutter, frame: bytes) -> Cut:
        *_, start = request_header(frame, self._apis)
        reading = cutting.cut(frame, start, self._most_elements())
        while True:
            async with self._turn:
                elements = 0
                try:
                    while elements < AT_ONCE:
                        elements += next(reading)
                except StopIteration as end:
                    cut: Cut = end.value[0]
                    return cut
                await asyncio.sleep(0)

    async def _look_ahead(self, call: Call, slices: _Slices) -> tuple[bool, _Repeated]:
        """Return whether all slices together would create too many partitions, and the topics of several slices."""
        count = self._new_partitions(call.request.api.key)
        if count is None:
            return False, _Repeated()
        made = 0
        seen: set[str] = set()
        repeated = _Repeated()
        for frame, _ in slices:
            async with self._turn:
                body = self._slice(call, frame).body
                made += count(body)
                names = {topic.name for topic in body.topics}
                repeated |= names & seen
                seen |= names
                await asyncio.sleep(0)
        return made > MAX_NEW_PARTITIONS, repeated

    async def _one_by_one(
        self, call: Call, slices: _Slices, joiner: Joiner, repeated: _Repeated, *, makes_too_many: bool
    ) -> Response | Joined:
        response: Response = NoAnswer()
        for frame, path in slices:
            async with self._turn:
                one = self._slice(call, frame)
                if repeated:
                    one.body.topics = repeated.refused_once(one.body.topics)
                answer = None if makes_too_many else self._ask(one)
                await asyncio.sleep(0)
            if answer is None:
                response = refusal(one, TOO_MANY_AT_ONCE.error, TOO_MANY_AT_ONCE.message)
            else:
                response = await self._answered(one, answer)
            if _ends(response):
                return response
            if isinstance(response, Struct):
                await self._join(joiner, response, path)
        return response if isinstance(response, NoAnswer) else Joined(*joiner.finish())

    async def _side_by_side(self, call: Call, slices: _Slices, joiner: Joiner) -> Response | Joined:
        """Handle the slices of a fetch; they wait together until one has a result, and then none waits."""
        asked: deque[tuple[Call, Path, asyncio.Future[Response]]] = deque()
        most_bytes = spent_bytes = 0
        has_result = False

        def count(answered: asyncio.Future[Response]) -> None:
            nonlocal spent_bytes, has_result
            if not answered.cancelled():
                spent_bytes += _records_bytes(answered.result())
                has_result = True

        def limit(one: Call) -> None:
            left = most_bytes - spent_bytes
            one.body.max_bytes = left if left > 0 else -1

        async def join() -> Response | None:
            """Join what was asked, in its order; return an answer that ends the request."""
            while asked:
                one, path, answer = asked[0]
                if not answer.done():
                    async with self._turn:
                        limit(one)
                        self._hurry(one.token)
                        await asyncio.sleep(0)
                response = await answer
                asked.popleft()
                if _ends(response):
                    return response
                assert isinstance(response, Struct)
                await self._join(joiner, response, path)
            return None

        last = None
        try:
            for frame, path in slices:
                async with self._turn:
                    one = self._slice(call, frame)
                    most_bytes = one.body.max_bytes
                    limit(one)
                    if has_result:
                        one.body.max_wait_ms = 0
                    answer = self._ask(one)
                    answer.add_done_callback(count)
                    asked.append((one, path, answer))
                    await asyncio.sleep(0)
                if has_result and (last := await join()) is not None:
                    return last
            if asked:
                await asyncio.wait([answer for *_, answer in asked], return_when=asyncio.FIRST_COMPLETED)
                last = await join()
        finally:
            for one, _, answer in asked:
                answer.cancel()
                self._drop(one.token)
        return Joined(*joiner.finish()) if last is None else last

    async def _join(self, joiner: Joiner, response: Struct, path: Path) -> None:
        async with self._turn:
            joiner.add(response, path)
            if sum(each.size_bytes for each in self._joiners) > self._max_bytes:
                raise MalformedBytesError(f"answers to large requests exceed {self._max_bytes:,} bytes together")
            await asyncio.sleep(0)

    def _slice(self, call: Call, frame: bytes) -> Call:
        request = decode_request(frame, self._apis, most=2 * AT_ONCE + self._most_elements())
        return call._replace(request=request, token=self._new_token(), is_slice=True)

    def _ask(self, call: Call) -> asyncio.Future[Response]:
        answer = self._waiting[call.token] = asyncio.get_running_loop().create_future()
        self._handle(call)
        return answer

    async def _answered(self, call: Call, answer: asyncio.Future[Response]) -> Response:
        try:
            return await answer
        finally:
            if answer.cancelled():
                self._drop(call.token)

    def _drop(self, token: Token) -> None:
        """Forget a slice whose answer is no longer needed."""
        self._waiting.pop(token, None)
        self._forget(token)


def _ends(response: Response) -> bool:
    """Return whether a slice's answer is the answer to the whole request, and ends it."""
    return isinstance(response, HangUp | LastAnswer) or bool(getattr(response, "error_code", 0))


def _records_bytes(response: Response) -> int:
    topics = getattr(response, "responses", ())
    return sum(len(each.records or b"") for topic in topics for each in topic.partitions)
