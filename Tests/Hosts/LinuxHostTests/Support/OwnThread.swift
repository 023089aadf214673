import CLinux
import Glibc

@testable import LinuxHost

/// Runs `body` on a thread that ends with it, and waits: for what cannot be undone on a thread.
func onThreadOfItsOwn<Value>(_ body: @escaping () throws -> Value) throws -> Value {
    var outcome: Result<Value, any Error>?
    let work = Work { outcome = Result(catching: body) }
    var thread = pthread_t()
    let context = unsafe Unmanaged.passRetained(work).toOpaque()
    let error = unsafe pthread_create(
        &thread, nil,
        { context in
            if let context = unsafe context { unsafe Unmanaged<Work>.fromOpaque(context).takeRetainedValue().run() }
            return nil
        }, context)
    if error != 0 { throw SystemCallError("pthread_create", errno: error) }
    pthread_join(thread, nil)
    guard let outcome else { throw SystemCallError("pthread_create", errno: EINVAL) }
    return try outcome.get()
}

/// Makes the kernel answer `EAFNOSUPPORT` to this thread when it asks for sockets of a family, as long as it lives.
func refuseSockets(of family: AddressFamily) throws {
    #if arch(x86_64)
        let socketCall: UInt32 = 41
    #else
        let socketCall: UInt32 = 198
    #endif
    try refuse(call: socketCall, whoseArgument: 0, is: UInt32(family.socketFamily), with: EAFNOSUPPORT)
}

/// Makes the kernel answer an error to this thread when it calls `sendmmsg` with so many messages, as long as it lives.
func refuseSending(messages count: UInt32, with error: Int32) throws {
    #if arch(x86_64)
        let sendCall: UInt32 = 307
    #else
        let sendCall: UInt32 = 269
    #endif
    try refuse(call: sendCall, whoseArgument: 2, is: count, with: error)
}

/// Makes the kernel answer `EPERM` to this thread when it asks for sockets to the firewall, as long as it lives.
func refuseFirewallSockets() throws {
    #if arch(x86_64)
        let socketCall: UInt32 = 41
    #else
        let socketCall: UInt32 = 198
    #endif
    let netfilter: UInt32 = 12
    try refuse(call: socketCall, whoseArgument: 2, is: netfilter, with: EPERM)
}

/// Makes the kernel answer an error to this thread when it accepts connections that do not block, as long as it lives.
func refuseAccepting(with error: Int32) throws {
    #if arch(x86_64)
        let acceptCall: UInt32 = 288
    #else
        let acceptCall: UInt32 = 242
    #endif
    let flags = SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    try refuse(call: acceptCall, whoseArgument: 3, is: flags, with: error)
}

/// Gives this thread a mount namespace of its own, as long as it lives.
func leaveShared(_ resource: SharedResource) throws {
    typealias Unshare = @convention(c) (Int32) -> Int32
    guard let symbol = unsafe dlsym(nil, "unshare") else { throw SystemCallError("dlsym", errno: ENOSYS) }
    // unshare(2) takes one integer.
    let unshare = unsafe unsafeBitCast(symbol, to: Unshare.self)
    guard unshare(resource.rawValue) == 0 else { throw SystemCallError("unshare", errno: errno) }
}

/// Gives this thread a table of descriptors of its own, as long as it lives, which begins with the standard streams alone: what it
/// closes is closed, and no program and no thread of another test has a copy, which would keep a port taken or a connection open.
func beginWithoutDescriptors() throws {
    typealias CloseRange = @convention(c) (UInt32, UInt32, UInt32) -> Int32
    guard let symbol = unsafe dlsym(nil, "close_range") else { throw SystemCallError("dlsym", errno: ENOSYS) }
    // close_range(2) takes three integers.
    let closeRange = unsafe unsafeBitCast(symbol, to: CloseRange.self)
    let unsharing: UInt32 = 2
    guard closeRange(3, .max, unsharing) == 0 else { throw SystemCallError("close_range", errno: errno) }
}

/// Runs `body` on a thread of its own with a network namespace and a table of descriptors of its own.
func aloneInNewNetworkNamespace<Value>(_ body: @escaping () throws -> Value) throws -> Value {
    try onThreadOfItsOwn {
        try beginWithoutDescriptors()
        return try inNewNetworkNamespace(body)
    }
}

/// What threads of a process share unless one leaves it; the values are the kernel's.
enum SharedResource: Int32 {
    case mounts = 0x20000
}

private func refuse(call: UInt32, whoseArgument argument: UInt32, is value: UInt32, with error: Int32) throws {
    // prctl has variable arguments, which Swift cannot call by name; on 64-bit Linux integers are passed alike either
    // way.
    typealias Prctl = @convention(c) (Int32, UInt, UInt, UInt, UInt) -> Int32
    guard let symbol = unsafe dlsym(nil, "prctl") else { throw SystemCallError("dlsym", errno: ENOSYS) }
    let prctl = unsafe unsafeBitCast(symbol, to: Prctl.self)
    // Classic BPF: code, jump when true, jump when false, operand, in eight bytes each.
    func instruction(_ code: UInt16, _ whenTrue: UInt8, _ whenFalse: UInt8, _ operand: UInt32) -> UInt64 {
        UInt64(code) | UInt64(whenTrue) << 16 | UInt64(whenFalse) << 24 | UInt64(operand) << 32
    }
    let program = [
        instruction(0x20, 0, 0, 0),  // load the number of the call
        instruction(0x15, 0, 3, call),
        instruction(0x20, 0, 0, 16 + 8 * argument),  // load the low half of the argument
        instruction(0x15, 0, 1, value),
        instruction(0x06, 0, 0, 0x0005_0000 | UInt32(error)),  // return this error
        instruction(0x06, 0, 0, 0x7FFF_0000),  // allow
    ]
    try unsafe program.withUnsafeBufferPointer { instructions in
        // sock_fprog: a 16-bit count, padding, a pointer.
        var header = (UInt(instructions.count), UInt(bitPattern: instructions.baseAddress))
        let noNewPrivileges: Int32 = 38
        let setFilter: Int32 = 22
        let result = unsafe withUnsafePointer(to: &header) { pointer -> Int32 in
            let error = prctl(noNewPrivileges, 1, 0, 0, 0)
            return error != 0 ? error : prctl(setFilter, 2, UInt(bitPattern: pointer), 0, 0)
        }
        if result != 0 { throw SystemCallError("prctl", errno: errno) }
    }
}

private final class Work {
    let run: () -> Void

    init(_ run: @escaping () -> Void) { self.run = run }
}
