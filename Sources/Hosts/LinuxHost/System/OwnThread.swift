internal import CLinux
internal import Glibc

/// A thread of this process that somebody waits for in the end.
struct OwnThread: ~Copyable {
    private let thread: pthread_t

    /// Starts a thread that runs `body` and ends. Signals are left to those threads that do not block them, which it inherits.
    ///
    /// - Parameter stackSize: The size of its stack in bytes, above the least that is allowed; nil for the system's.
    init(stackSize: Int? = nil, _ body: @escaping @Sendable () -> Void) throws(SystemCallError) {
        var attributes = pthread_attr_t()
        // The pointers live for each call.
        unsafe pthread_attr_init(&attributes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        if let stackSize { unsafe pthread_attr_setstacksize(&attributes, stackSize) }
        // The thread takes over a reference, which it gives up when it ends.
        let reference = unsafe Unmanaged.passRetained(Body(run: body))
        var thread = pthread_t()
        let error = unsafe pthread_create(
            &thread, &attributes,
            { argument in
                guard let argument = unsafe argument else { return nil }
                // What was passed below.
                unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, reference.toOpaque())
        guard error == 0 else {
            unsafe reference.release()
            throw SystemCallError("pthread_create", errno: error)
        }
        self.thread = thread
    }

    /// Waits for its end.
    consuming func join() {
        pthread_join(thread, nil)
    }

    private final class Body: Sendable {
        let run: @Sendable () -> Void

        init(run: @escaping @Sendable () -> Void) {
            self.run = run
        }
    }
}
