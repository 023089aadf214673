import FuzzSupport

/// The input is a program that two devices live through: packets, datagrams delivered as they are or changed, time, settings.
/// The keys and all randomness are fixed, so that genuine messages of every kind occur: see `Testbed` for the operations.
@c(LLVMFuzzerTestOneInput)
public func fuzzWireGuard(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    unsafe withInput(start, count) { bytes in
        // Each operation may be a handshake: what is behind the first hundred would only take time.
        var program = Program(Array([UInt8](copying: bytes).prefix(400)))
        var testbed = Testbed()
        testbed.run(&program)
    }
}
