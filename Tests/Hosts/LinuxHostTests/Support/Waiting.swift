import Glibc
import Provider
import Testing

@testable import LinuxHost

/// How long a test waits for something that should come at once.
let patience = Interval.seconds(10)

/// Something did not happen in time.
struct Impatience: Error {
    var awaited: String
}

/// Waits until a descriptor is ready, for reading unless said otherwise.
func awaitReady(_ number: Int32, for condition: Int32 = POLLIN, _ awaited: String) throws {
    var entry = pollfd(fd: number, events: Int16(condition), revents: 0)
    let count = try systemCall("poll") { unsafe poll(&entry, 1, Int32(patience.nanoseconds / 1_000_000)) }
    if count == 0 { throw Impatience(awaited: awaited) }
}

/// Asks again and again, with a millisecond between, until there is an answer.
func eventually<Value>(_ awaited: String, _ attempt: () throws -> Value?) throws -> Value {
    let deadline = HostClock.now() + patience
    while true {
        if let value = try attempt() { return value }
        if HostClock.now() >= deadline { throw Impatience(awaited: awaited) }
        _ = poll(nil, 0, 1)
    }
}

/// True when nothing can be read from a descriptor within a fifth of a second.
func staysQuiet(_ number: Int32) -> Bool {
    var entry = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&entry, 1, 200) == 0
}
