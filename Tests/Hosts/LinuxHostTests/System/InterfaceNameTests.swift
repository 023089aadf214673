import Testing

@testable import LinuxHost

@Suite struct InterfaceNameTests {
    @Test(arguments: ["wg0", "a", "sluice-_0.1+", "123456789012345", "wg=1", "...", "tün0"])
    func acceptsWhatTheKernelAndCommandLinesTake(name: String) throws {
        #expect(try InterfaceName(name).string == name)
    }

    @Test(arguments: [
        ("", InterfaceName.Invalid.empty), ("1234567890123456", .tooLong), ("--help", .looksLikeOption),
        ("-f", .looksLikeOption), (".", .reserved), ("..", .reserved), ("a/b", .forbiddenByte(0x2F)),
        ("wg 0", .forbiddenByte(0x20)), ("wg\n", .forbiddenByte(0x0A)), ("wg:1", .forbiddenByte(0x3A)),
        ("wg%d", .forbiddenByte(0x25)), ("wg\u{0}", .forbiddenByte(0)), ("wg\u{7F}", .forbiddenByte(0x7F)),
    ])
    func refusesImpossibleNamesWithAReason(name: String, reason: InterfaceName.Invalid) {
        #expect(throws: reason) { try InterfaceName(name) }
    }
}
