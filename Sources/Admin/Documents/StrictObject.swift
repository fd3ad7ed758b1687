/// An object of which every key is known and every value is of the wanted type; what is not is told
/// by its place.
struct StrictKeyedContainer {
    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    private let container: KeyedDecodingContainer<Key>
    /// Where it stands in the body: `targets[3]`, or empty for the body itself.
    let path: String
    /// Its keys, in the order of ``allowed``.
    let keys: [String]

    /// - Throws: ``RequestBodyError`` if there is no object, or one with a key that is not
    ///   `allowed`.
    init(_ decoder: any Decoder, allowedKeys: [String]) throws {
        path = RequestBodyError.path(decoder.codingPath)
        do {
            container = try decoder.container(keyedBy: Key.self)
        } catch DecodingError.typeMismatch, DecodingError.valueNotFound {
            throw RequestBodyError.typeMismatch(path, expected: "an object")
        }
        let present = Set(container.allKeys.map(\.stringValue))
        // The order of a decoder's keys is anybody's guess.
        if let unknown = present.subtracting(allowedKeys).min() {
            throw RequestBodyError.unknownKey(path, key: unknown, allowed: allowedKeys)
        }
        keys = allowedKeys.filter(present.contains)
    }

    func path(of name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

    /// Nil if there is no such key.
    func string(_ name: String) throws -> String? {
        try value(name, expected: "a string") { try container.decode(String.self, forKey: $0) }
    }

    func integer(_ name: String) throws(RequestBodyError) -> Int64? {
        guard keys.contains(name) else { return nil }
        do {
            return try container.decode(Int64.self, forKey: Key(stringValue: name))
        } catch {
            // For a fraction, and for more than the type holds, decoders have errors of their own.
            throw RequestBodyError.typeMismatch(path(of: name), expected: "a whole number")
        }
    }

    /// False if it is `false`, or there is no such key.
    func flag(_ name: String) throws -> Bool {
        try value(name, expected: "true") { try container.decode(Bool.self, forKey: $0) } ?? false
    }

    func list(_ name: String) throws -> (any UnkeyedDecodingContainer)? {
        try value(name, expected: "an array") { try container.nestedUnkeyedContainer(forKey: $0) }
    }

    private func value<Value>(
        _ name: String, expected: String, _ decode: (Key) throws -> Value
    ) throws -> Value? {
        guard keys.contains(name) else { return nil }
        do {
            return try decode(Key(stringValue: name))
        } catch DecodingError.typeMismatch, DecodingError.valueNotFound {
            throw RequestBodyError.typeMismatch(path(of: name), expected: expected)
        }
    }
}
