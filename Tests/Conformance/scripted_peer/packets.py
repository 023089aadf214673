"""Inner packets built and read by hand: IPv4, IPv6, UDP, ICMP, ICMPv6."""

import ipaddress
import struct


def internet_checksum(data):
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _pseudo_header(source, destination, protocol, length):
    source, destination = ipaddress.ip_address(source), ipaddress.ip_address(destination)
    if source.version == 4:
        return source.packed + destination.packed + struct.pack(">BBH", 0, protocol, length)
    return source.packed + destination.packed + struct.pack(">IHBB", length, 0, 0, protocol)


def transport_checksum(source, destination, protocol, segment):
    return internet_checksum(_pseudo_header(source, destination, protocol, len(segment)) + segment)


def ipv4(source, destination, protocol, payload, *, tos=0, ttl=64, identification=0, fragment=0, total_length=None,
         version=4):
    """An IPv4 packet without options. `fragment` is the whole flags-and-offset word."""
    length = 20 + len(payload) if total_length is None else total_length
    header = struct.pack(
        ">BBHHHBBH4s4s", version << 4 | 5, tos, length, identification, fragment, ttl, protocol, 0,
        ipaddress.IPv4Address(source).packed, ipaddress.IPv4Address(destination).packed)
    return header[:10] + struct.pack(">H", internet_checksum(header)) + header[12:] + payload


def ipv6(source, destination, next_header, payload, *, traffic_class=0, hop_limit=64, payload_length=None):
    length = len(payload) if payload_length is None else payload_length
    return (struct.pack(">IHBB", 6 << 28 | traffic_class << 20, length, next_header, hop_limit)
            + ipaddress.IPv6Address(source).packed + ipaddress.IPv6Address(destination).packed + payload)


def ip(source, destination, protocol, payload, *, tos=0, **fields):
    """An IPv4 or IPv6 packet, as the addresses say."""
    if ipaddress.ip_address(source).version == 4:
        return ipv4(source, destination, protocol, payload, tos=tos, **fields)
    return ipv6(source, destination, protocol, payload, traffic_class=tos, **fields)


def udp(source, destination, source_port, destination_port, payload, *, tos=0, **fields):
    """A whole IP packet that carries a UDP datagram."""
    segment = struct.pack(">HHHH", source_port, destination_port, 8 + len(payload), 0) + payload
    checksum = transport_checksum(source, destination, 17, segment) or 0xFFFF
    segment = segment[:6] + struct.pack(">H", checksum) + segment[8:]
    return ip(source, destination, 17, segment, tos=tos, **fields)


def icmp(source, destination, kind, code, rest, *, tos=0, **fields):
    """A whole IP packet that carries an ICMP or ICMPv6 message; `rest` follows the checksum."""
    if ipaddress.ip_address(source).version == 4:
        body = struct.pack(">BBH", kind, code, 0) + rest
        body = body[:2] + struct.pack(">H", internet_checksum(body)) + body[4:]
        return ip(source, destination, 1, body, tos=tos, **fields)
    body = struct.pack(">BBH", kind, code, 0) + rest
    body = body[:2] + struct.pack(">H", transport_checksum(source, destination, 58, body)) + body[4:]
    return ip(source, destination, 58, body, tos=tos, **fields)


def echo_reply(source, destination, payload=b"", *, identifier=0, sequence=0, **fields):
    """Data that no stack answers: an echo reply nobody asked for."""
    kind = 0 if ipaddress.ip_address(source).version == 4 else 129
    return icmp(source, destination, kind, 0, struct.pack(">HH", identifier, sequence) + payload, **fields)


def echo_answer(packet):
    """The echo reply to an echo request, or None when `packet` is none."""
    view = IPView(packet)
    if view.version == 4 and view.protocol == 1 and view.payload[:1] == b"\x08":
        return icmp(view.destination, view.source, 0, 0, view.payload[4:])
    if view.version == 6 and view.protocol == 58 and view.payload[:1] == b"\x80":
        return icmp(view.destination, view.source, 129, 0, view.payload[4:])
    return None


class IPView:
    """The fields of an IP packet; raises ValueError when it cannot be one. Trailing bytes are kept in `padding`."""

    def __init__(self, data):
        if len(data) < 20:
            raise ValueError("shorter than an IP header")
        self.version = data[0] >> 4
        if self.version == 4:
            self.header_length = (data[0] & 15) * 4
            self.total_length = struct.unpack_from(">H", data, 2)[0]
            self.tos, self.ttl, self.protocol = data[1], data[8], data[9]
            self.fragment = struct.unpack_from(">H", data, 6)[0]
            self.source = str(ipaddress.IPv4Address(data[12:16]))
            self.destination = str(ipaddress.IPv4Address(data[16:20]))
        elif self.version == 6 and len(data) >= 40:
            self.header_length = 40
            self.total_length = 40 + struct.unpack_from(">H", data, 4)[0]
            self.tos = struct.unpack_from(">I", data)[0] >> 20 & 0xFF
            self.protocol, self.ttl, self.fragment = data[6], data[7], 0
            self.source = str(ipaddress.IPv6Address(data[8:24]))
            self.destination = str(ipaddress.IPv6Address(data[24:40]))
        else:
            raise ValueError("neither IPv4 nor IPv6")
        if self.total_length > len(data):
            raise ValueError("truncated")
        self.packet = data[:self.total_length]
        self.payload = data[self.header_length:self.total_length]
        self.padding = data[self.total_length:]

    @property
    def header_checksum_is_valid(self):
        return self.version == 6 or internet_checksum(self.packet[:self.header_length]) == 0

    @property
    def transport_checksum_is_valid(self):
        if self.protocol == 1:
            return internet_checksum(self.payload) == 0
        return transport_checksum(self.source, self.destination, self.protocol, self.payload) == 0

    @property
    def udp_payload(self):
        return self.payload[8:] if self.protocol == 17 else None
