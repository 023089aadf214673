import ByteAccess

extension DomainNameView {
    /// True when both names are the same but for the case of ASCII letters (RFC 4343 §3).
    public func isEqual(to other: borrowing DomainNameView) -> Bool {
        layout.length == other.layout.length && layout.labelCount == other.layout.labelCount
            && Self.haveSameLabels(
                bytes, LabelWalk(at: layout.offset), other.bytes, LabelWalk(at: other.layout.offset), foldingCase: true)
    }

    /// True when both names are the same, letters in the same case.
    public func hasSameOctets(as other: borrowing DomainNameView) -> Bool {
        layout.length == other.layout.length && layout.labelCount == other.layout.labelCount
            && Self.haveSameLabels(
                bytes, LabelWalk(at: layout.offset), other.bytes, LabelWalk(at: other.layout.offset), foldingCase: false
            )
    }

    /// True when this is `other` or a name below it. Everything is below the root.
    public func isSubdomain(of other: borrowing DomainNameView) -> Bool {
        guard layout.labelCount >= other.layout.labelCount, layout.length >= other.layout.length else { return false }
        return Self.haveSameLabels(
            bytes, walk(from: layout.labelCount - other.layout.labelCount), other.bytes,
            LabelWalk(at: other.layout.offset), foldingCase: true)
    }

    /// Feeds the name into a hash so that equal names hash equally, in whatever case and compressed in whatever way.
    public func hash(into hasher: inout Hasher) {
        var octets = InlineArray<255, UInt8>(repeating: 0)
        var span = octets.mutableSpan
        var output = span.mutableOctets
        // A checked name has at most 255 octets.
        guard let end = try? write(into: &output, lowercased: true) else { return }
        unsafe octets.span.octets.extracting(..<end).withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    }

    /// The canonical order of names: by their labels from the root down, as octets in lower case (RFC 4034 §6.1).
    ///
    /// - Returns: A number below zero when this name comes first, zero when they are equal, above zero otherwise.
    public func canonicalOrder(to other: borrowing DomainNameView) -> Int {
        var (ours, theirs) = (InlineArray<127, UInt16>(repeating: 0), InlineArray<127, UInt16>(repeating: 0))
        collectLabels(into: &ours)
        other.collectLabels(into: &theirs)
        for distance in 1...max(1, min(labelCount, other.labelCount)) {
            guard distance <= labelCount, distance <= other.labelCount else { break }
            let left = Int(ours[labelCount - distance])
            let right = Int(theirs[other.labelCount - distance])
            let (leftCount, rightCount) = (Int(bytes.uint8(at: left)), Int(other.bytes.uint8(at: right)))
            for index in 1..<min(leftCount, rightCount) + 1 {
                let difference =
                    Int(bytes.uint8(at: left + index).lowercasedASCII)
                    - Int(other.bytes.uint8(at: right + index).lowercasedASCII)
                if difference != 0 { return difference }
            }
            if leftCount != rightCount { return leftCount - rightCount }
        }
        return labelCount - other.labelCount
    }

    /// Where the length octets of the labels are.
    private func collectLabels(into offsets: inout InlineArray<127, UInt16>) {
        var walk = LabelWalk(at: layout.offset)
        var index = 0
        while let label = walk.next(in: bytes), index < offsets.count {
            // Messages are at most 65,535 bytes long, and a label begins behind its length octet.
            offsets[index] = UInt16(truncatingIfNeeded: label.lowerBound - 1)
            index += 1
        }
    }

    /// Compares the labels from two places on, to the root.
    static func haveSameLabels(
        _ bytes: RawSpan, _ start: LabelWalk, _ otherBytes: RawSpan, _ otherStart: LabelWalk, foldingCase: Bool
    ) -> Bool {
        var (walk, otherWalk) = (start, otherStart)
        while true {
            let label = walk.next(in: bytes)
            let otherLabel = otherWalk.next(in: otherBytes)
            guard let label, let otherLabel else { return label == nil && otherLabel == nil }
            guard label.count == otherLabel.count else { return false }
            for index in 0..<label.count {
                let octet = bytes.uint8(at: label.lowerBound + index)
                let otherOctet = otherBytes.uint8(at: otherLabel.lowerBound + index)
                if octet == otherOctet { continue }
                guard foldingCase, octet.lowercasedASCII == otherOctet.lowercasedASCII else { return false }
            }
        }
    }
}
