"""Scripts that most checks need: what an upstream answers."""

from typing import Callable, Mapping, Sequence

from dns_upstream import messages
from dns_upstream.messages import Query
from dns_upstream.replies import Received, Reply, Response, Script


def usual(query: Query, ttl: int = 300) -> bytes:
    """An answer to anything: 192.0.2.1, 2001:db8::1 or "text" for A, AAAA and TXT, and no data for other types."""
    records = {
        messages.A: messages.address("192.0.2.1", ttl),
        messages.AAAA: messages.address("2001:db8::1", ttl),
        messages.TXT: messages.text("text", ttl),
    }
    if query.type in records and query.klass == messages.IN:
        return messages.answer(query, [records[query.type]])
    return messages.answer(query, authority=[messages.start_of_authority(ttl, ttl)])


def addresses(ttl: int = 300) -> Script:
    """Answers everything as `usual` does."""
    return lambda received: usual(received.query, ttl)


def silence(received: Received) -> Response:
    """Answers nothing."""
    return None


def losing_first(prefix: str, script: Script = addresses()) -> Script:
    """Loses the first query for each name that begins so."""
    seen: "set[str]" = set()

    def losing(received: Received) -> Response:
        if received.name.startswith(prefix) and received.name not in seen:
            seen.add(received.name)
            return None
        return script(received)

    return losing


def by_name(answers: "Mapping[str, Sequence[str]]", ttl: int = 60) -> Script:
    """Names and the addresses that they have; any other name does not exist."""
    def script(received: Received) -> Response:
        query = received.query
        if query.name not in answers:
            return messages.answer(query, authority=[messages.start_of_authority(ttl, ttl)], code=messages.NXDOMAIN)
        version = {messages.A: ".", messages.AAAA: ":"}.get(query.type, "none")
        return messages.answer(query, [messages.address(one, ttl) for one in answers[query.name] if version in one])

    return script


def late(seconds: float, script: Script = addresses()) -> Script:
    """The same answers, so many seconds later."""
    def later(received: Received) -> Response:
        answer = script(received)
        return Reply(answer, after=seconds) if isinstance(answer, bytes) else answer

    return later


def altered(change: Callable[[bytes], bytes], script: Script = addresses()) -> Script:
    """The same answers, each changed by a function such as those of `faults`."""
    return lambda received: change(script(received))


def in_turn(*scripts: Script) -> Script:
    """The first query is answered by the first script, and so on; the last one answers all that come after."""
    def turn(received: Received) -> Response:
        return scripts[min(received.number, len(scripts)) - 1](received)

    return turn
