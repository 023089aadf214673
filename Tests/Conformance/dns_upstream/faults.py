"""Wrong answers: each function takes the right answer and returns one that must never reach a client."""

import struct

from dns_upstream.messages import QR, TC, Query


def _with_question(message: bytes, change) -> bytes:
    end = Query(message).question_end
    question = bytearray(message[12:end])
    change(question)
    return message[:12] + bytes(question) + message[end:]


def wrong_id(message: bytes) -> bytes:
    """The same with another ID."""
    return struct.pack(">H", Query(message).id ^ 0x5555) + message[2:]


def wrong_name(message: bytes) -> bytes:
    """The same for a name whose first letter is another one."""
    def change(question: bytearray) -> None:
        question[1] = ord("y") if question[1] | 0x20 == ord("x") else ord("x")

    return _with_question(message, change)


def wrong_type(message: bytes) -> bytes:
    """The same for the type MX."""
    def change(question: bytearray) -> None:
        question[-4:-2] = b"\0\x0f"

    return _with_question(message, change)


def wrong_class(message: bytes) -> bytes:
    """The same for the class CHAOS."""
    def change(question: bytearray) -> None:
        question[-2:] = b"\0\3"

    return _with_question(message, change)


def lower_case(message: bytes) -> bytes:
    """The same with the question's letters in lower case."""
    def change(question: bytearray) -> None:
        question[:] = bytes(question[:-4]).lower() + bytes(question[-4:])

    return _with_question(message, change)


def not_an_answer(message: bytes) -> bytes:
    """The same with QR=0."""
    return _with_flags(message, Query(message).flags & ~QR)


def two_questions(message: bytes) -> bytes:
    """The same with QDCOUNT=2 and its question twice."""
    end = Query(message).question_end
    return message[:4] + b"\0\2" + message[6:end] + message[12:end] + message[end:]


def no_question(message: bytes) -> bytes:
    """The same with QDCOUNT=0 and no question."""
    return message[:4] + b"\0\0" + message[6:12] + message[Query(message).question_end:]


def unparseable(message: bytes) -> bytes:
    """The same with an answer more than there is."""
    return message[:6] + struct.pack(">H", Query(message).counts[1] + 1) + message[8:]


def cut(message: bytes) -> bytes:
    """The same without its last three bytes."""
    return message[:-3]


def header_only(message: bytes) -> bytes:
    """Its header, which announces a question and answers."""
    return message[:12]


def truncated(message: bytes) -> bytes:
    """TC is set, and there are no records (RFC 2181 §9)."""
    return _with_flags(message[:4] + b"\0\1\0\0\0\0\0\0" + message[12:Query(message).question_end],
                       Query(message).flags | TC)


def _with_flags(message: bytes, flags: int) -> bytes:
    return message[:2] + struct.pack(">H", flags) + message[4:]


#: The wrong answers that have the right ID, by what is wrong: on each transport one of them is no answer.
WRONG_ANSWERS = {
    "name": wrong_name, "type": wrong_type, "class": wrong_class, "QR": not_an_answer, "two-questions": two_questions,
    "no-question": no_question, "unparseable": unparseable, "cut": cut, "header": header_only,
}
