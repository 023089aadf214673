import ByteAccess

/// A name of its own, without compression, in 256 bytes and without an allocation.
///
/// Equality and hash take no notice of the case of ASCII letters (RFC 4343); the octets keep it.
public struct DomainName: Hashable, Sendable {
    private var octets: InlineArray<255, UInt8>
    private var count: UInt8

    /// The root.
    public init() {
        octets = InlineArray(repeating: 0)
        count = 1
    }

    /// A copy of a name in a message.
    public init(_ view: borrowing DomainNameView, lowercased: Bool = false) {
        self.init()
        var span = octets.mutableSpan
        var output = span.mutableOctets
        // A checked name has 1 to 255 octets: they fit.
        guard let end = try? view.write(into: &output, lowercased: lowercased) else { return }
        count = UInt8(truncatingIfNeeded: end)
    }

    /// The name as it is on the wire: 1 to 255 octets, the last of them zero.
    public var bytes: RawSpan {
        @_lifetime(borrow self)
        get { octets.span.octets.extracting(..<Int(count)) }
    }

    /// The name to be compared and walked.
    public var view: DomainNameView {
        @_lifetime(borrow self)
        get {
            let bytes = octets.span.octets.extracting(..<Int(count))
            guard let layout = try? NameLayout(checking: bytes, at: 0) else {
                preconditionFailure("a name that was checked when it was made")
            }
            return DomainNameView(bytes, layout)
        }
    }

    /// Appends a label in front of the root, that is, at the end. Throws when it has no octet, more than 63, or too many for the name.
    mutating func append(label: RawSpan) throws(DomainNameTextError) {
        guard !label.isEmpty else { throw .emptyLabel }
        guard label.byteCount <= 63 else { throw .labelTooLong }
        guard Int(count) + label.byteCount + 1 <= NameLayout.maximumLength else { throw .nameTooLong }
        var position = Int(count) - 1
        octets[position] = UInt8(truncatingIfNeeded: label.byteCount)
        for index in 0..<label.byteCount {
            position += 1
            octets[position] = label.uint8(at: index)
        }
        octets[position + 1] = 0
        count += UInt8(truncatingIfNeeded: label.byteCount + 1)
    }

    public static func == (left: Self, right: Self) -> Bool {
        guard left.count == right.count else { return false }
        // Length octets are below 64 and so never letters: the whole can be compared octet by octet.
        let (ours, theirs) = (left.bytes, right.bytes)
        for index in 0..<Int(left.count)
        where ours.uint8(at: index).lowercasedASCII != theirs.uint8(at: index).lowercasedASCII { return false }
        return true
    }

    public func hash(into hasher: inout Hasher) {
        let view = view
        view.hash(into: &hasher)
    }
}

extension DomainName: CustomStringConvertible {
    /// The name as zone files have it, with the dot of the root.
    public var description: String {
        let view = view
        return view.presentation
    }
}
