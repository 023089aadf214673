"""The programs that are compared, each with a configuration for the same job: answer at one port, ask one upstream."""

import os
import signal
import subprocess
from dataclasses import dataclass
from typing import Callable

from network_namespace import NetworkNamespace
from waiting import CheckFailure, wait_until

#: Where programs answer, and where the upstream does.
ADDRESS, PORT = "127.0.0.1", 5300
UPSTREAM, UPSTREAM_NAME = "127.0.0.2", "dns.upstream.example"
PORTS = {"udp": 53, "tls": 853, "https": 443}
#: What the upstream answers any name below with.
ZONE, ANSWER = "benchnames.net", "192.0.2.1"
#: The room for all names of a load, and the usual one, which the memory that is needed counts for.
CACHE_BYTES, USUAL_CACHE_BYTES = 16 * 1024 * 1024, 2 * 1024 * 1024


@dataclass(frozen=True)
class Program:
    """A DNS proxy to measure."""

    name: str
    path: str
    #: The words of the command and the text of its file, for a transport to the upstream and a size of the cache in bytes.
    command: "Callable[[str, str, str, int], tuple[list[str], str]]"

    def start(self, namespace: NetworkNamespace, folder: str, transport: str, processor: int,
              cache_bytes: int = CACHE_BYTES) -> subprocess.Popen:
        """Starts it on one processor and waits until it answers."""
        path = f"{folder}/{self.name}.conf"
        words, text = self.command(self.path, path, transport, cache_bytes)
        with open(path, "w") as file:
            file.write(text.replace("FOLDER", folder))
        with open(f"{folder}/{self.name}.log", "ab") as log:
            process = namespace.start(
                "taskset", "-c", str(processor), *words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: process.poll() is not None or listens(namespace, PORT), f"{self.name} listening", 20)
        if process.poll() is not None:
            with open(f"{folder}/{self.name}.log", errors="replace") as log:
                raise CheckFailure(f"{self.name} ended: {log.read()[-500:]}")
        return process


def listens(namespace: NetworkNamespace, port: int) -> bool:
    """Whether somebody has the UDP or TCP port in the namespace."""
    return bool(namespace.run("ss", "-Hlntu", f"sport = :{port}").stdout.strip())


def stop(process: subprocess.Popen) -> None:
    """Ends a program, whatever it thinks of it."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def sluice(path: str, file: str, transport: str, cache_bytes: int) -> "tuple[list[str], str]":
    """`sluice run`."""
    url = {"udp": f"udp://{UPSTREAM}", "tls": f"tls://{UPSTREAM_NAME}", "https": f"https://{UPSTREAM_NAME}/dns-query"}
    trust = "" if transport == "udp" else f', addresses: ["{UPSTREAM}"], caFile: "FOLDER/ca.pem"'
    return [path, "run", "--config", file], (
        f'{{ dns: {{ listen: ["{ADDRESS}:{PORT}"], workers: 1, cache: {{ maxBytes: {cache_bytes} }}, '
        f'upstreams: [{{ name: "upstream", url: "{url[transport]}"{trust} }}] }}, '
        'log: { level: "error" }, control: { socket: "FOLDER/control.sock" } }\n')


def dnsdist(path: str, file: str, transport: str, cache_bytes: int) -> "tuple[list[str], str]":
    """dnsdist with a packet cache, one thread for clients."""
    options = f'address="{UPSTREAM}:{PORTS[transport]}", healthCheckMode="up"'
    if transport != "udp":
        options += (f', tls="openssl", subjectName="{UPSTREAM_NAME}", caStore="FOLDER/ca.pem", '
                    "validateCertificates=true")
    if transport == "https":
        options += ', dohPath="/dns-query"'
    # Version 1.7 knows no mode for its health check: the server is said to be up.
    options = options.replace(', healthCheckMode="up"', "")
    return [path, "--supervised", "--disable-syslog", "-C", file], (
        f'setLocal("{ADDRESS}:{PORT}")\nserver = newServer({{{options}}})\nserver:setUp()\n'
        f'getPool(""):setCache(newPacketCache({cache_bytes // 160}))\nsetSecurityPollSuffix("")\n')


def unbound(path: str, file: str, transport: str, cache_bytes: int) -> "tuple[list[str], str]":
    """unbound as a forwarder, one thread."""
    tls = "" if transport == "udp" else "  forward-tls-upstream: yes\n"
    place = f"{UPSTREAM}@{PORTS[transport]}" + ("" if transport == "udp" else f"#{UPSTREAM_NAME}")
    return [path, "-d", "-c", file], (
        unbound_base() + f"  interface: {ADDRESS}@{PORT}\n  do-not-query-localhost: no\n  num-threads: 1\n"
        f'  tls-cert-bundle: "FOLDER/ca.pem"\n  msg-cache-size: {cache_bytes}\n  rrset-cache-size: {cache_bytes}\n'
        f'remote-control:\n  control-enable: no\nforward-zone:\n  name: "."\n  forward-addr: {place}\n{tls}')


def unbound_base() -> str:
    """What all unbounds have in common: the beginning of the section `server`."""
    return ('server:\n  chroot: ""\n  username: ""\n  directory: "FOLDER"\n  pidfile: ""\n  use-syslog: no\n'
            '  verbosity: 0\n  module-config: "iterator"\n  access-control: 127.0.0.0/8 allow\n'
            "  so-reuseport: no\n  outgoing-range: 4096\n  num-queries-per-thread: 2048\n  incoming-num-tcp: 100\n")


def upstreams() -> "dict[str, tuple[list[str], str]]":
    """The programs that answer every name of the zone from what stands in their files, by name: command and text of the file.
    unbound has UDP and TLS, dnsdist has HTTPS, which costs it less."""
    places = "".join(f"  interface: {UPSTREAM}@{PORTS[transport]}\n" for transport in ("udp", "tls"))
    return {
        "upstream-unbound": (["/usr/sbin/unbound", "-d", "-c", "FILE"], (
            unbound_base() + places + '  tls-port: 853\n  tls-service-key: "FOLDER/server.key"\n'
            f'  tls-service-pem: "FOLDER/server.pem"\n  local-zone: "{ZONE}." redirect\n'
            f'  local-data: "{ZONE}. 3600 A {ANSWER}"\nremote-control:\n  control-enable: no\n')),
        "upstream-dnsdist": (["/usr/bin/dnsdist", "--supervised", "--disable-syslog", "-C", "FILE"], (
            f'setLocal("{UPSTREAM}:5301")\nsetSecurityPollSuffix("")\n'
            f'addDOHLocal("{UPSTREAM}:{PORTS["https"]}", "FOLDER/server.pem", "FOLDER/server.key", "/dns-query")\n'
            f'addAction(AllRule(), SpoofAction({{"{ANSWER}"}}, {{ttl=3600}}))\n')),
    }


def exists(path: str) -> bool:
    """Whether a program can be run."""
    return os.access(path, os.X_OK)
