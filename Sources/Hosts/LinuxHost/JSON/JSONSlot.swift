/// A place for a value in a text that is being put together: containers are handed out before they are filled.
final class JSONSlot {
    private enum Kind {
        case value
        case array
        case object
    }

    private var kind = Kind.value
    private var value = JSONText.null
    private var elements: [JSONSlot] = []
    private var members: [(String, JSONSlot)] = []

    /// What is in it now.
    var text: JSONText {
        switch kind {
        case .value: value
        case .array: .array(elements.map(\.text))
        case .object: .object(members.map { ($0.0, $0.1.text) })
        }
    }

    /// How many elements it has.
    var count: Int { elements.count }

    /// Puts a value into it.
    func set(_ value: JSONText) { (kind, self.value) = (.value, value) }
    /// Makes it an object.
    func becomeObject() { kind = .object }
    /// Makes it an array.
    func becomeArray() { kind = .array }

    /// A new element at its end.
    func append() -> JSONSlot {
        let slot = JSONSlot()
        elements.append(slot)
        return slot
    }

    /// A new member, or the one that has the name.
    func member(_ name: String) -> JSONSlot {
        if let known = members.first(where: { $0.0 == name }) { return known.1 }
        let slot = JSONSlot()
        members.append((name, slot))
        return slot
    }

    /// Lets a value put itself into it.
    func encode(_ value: some Encodable, at path: [any CodingKey]) throws {
        try value.encode(to: JSONSlotEncoder(slot: self, codingPath: path))
    }
}

/// An encoder for one place. The standard library asks for a method for each of its types; generic ones stand for all of them.
private struct JSONSlotEncoder: Encoder, SingleValueEncodingContainer {
    let slot: JSONSlot
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        slot.becomeObject()
        return KeyedEncodingContainer(Keyed<Key>(slot: slot, codingPath: codingPath))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        slot.becomeArray()
        return Unkeyed(slot: slot, codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    func encodeNil() { slot.set(.null) }
    func encode(_ value: Bool) { slot.set(.boolean(value)) }
    func encode(_ value: String) { slot.set(.string(value)) }

    func encode(_ value: some BinaryInteger & Encodable) throws {
        // Others would be read back as fractions.
        guard let number = Int(exactly: value) else { throw JSONLineError.notEncodable }
        slot.set(.number(number))
    }

    func encode(_ value: some BinaryFloatingPoint & Encodable) throws { throw JSONLineError.notEncodable }
    func encode(_ value: some Encodable) throws { try slot.encode(value, at: codingPath) }

    private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let slot: JSONSlot
        let codingPath: [any CodingKey]

        private func encoder(for key: some CodingKey) -> JSONSlotEncoder {
            JSONSlotEncoder(slot: slot.member(key.stringValue), codingPath: codingPath + [key])
        }

        func encodeNil(forKey key: Key) { encoder(for: key).encodeNil() }
        func encode(_ value: some Encodable, forKey key: Key) throws { try value.encode(to: encoder(for: key)) }
        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) -> KeyedEncodingContainer<Nested> { encoder(for: key).container(keyedBy: type) }
        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            encoder(for: key).unkeyedContainer()
        }
        func superEncoder() -> any Encoder { encoder(for: JSONSuperKey()) }
        func superEncoder(forKey key: Key) -> any Encoder { encoder(for: key) }
    }

    private struct Unkeyed: UnkeyedEncodingContainer {
        let slot: JSONSlot
        let codingPath: [any CodingKey]
        var count: Int { slot.count }

        private func encoder() -> JSONSlotEncoder {
            let index = JSONIndex(slot.count)
            return JSONSlotEncoder(slot: slot.append(), codingPath: codingPath + [index])
        }

        func encodeNil() { encoder().encodeNil() }
        func encode(_ value: some Encodable) throws { try value.encode(to: encoder()) }
        func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
            encoder().container(keyedBy: type)
        }
        func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { encoder().unkeyedContainer() }
        func superEncoder() -> any Encoder { encoder() }
    }
}

/// The member that a class keeps its superclass in.
struct JSONSuperKey: CodingKey {
    let stringValue = "super"
    var intValue: Int? { nil }

    init() {}
    init?(stringValue: String) { nil }
    init?(intValue: Int) { nil }
}
