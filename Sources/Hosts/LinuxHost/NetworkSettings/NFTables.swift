internal import CLinux
internal import CNetlink
internal import Glibc

/// libnftables, loaded for the moment that it is needed in: loaded it costs a megabyte of private memory, unloaded a tenth of
/// that is left. A daemon that sets no firewall never loads it.
@safe struct NFTables: ~Copyable {
    /// What went wrong, in the library's words.
    struct Failure: Error, Hashable {
        var reason: String
    }

    private typealias Make = @convention(c) (UInt32) -> OpaquePointer?
    private typealias Free = @convention(c) (OpaquePointer) -> Void
    private typealias Buffer = @convention(c) (OpaquePointer) -> Int32
    private typealias Run = @convention(c) (OpaquePointer, UnsafePointer<CChar>) -> Int32
    private typealias Message = @convention(c) (OpaquePointer) -> UnsafePointer<CChar>?

    // The library, closed in deinit after everything that came from it.
    private let library: UnsafeMutableRawPointer
    private let context: OpaquePointer
    private let free: Free
    private let run: Run
    private let message: Message

    /// Loads the library.
    init() throws(Failure) {
        try Self.checkKernel()
        guard let library = unsafe dlopen("libnftables.so.1", RTLD_NOW | RTLD_LOCAL) else {
            throw Failure(reason: "libnftables.so.1 cannot be loaded (package libnftables1)")
        }
        // The types are those of <nftables/libnftables.h>, version 1 of the library's interface.
        guard let make = unsafe dlsym(library, "nft_ctx_new"), let free = unsafe dlsym(library, "nft_ctx_free"),
            let run = unsafe dlsym(library, "nft_run_cmd_from_buffer"),
            let bufferOutput = unsafe dlsym(library, "nft_ctx_buffer_output"),
            let bufferErrors = unsafe dlsym(library, "nft_ctx_buffer_error"),
            let message = unsafe dlsym(library, "nft_ctx_get_error_buffer"),
            let context = unsafe unsafeBitCast(make, to: Make.self)(0)
        else {
            unsafe dlclose(library)
            throw Failure(reason: "libnftables.so.1 is not what it should be")
        }
        _ = unsafe unsafeBitCast(bufferOutput, to: Buffer.self)(context)
        _ = unsafe unsafeBitCast(bufferErrors, to: Buffer.self)(context)
        unsafe self.library = library
        unsafe self.context = context
        unsafe self.free = unsafe unsafeBitCast(free, to: Free.self)
        unsafe self.run = unsafe unsafeBitCast(run, to: Run.self)
        unsafe self.message = unsafe unsafeBitCast(message, to: Message.self)
    }

    deinit {
        unsafe free(context)
        unsafe dlclose(library)
    }

    /// Makes sure that the kernel has the sockets that the library needs: where it cannot have one it ends the process.
    private static func checkKernel() throws(Failure) {
        let type = Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let number = socket(AF_NETLINK, type, NETLINK_NETFILTER)
        if number < 0 { throw Failure(reason: "no socket to the kernel's firewall: \(errorText(errno))") }
        _ = FileDescriptor(adopting: number)
    }

    /// Carries out commands, all or none, in the calling thread's network namespace.
    func perform(_ commands: String) throws(Failure) {
        guard unsafe run(context, commands) != 0 else { return }
        // A terminated string of the context's own. Its first line says what is wrong, those below where.
        let text = unsafe message(context).map { unsafe String(cString: $0) } ?? ""
        let line = text.split(separator: "\n").first.map(String.init) ?? "refused"
        throw Failure(reason: line)
    }
}
