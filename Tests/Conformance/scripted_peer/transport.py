"""A derived session: two keys, two indices, and a counter that the test may choose."""

from .messages import Data
from .primitives import open_, seal


class Session:
    """Keys for both directions. `local_index` is ours: what the other side puts into `receiver`."""

    def __init__(self, local_index, remote_index, sending_key, receiving_key, role):
        self.local_index, self.remote_index = local_index, remote_index
        self.sending_key, self.receiving_key = sending_key, receiving_key
        self.role = role
        self.next_counter = 0

    def seal(self, plaintext=b"", *, counter=None, pad=True):
        """A data message. Without `counter` the next one is used; `pad` rounds up to sixteen bytes with zeros."""
        if counter is None:
            counter = self.next_counter
            self.next_counter += 1
        if pad:
            plaintext += bytes(-len(plaintext) % 16)
        return Data(self.remote_index, counter, seal(self.sending_key, counter, plaintext, b""))

    def open(self, message):
        """The padded plaintext; raises AuthenticationFailure."""
        return open_(self.receiving_key, message.counter, message.ciphertext, b"")
