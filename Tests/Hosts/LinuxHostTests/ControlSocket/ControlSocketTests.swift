import CLinux
import Glibc
import TestSupport
import Testing

@testable import LinuxHost

@Suite struct ControlSocketTests {
    @Test func onlyItsOwnerCanReachIt() throws {
        try inTemporaryFolder { folder in
            var channel = InProcessPrivilegedChannel(PrivilegedService(controlSocketFolder: "\(folder)/wireguard"))
            let listener = try channel.openControlSocket(for: interfaceName("slt0"))
            #expect(mode(of: "\(folder)/wireguard") == S_IFDIR | 0o700)
            #expect(mode(of: "\(folder)/wireguard/slt0.sock") == S_IFSOCK | 0o700)
            _ = listener.identifier
        }
    }

    @Test func acceptsClientsWithoutWaiting() throws {
        try inTemporaryFolder { folder in
            var channel = InProcessPrivilegedChannel(PrivilegedService(controlSocketFolder: folder))
            let listener = try channel.openControlSocket(for: interfaceName("slt0"))
            let isEarly = try acceptsOne(listener)
            #expect(!isEarly)
            let client = try connectUNIX("\(folder)/slt0.sock")
            try awaitReady(listener.descriptor.rawValue, "a client")
            let isAccepted = try acceptsOne(listener)
            #expect(isAccepted)
            _ = client.rawValue
        }
    }

    @Test func replacesASocketThatNobodyAnswersOn() throws {
        try inTemporaryFolder { folder in
            do { _ = try listenUNIX("\(folder)/slt0.sock") }
            #expect(throws: SystemCallError("connect", errno: ECONNREFUSED)) {
                _ = try connectUNIX("\(folder)/slt0.sock")
            }
            var channel = InProcessPrivilegedChannel(PrivilegedService(controlSocketFolder: folder))
            let listener = try channel.openControlSocket(for: interfaceName("slt0"))
            _ = try connectUNIX("\(folder)/slt0.sock")
            // Our own clearing away is no removal.
            let isRemoved = try listener.watch.isFileRemoved()
            #expect(!isRemoved)
        }
    }

    @Test func refusesASocketThatLives() throws {
        try inTemporaryFolder { folder in
            let living = try listenUNIX("\(folder)/slt0.sock")
            var channel = InProcessPrivilegedChannel(PrivilegedService(controlSocketFolder: folder))
            #expect(throws: PrivilegedFailure.controlSocketInUse) {
                _ = try channel.openControlSocket(for: interfaceName("slt0"))
            }
            _ = try connectUNIX("\(folder)/slt0.sock")
            _ = living.rawValue
        }
    }

    @Test func leavesAFileAloneThatIsNoSocket() throws {
        try inTemporaryFolder { folder in
            try run("touch", "\(folder)/slt0.sock")
            var channel = InProcessPrivilegedChannel(PrivilegedService(controlSocketFolder: folder))
            #expect(throws: PrivilegedFailure.systemCall(SystemCallError("connect", errno: ECONNREFUSED))) {
                _ = try channel.openControlSocket(for: interfaceName("slt0"))
            }
            #expect(mode(of: "\(folder)/slt0.sock").map { $0 & S_IFMT } == S_IFREG)
        }
    }

    @Test func noticesThatItsFileIsRemoved() throws {
        try inTemporaryFolder { folder in
            var channel = InProcessPrivilegedChannel(PrivilegedService(controlSocketFolder: folder))
            let listener = try channel.openControlSocket(for: interfaceName("slt0"))
            // What concerns others, or changes only the file's mode, is nothing to it.
            do { _ = try listenUNIX("\(folder)/slt1.sock") }
            try run("rm", "\(folder)/slt1.sock")
            try run("chmod", "755", "\(folder)/slt0.sock")
            try awaitReady(listener.watch.descriptor.rawValue, "the other file's end")
            let isRemovedYet = try listener.watch.isFileRemoved()
            #expect(!isRemovedYet)
            try run("rm", "\(folder)/slt0.sock")
            try awaitReady(listener.watch.descriptor.rawValue, "the file's end")
            let isRemoved = try listener.watch.isFileRemoved()
            #expect(isRemoved)
        }
    }

    @Test func noticesThatItsFileIsMovedOrReplaced() throws {
        try inTemporaryFolder { folder in
            var channel = InProcessPrivilegedChannel(PrivilegedService(controlSocketFolder: folder))
            let moved = try channel.openControlSocket(for: interfaceName("slt0"))
            try run("mv", "\(folder)/slt0.sock", "\(folder)/else.sock")
            try awaitReady(moved.watch.descriptor.rawValue, "the move")
            let isMoved = try moved.watch.isFileRemoved()
            #expect(isMoved)
            let replaced = try channel.openControlSocket(for: interfaceName("slt1"))
            try run("mv", "-f", "\(folder)/else.sock", "\(folder)/slt1.sock")
            try awaitReady(replaced.watch.descriptor.rawValue, "the replacement")
            let isReplaced = try replaced.watch.isFileRemoved()
            #expect(isReplaced)
            // The file that took the name is not ours to remove.
            try channel.removeControlSocket(replaced.identifier)
            #expect(mode(of: "\(folder)/slt1.sock") != nil)
        }
    }

    @Test func removesItsOwnFileOnce() throws {
        try inTemporaryFolder { folder in
            var channel = InProcessPrivilegedChannel(PrivilegedService(controlSocketFolder: folder))
            let listener = try channel.openControlSocket(for: interfaceName("slt0"))
            try channel.removeControlSocket(listener.identifier)
            #expect(mode(of: "\(folder)/slt0.sock") == nil)
            #expect(throws: PrivilegedFailure.unknownIdentifier) {
                try channel.removeControlSocket(listener.identifier)
            }
        }
    }

    @Test func adoptsAnInheritedListeningSocket() throws {
        try inTemporaryFolder { folder in
            var channel = InProcessPrivilegedChannel(PrivilegedService(controlSocketFolder: "/nonexistent"))
            let inherited = try listenUNIX("\(folder)/slt0.sock")
            let listener = try channel.adoptControlSocket(descriptor: inherited.release())
            let client = try connectUNIX("\(folder)/slt0.sock")
            try awaitReady(listener.descriptor.rawValue, "a client")
            let isAccepted = try acceptsOne(listener)
            #expect(isAccepted)
            try run("rm", "\(folder)/slt0.sock")
            try awaitReady(listener.watch.descriptor.rawValue, "the file's end")
            let isRemoved = try listener.watch.isFileRemoved()
            #expect(isRemoved)
            #expect(throws: PrivilegedFailure.unsuitableDescriptor) {
                _ = try channel.adoptControlSocket(descriptor: client.rawValue)
            }
        }
    }

    @Test func sayThatTheFolderCannotBeMade() {
        var channel = InProcessPrivilegedChannel(PrivilegedService(controlSocketFolder: "/proc/nonexistent/x"))
        #expect(throws: PrivilegedFailure.systemCall(SystemCallError("mkdir", errno: ENOENT))) {
            _ = try channel.openControlSocket(for: interfaceName("slt0"))
        }
    }

    /// Accepts a client, if one waits, and lets it go.
    private func acceptsOne(_ listener: borrowing UNIXListener) throws -> Bool {
        if let client = try listener.accept() { return client.rawValue >= 0 }
        return false
    }
}
