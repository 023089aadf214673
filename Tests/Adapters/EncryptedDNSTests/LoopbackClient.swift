import ByteAccess
import DNSProxy
import EncryptedDNS
import Glibc
import Provider
import Testing

/// A connection whose bytes go over a socket to a server on this machine, with the real clock.
struct LoopbackClient<Connection: DNSConnection & ~Copyable>: ~Copyable {
    var connection: Connection
    /// All that happened.
    var events: [ConnectionEvent] = []
    private let socket: CInt

    init(_ connection: consuming Connection, port: UInt16) throws {
        self.connection = connection
        socket = try Loopback.connect(port)
    }

    deinit { _ = close(socket) }

    /// Sends a query that is waited for ten seconds long, or as long as is said.
    mutating func send(_ query: [UInt8], _ number: UInt64, for interval: Interval = .seconds(10)) throws {
        let now = Loopback.now
        try connection.send(query, number, at: now, deadline: now + interval)
    }

    /// Moves bytes until the condition holds for the events, or the connection is over. What is waited for comes, or its deadline does.
    mutating func run(until condition: ([ConnectionEvent]) -> Bool) throws {
        while true {
            events += connection.takeEvents()
            if condition(events) { return }
            while connection.outgoingCount > 0 {
                let bytes = connection.takeOutgoing(16_384)
                guard unsafe Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else { break }
            }
            if connection.isOver { return }
            var descriptor = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            let deadline = connection.nextDeadline ?? Loopback.now
            let wait = deadline.since(Loopback.now).nanoseconds / 1_000_000 + 1
            let ready = unsafe poll(&descriptor, 1, Int32(wait))
            if ready > 0 {
                var buffer = [UInt8](repeating: 0, count: 16_384)
                // recv writes as many bytes as it is told at most.
                let count = unsafe recv(socket, &buffer, buffer.count, 0)
                if count > 0 {
                    connection.receive(Array(buffer[..<count]).span.octets, at: Loopback.now)
                } else {
                    connection.endOfStream()
                }
            }
            connection.handleDeadlines(at: Loopback.now)
        }
    }
}

/// Sockets and programs on this machine.
enum Loopback {
    struct Failure: Error {
        let what: String
    }

    static var now: Instant {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Instant(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    private static func address(_ port: UInt16) -> sockaddr_in {
        sockaddr_in(
            sin_family: sa_family_t(AF_INET), sin_port: port.bigEndian,
            sin_addr: in_addr(s_addr: UInt32(0x7F00_0001).bigEndian), sin_zero: (0, 0, 0, 0, 0, 0, 0, 0))
    }

    /// A socket that is bound to a port that nobody used; for TCP it can be closed again to leave the port to a server.
    static func bound(_ type: __socket_type) throws -> (socket: CInt, port: UInt16) {
        let descriptor = socket(AF_INET, Int32(type.rawValue), 0)
        var address = address(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        // The address is as long as it is said to be.
        let port = unsafe withUnsafeMutablePointer(to: &address) { address -> UInt16? in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard unsafe bind(descriptor, address, length) == 0,
                    unsafe getsockname(descriptor, address, &length) == 0
                else { return nil }
                return 1
            }
        }
        guard port != nil else { throw Failure(what: "no port") }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    /// A TCP port that nobody uses.
    static func freePort() throws -> UInt16 {
        let (socket, port) = try bound(SOCK_STREAM)
        _ = close(socket)
        return port
    }

    /// A TCP connection to a port, which has to be open.
    static func connect(_ port: UInt16) throws -> CInt {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = address(port)
        // The address is as long as it is said to be.
        let result = unsafe withUnsafePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            _ = close(descriptor)
            throw Failure(what: "nobody listens on port \(port)")
        }
        return descriptor
    }
}

/// A program of Debian's that answers on this machine for as long as the value is there.
final class ServerProcess {
    private var process: pid_t = 0

    /// Starts a program, and waits until it takes connections on all of the ports.
    init(_ arguments: [String], log: String, ports: [UInt16]) throws {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        unsafe posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        unsafe posix_spawn_file_actions_adddup2(&actions, 1, 2)
        // The copies live until the child has its own.
        var words = unsafe arguments.map { unsafe strdup($0) } + [nil]
        defer { for index in unsafe words.indices { unsafe free(words[index]) } }
        guard unsafe posix_spawnp(&process, arguments[0], &actions, nil, &words, environ) == 0 else {
            throw Loopback.Failure(what: "\(arguments[0]) cannot be started")
        }
        let end = Loopback.now + .seconds(20)
        for port in ports {
            while true {
                if let socket = try? Loopback.connect(port) {
                    _ = close(socket)
                    break
                }
                var status: CInt = 0
                guard unsafe waitpid(process, &status, WNOHANG) == 0, Loopback.now < end else {
                    throw Loopback.Failure(what: "\(arguments[0]) does not answer: see \(log)")
                }
                usleep(10_000)
            }
        }
    }

    /// Stops the program where it is: it answers nothing, and its sockets stay open.
    func stop() { kill(process, SIGSTOP) }

    deinit {
        kill(process, SIGKILL)
        var status: CInt = 0
        _ = unsafe waitpid(process, &status, 0)
    }
}

/// Writes a file of text.
func write(_ text: String, to path: String) throws {
    guard let file = unsafe fopen(path, "w") else { throw Loopback.Failure(what: path) }
    _ = unsafe fputs(text, file)
    unsafe fclose(file)
}
