"""iperf3 between two namespaces, judged by completion and delivery, never by speed."""

import json
import subprocess

import commands
from network_namespace import NetworkNamespace
from waiting import CheckFailure, expect, wait_until


def _listens(process_id: int, port: int) -> bool:
    """Whether something listens on a TCP port in the network namespace of the process."""
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{process_id}/net/{table}") as lines:
                rows = [line.split() for line in lines][1:]
        except FileNotFoundError:
            return False
        if any(row[3] == "0A" and int(row[1].rsplit(":", 1)[1], 16) == port for row in rows):
            return True
    return False


def report(
    client: NetworkNamespace,
    server: NetworkNamespace,
    server_address: str,
    *options: str,
    seconds: float = 1.0,
    port: int = 5201,
    limit: float = 30.0,
) -> dict:
    """Runs iperf3 for `seconds` from `client` to a server in `server`, and returns its JSON report.

    Fails the check when it does not complete within `limit` seconds.
    """
    what = f"iperf3 {' '.join(options)} to {server_address}"
    listener = server.start(
        "iperf3", "-s", "-1", "-B", server_address, "-p", str(port),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _listens(listener.pid, port), f"{what}: the server listening", 10)
        outcome = client.run(
            "iperf3", "-J", "-c", server_address, "-p", str(port), "-t", f"{seconds:g}", *options,
            check=False, seconds=limit)
        try:
            report = json.loads(outcome.stdout)
        except ValueError:
            raise CheckFailure(f"{what}: no report: {(outcome.stderr or outcome.stdout).strip()[-200:]}") from None
        if outcome.returncode != 0 or "error" in report:
            raise CheckFailure(f"{what}: {report.get('error', f'status {outcome.returncode}')}")
        return report
    finally:
        commands.end(listener)


def transfer(
    client: NetworkNamespace,
    server: NetworkNamespace,
    server_address: str,
    *options: str,
    udp: bool = False,
    streams: int = 1,
    seconds: float = 1.0,
    port: int = 5201,
    limit: float = 30.0,
) -> int:
    """Runs iperf3 for `seconds` from `client` to a server in `server`, and returns the bytes delivered.

    Fails the check when it does not complete within `limit` seconds or nothing was delivered. UDP sends as fast as it
    can; losses are not judged, nor is how streams share the time: all of them connect and end properly, that is all.
    """
    arguments = list(options)
    if udp:
        arguments += ["-u", "-b", "0"]
    if streams > 1:
        arguments += ["-P", str(streams)]
    end = report(client, server, server_address, *arguments, seconds=seconds, port=port, limit=limit)["end"]
    if udp:
        sent, lost, size = end["sum"]["packets"], end["sum"]["lost_packets"], end["sum"]["bytes"]
        delivered = (sent - lost) * size // sent if sent else 0
    else:
        delivered = end["sum_received"]["bytes"]
    expect(delivered > 0, f"iperf3 {'UDP' if udp else 'TCP'} to {server_address}: nothing delivered")
    return delivered
