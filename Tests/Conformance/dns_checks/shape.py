"""What every answer has in common, and small judgements that many checks share."""

import math
import time
from typing import Callable

from dns_wire import AA, CD, QR, RA, RD, TC, Z, Message, text
from waiting import expect, expect_equal, pause

#: Header and question of the list of raw inputs: ID abcd, RD, example.com A.
HEADER, QUESTION = bytes.fromhex("abcd01000001000000000000"), bytes.fromhex("076578616d706c6503636f6d0000010001")
#: Response codes by name, for the reasons of failures.
_NAMES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED", 9: "NOTAUTH",
          16: "BADVERS"}


def code_name(code: int) -> str:
    """A response code as a word."""
    return _NAMES.get(code, str(code))


def expect_code(answer: Message, *codes: int, what: str = "the answer") -> Message:
    """The answer must have one of these response codes."""
    expect(answer.code in codes,
           f"{what} has the code {code_name(answer.code)}, expected {' or '.join(map(code_name, codes))}: {answer}")
    return answer


def expect_addresses(answer: Message, *addresses: str, what: str = "the answer") -> Message:
    """The answer must be a good one with these addresses, in any order."""
    expect(answer.code == 0 and sorted(answer.addresses) == sorted(addresses),
           f"{what} should have {', '.join(addresses) or 'no address'}: {answer}")
    return answer


def expect_shape(query: bytes, answer: Message, *, truncated: bool = False, what: str = "the answer") -> Message:
    """The header and the question must be what the query makes of them (RFC 1035 §4.1.1): what is to be copied is
    copied, letter by letter, and what is the answer's own is set."""
    asked = Message(query)
    expect_equal(answer.identifier, asked.identifier, f"the ID of {what}")
    expect_equal(answer.opcode, asked.opcode, f"the opcode of {what}")
    for bit, name, wanted in [
            (QR, "QR", True), (RA, "RA", True), (AA, "AA", False), (Z, "Z", False), (TC, "TC", truncated),
            (RD, "RD", bool(asked.flags & RD)), (CD, "CD", bool(asked.flags & CD))]:
        expect(bool(answer.flags & bit) == wanted, f"{name} of {what} is not {int(wanted)}: {answer}")
    expect_equal([(text(one.name), one.kind, one.record_class) for one in answer.questions],
                 [(text(one.name), one.kind, one.record_class) for one in asked.questions], f"the question of {what}")
    return answer


def expect_empty(answer: Message, what: str = "the answer") -> Message:
    """There must be no record in it but OPT."""
    expect(not answer.answers and not answer.authority and not answer.additional, f"{what} should be empty: {answer}")
    return answer


def expect_negative(answer: Message, code: int, what: str = "the answer") -> Message:
    """There is no such name (NXDOMAIN) or nothing of the type (NOERROR), and an SOA record says for how long."""
    expect_code(answer, code, what=what)
    kinds = [one.kind for one in answer.authority]
    expect(not answer.answers and kinds == [6], f"{what} should be nothing but an SOA record: {answer}")
    return answer


def minimum_of(answer: Message) -> "tuple[int, int]":
    """TTL and MINIMUM of the SOA record in the authority section."""
    found = [one for one in answer.authority if one.kind == 6]
    expect(len(found) == 1, f"not one SOA record: {answer}")
    return found[0].ttl, int.from_bytes(found[0].plain[-4:], "big")


def ages(ask: "Callable[[], Message]", seconds: float) -> "tuple[Message, Message, range]":
    """Asks, lets time pass and asks again: both answers, and how many seconds older the second may say to be."""
    started = time.monotonic()
    first = ask()
    stored = time.monotonic()
    pause(seconds)
    asked = time.monotonic()
    second = ask()
    ended = time.monotonic()
    return first, second, range(math.floor(asked - stored), math.ceil(ended - started) + 1)
