"""TAI64N time stamps as WireGuard uses them."""

import struct
import threading
import time

#: 2^62, the label's origin, plus the ten seconds by which TAI led UTC in 1970.
TAI64_EPOCH = 0x400000000000000A
GRANULARITY = 1 << 24


class TAI64N:
    """A twelve-byte stamp; compares as its bytes do."""

    _lock = threading.Lock()
    _last = 0

    def __init__(self, seconds_label, nanoseconds):
        self.seconds_label = seconds_label
        self.nanoseconds = nanoseconds

    @classmethod
    def at(cls, unix_seconds, nanoseconds=0):
        return cls(TAI64_EPOCH + int(unix_seconds), nanoseconds)

    @classmethod
    def now(cls):
        """The present, strictly later than every earlier `now` of this process."""
        with cls._lock:
            cls._last = max(time.time_ns(), cls._last + 1)
            return cls.at(cls._last // 10**9, cls._last % 10**9)

    @classmethod
    def unpack(cls, data):
        return cls(*struct.unpack(">QI", data))

    def pack(self):
        return struct.pack(">QI", self.seconds_label, self.nanoseconds)

    @property
    def unix(self):
        """UNIX time as a float, in seconds."""
        return self.seconds_label - TAI64_EPOCH + self.nanoseconds / 1e9

    def __lt__(self, other):
        return self.pack() < other.pack()

    def __eq__(self, other):
        return self.pack() == other.pack()

    def __repr__(self):
        return f"TAI64N({self.seconds_label:#x}, {self.nanoseconds})"
