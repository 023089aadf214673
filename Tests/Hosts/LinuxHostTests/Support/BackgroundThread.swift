import Glibc

@testable import LinuxHost

/// Work on a thread of its own beside the test, which waits for it in the end.
final class BackgroundThread<Value: Sendable> {
    private var value: Value?
    private var thread = pthread_t()

    /// Starts the work.
    init(_ body: @escaping () -> Value) throws {
        // The thread takes over a reference, which it gives up when it ends; nobody reads the value before that.
        let context = unsafe Unmanaged.passRetained(Work { self.value = body() }).toOpaque()
        let error = unsafe pthread_create(
            &thread, nil,
            { context in
                if let context = unsafe context { unsafe Unmanaged<Work>.fromOpaque(context).takeRetainedValue().run() }
                return nil
            }, context)
        if error != 0 { throw SystemCallError("pthread_create", errno: error) }
    }

    /// Waits for the work and returns what came of it.
    func finish() throws -> Value {
        pthread_join(thread, nil)
        guard let value else { throw SystemCallError("pthread_join", errno: EINVAL) }
        return value
    }
}

private final class Work {
    let run: () -> Void

    init(_ run: @escaping () -> Void) { self.run = run }
}
