internal import JSON5

/// A decoder of one value. The standard library asks for a method for each of its types; generic ones stand for all of them.
struct JSONValueDecoder: Decoder, SingleValueDecodingContainer {
    let value: JSON5Value
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// The value as one of a type.
    func read<Value: Decodable>(_ type: Value.Type) throws -> Value { try Value(from: self) }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard case .object(let members) = value.content else { throw mismatch([String: JSON5Value].self) }
        return KeyedDecodingContainer(Keyed<Key>(members: members, codingPath: codingPath))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .array(let elements) = value.content else { throw mismatch([JSON5Value].self) }
        return Unkeyed(elements: elements, codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { value.content == .null }

    func decode(_ type: Bool.Type) throws -> Bool {
        guard case .boolean(let boolean) = value.content else { throw mismatch(type) }
        return boolean
    }

    func decode(_ type: String.Type) throws -> String {
        guard case .string(let string) = value.content else { throw mismatch(type) }
        return string
    }

    func decode<Value: BinaryInteger & Decodable>(_ type: Value.Type) throws -> Value {
        guard case .integer(let integer) = value.content, let number = Value(exactly: integer) else {
            throw mismatch(type)
        }
        return number
    }

    func decode<Value: BinaryFloatingPoint & Decodable>(_ type: Value.Type) throws -> Value { throw mismatch(type) }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try read(type) }

    private func mismatch(_ type: any Any.Type) -> DecodingError {
        .typeMismatch(type, DecodingError.Context(codingPath: codingPath, debugDescription: "another kind of value"))
    }

    private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let members: [JSON5Member]
        let codingPath: [any CodingKey]
        var allKeys: [Key] { members.compactMap { Key(stringValue: $0.name) } }

        private func find(_ key: some CodingKey) -> JSONValueDecoder? {
            members.first { $0.name == key.stringValue }.map {
                JSONValueDecoder(value: $0.value, codingPath: codingPath + [key])
            }
        }

        private func decoder(for key: some CodingKey) throws -> JSONValueDecoder {
            if let decoder = find(key) { return decoder }
            throw DecodingError.keyNotFound(
                key, DecodingError.Context(codingPath: codingPath, debugDescription: "no such member"))
        }

        func contains(_ key: Key) -> Bool { find(key) != nil }
        func decodeNil(forKey key: Key) throws -> Bool { try decoder(for: key).decodeNil() }
        func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
            try decoder(for: key).read(type)
        }
        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) throws -> KeyedDecodingContainer<Nested> { try decoder(for: key).container(keyedBy: type) }
        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            try decoder(for: key).unkeyedContainer()
        }
        func superDecoder() throws -> any Decoder { try decoder(for: JSONSuperKey()) }
        func superDecoder(forKey key: Key) throws -> any Decoder { try decoder(for: key) }
    }

    private struct Unkeyed: UnkeyedDecodingContainer {
        let elements: [JSON5Value]
        let codingPath: [any CodingKey]
        private(set) var currentIndex = 0
        var count: Int? { elements.count }
        var isAtEnd: Bool { currentIndex == elements.count }

        init(elements: [JSON5Value], codingPath: [any CodingKey]) {
            self.elements = elements
            self.codingPath = codingPath
        }

        private func next() throws -> JSONValueDecoder {
            let path = codingPath + [JSONIndex(currentIndex)]
            guard !isAtEnd else {
                throw DecodingError.valueNotFound(
                    JSON5Value.self, DecodingError.Context(codingPath: path, debugDescription: "no such element"))
            }
            return JSONValueDecoder(value: elements[currentIndex], codingPath: path)
        }

        /// Goes on only behind what could be read.
        private mutating func take<Value>(_ body: (JSONValueDecoder) throws -> Value) throws -> Value {
            let value = try body(next())
            currentIndex += 1
            return value
        }

        mutating func decodeNil() throws -> Bool {
            guard try next().decodeNil() else { return false }
            currentIndex += 1
            return true
        }
        mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try take { try $0.read(type) } }
        mutating func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type
        ) throws -> KeyedDecodingContainer<Nested> { try take { try $0.container(keyedBy: type) } }
        mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
            try take { try $0.unkeyedContainer() }
        }
        mutating func superDecoder() throws -> any Decoder { try take { $0 } }
    }
}
