import ByteAccess

enum ICMPDestinationUnreachable {
    enum R { case host }
    static func write(for p: RawSpan, reason: R, into o: inout MutableRawSpan) -> Int? { nil }
}
extension MutableRawSpan { mutating func markCongestionExperienced() {} }
