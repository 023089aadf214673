"""Malformed sets of the configuration protocol, each named by its defect, with the errno that must answer it."""

import errno

INVALID = {-errno.EINVAL}
PROTOCOL = {-errno.EPROTO}
#: A line longer than any buffer may be refused as a bad value, as a broken protocol or as a failed read.
OVERSIZE = {-errno.EINVAL, -errno.EPROTO, -errno.EIO, -errno.EMSGSIZE, -errno.E2BIG, -errno.ENOBUFS}

#: The peer that peer-level lines belong to.
PEER = "a1" * 32
KEY = "b2" * 32


def _device(name, line, expected=INVALID):
    return (name, line if isinstance(line, bytes) else line.encode(), expected)


def _peer(name, line, expected=INVALID):
    raw = line if isinstance(line, bytes) else line.encode()
    return (name, b"public_key=" + PEER.encode() + b"\n" + raw, expected)


def _key_forms(key, build, also=()):
    """The wrong forms that every 32-byte key value shares."""
    forms = [
        ("empty", ""),
        ("62 digits", KEY[:62]),
        ("63 digits", KEY[:63]),
        ("65 digits", KEY + "b"),
        ("66 digits", KEY + "b2"),
        ("not hexadecimal", "zz" * 32),
        ("one wrong digit at the end", KEY[:63] + "g"),
        ("base64", "srKysrKysrKysrKysrKysrKysrKysrKysrKysrKysrI="),
        ("0x prefix", "0x" + KEY[:62]),
        ("leading space", " " + KEY),
        ("trailing space", KEY + " "),
        *also,
    ]
    return [build(f"{key} {name}", f"{key}={value}") for name, value in forms]


def _number_forms(key, build, too_big, also=()):
    forms = [
        ("empty", ""),
        ("one over the limit", too_big),
        ("far over the limit", "99999999999999999999999"),
        ("negative", "-1"),
        ("a word", "abc"),
        ("a fraction", "1.5"),
        ("hexadecimal", "0x50"),
        ("leading space", " 80"),
        ("trailing space", "80 "),
        ("trailing letter", "80x"),
        *also,
    ]
    return [build(f"{key} {name}", f"{key}={value}") for name, value in forms]


def _flag_forms(key, build):
    forms = [("empty", ""), ("false", "false"), ("1", "1"), ("upper case", "TRUE"), ("trailing space", "true ")]
    return [build(f"{key} {name}", f"{key}={value}") for name, value in forms]


MALFORMED = [
    # Device level.
    *_key_forms("private_key", _device),
    *_number_forms("listen_port", _device, "65536"),
    *_number_forms("fwmark", _device, "4294967296"),
    *_flag_forms("replace_peers", _device),
    *_key_forms("public_key", _device),
    _device("unknown key", "foo=bar"),
    _device("empty key", "=bar"),
    _device("key in upper case", "LISTEN_PORT=1"),
    _device("key with a leading space", " listen_port=1"),
    _device("key with a trailing space", "listen_port =1"),
    _device("key with a NUL", b"fwmark\x00=1"),
    _device("value with a NUL", b"fwmark=1\x00"),
    _device("key that is not UTF-8", b"\xff\xfe=1"),
    _device("value that is not UTF-8", b"fwmark=\xff\xfe"),
    _device("a key that only get lists", "rx_bytes=1"),
    _device("errno as a key", "errno=0"),
    _device("endpoint before any peer", "endpoint=192.0.2.1:1"),
    _device("allowed_ip before any peer", "allowed_ip=192.0.2.0/24"),
    _device("preshared_key before any peer", "preshared_key=" + KEY),
    _device("keepalive before any peer", "persistent_keepalive_interval=1"),
    _device("remove before any peer", "remove=true"),
    # Lines without '='.
    _device("no '=' in a known key", "listen_port", PROTOCOL),
    _device("no '=' in an unknown key", "foo", PROTOCOL),
    _device("a lone space", " ", PROTOCOL),
    _device("NUL bytes only", b"\x00\x00\x00", PROTOCOL),
    _device("a colon in place of '='", "listen_port:1", PROTOCOL),
    _peer("no '=' after a peer", "allowed_ip", PROTOCOL),
    # Peer level.
    _peer("private_key after a peer", "private_key=" + KEY),
    _peer("listen_port after a peer", "listen_port=1"),
    _peer("fwmark after a peer", "fwmark=1"),
    _peer("replace_peers after a peer", "replace_peers=true"),
    _peer("unknown key after a peer", "foo=bar"),
    _peer("a get-only key after a peer", "last_handshake_time_sec=1"),
    *_key_forms("public_key", lambda name, line: _peer("second " + name, line)),
    *_key_forms("preshared_key", _peer),
    *_number_forms("persistent_keepalive_interval", _peer, "65536", also=[("the word off", "off")]),
    *_flag_forms("remove", _peer),
    *_flag_forms("update_only", _peer),
    *_flag_forms("replace_allowed_ips", _peer),
    *[
        _peer(f"endpoint {name}", f"endpoint={value}")
        for name, value in [
            ("empty", ""),
            ("without a port", "192.0.2.1"),
            ("with an empty port", "192.0.2.1:"),
            ("without an address", ":51820"),
            ("with port 65536", "192.0.2.1:65536"),
            ("with a negative port", "192.0.2.1:-1"),
            ("with a word as port", "192.0.2.1:http"),
            ("with a port with a trailing letter", "192.0.2.1:80x"),
            ("with an octet of 256", "256.0.2.1:1"),
            ("with three octets", "192.0.2:1"),
            ("with five octets", "192.0.2.1.1:1"),
            ("with a leading space", " 192.0.2.1:1"),
            ("with a trailing space", "192.0.2.1:1 "),
            ("with a host name", "vpn.example:51820"),
            ("with localhost", "localhost:51820"),
            ("IPv6 without brackets", "2001:db8::1:51820"),
            ("IPv6 without a port", "[2001:db8::1]"),
            ("IPv6 without a colon after the bracket", "[2001:db8::1]51820"),
            ("IPv6 with an open bracket", "[2001:db8::1:51820"),
            ("IPv6 with two elisions", "[2001::db8::1]:1"),
            ("IPv6 with nine groups", "[1:2:3:4:5:6:7:8:9]:1"),
            ("IPv6 with a group of five digits", "[2001:db8::12345]:1"),
            ("IPv4 in brackets", "[192.0.2.1]:1"),
            ("empty brackets", "[]:1"),
            ("IPv6 with an empty scope", "[fe80::1%]:1"),
        ]
    ],
    *[
        _peer(f"allowed_ip {name}", f"allowed_ip={value}")
        for name, value in [
            ("empty", ""),
            ("a lone minus", "-"),
            ("without a prefix length", "192.0.2.0"),
            ("with an empty prefix length", "192.0.2.0/"),
            ("without an address", "/24"),
            ("IPv4 with length 33", "192.0.2.0/33"),
            ("IPv6 with length 129", "2001:db8::/129"),
            ("with a negative length", "192.0.2.0/-1"),
            ("with a word as length", "192.0.2.0/all"),
            ("with a length with a trailing letter", "192.0.2.0/24x"),
            ("with a netmask", "192.0.2.0/255.255.255.0"),
            ("with three octets", "192.0.2/24"),
            ("with an octet of 256", "256.0.0.0/8"),
            ("with a word", "all/24"),
            ("with a list", "192.0.2.0/24,198.51.100.0/24"),
            ("with a leading space", " 192.0.2.0/24"),
            ("with a trailing space", "192.0.2.0/24 "),
            ("with two minus signs", "--192.0.2.0/24"),
            ("with a plus sign", "+192.0.2.0/24"),
            ("with two slashes", "192.0.2.0/24/24"),
            ("IPv6 with two elisions", "2001::db8::/32"),
            ("IPv6 in brackets", "[2001:db8::]/32"),
            ("IPv6 with a scope", "fe80::%lo/64"),
        ]
    ],
    *[
        _peer(f"protocol_version {name}", f"protocol_version={value}")
        for name, value in [("0", "0"), ("2", "2"), ("empty", ""), ("a word", "one"), ("negative", "-1")]
    ],
    # Values are judged for peers that are being ignored too.
    _peer("bad endpoint of a peer that update_only skips", "update_only=true\nendpoint=nowhere"),
    _peer("bad allowed_ip of a removed peer", "remove=true\nallowed_ip=nowhere"),
    # Huge lines.
    _device("a value of a million digits", b"fwmark=" + b"1" * 1_000_000, OVERSIZE),
    _device("a key of a million letters", b"k" * 1_000_000 + b"=1", OVERSIZE),
    _device("a million bytes without '='", b"x" * 1_000_000, OVERSIZE),
    _device("a key of 5,000 letters", b"k" * 5_000 + b"=1", OVERSIZE),
]
