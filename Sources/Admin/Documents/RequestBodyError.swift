/// Why a body is not what was wanted.
///
/// Places are those of a value in the body, as `targets[3].url`; the body itself has an empty one.
package enum RequestBodyError: Error, Hashable, Sendable {
    /// The body is no JSON, or nested too deeply for anybody to mean it.
    case invalidJSON(String)
    case typeMismatch(String, expected: String)
    case unknownKey(String, key: String, allowed: [String])
    case invalidValue(String, allowed: String)

    /// What a decoder threw.
    package init(decodingError error: any Error) {
        switch error {
        case let fault as RequestBodyError: self = fault
        case DecodingError.typeMismatch(_, let context),
            DecodingError.valueNotFound(_, let context):
            self = .typeMismatch(Self.path(context.codingPath), expected: "another type")
        case DecodingError.dataCorrupted(let context):
            self = .invalidJSON(Self.path(context.codingPath))
        default: self = .invalidJSON("")
        }
    }

    /// `targets[3].url` for such a path.
    static func path(_ path: [any CodingKey]) -> String {
        var place = ""
        for key in path {
            if let index = key.intValue {
                place += "[\(index)]"
            } else {
                place += (place.isEmpty ? "" : ".") + key.stringValue
            }
        }
        return place
    }
}

extension RequestBodyError {
    /// What is wrong, where, and what is allowed.
    package var message: String {
        switch self {
        case .invalidJSON(let place):
            "\(Self.subject(place)) cannot be read as JSON (RFC 8259) in UTF-8."
        case .typeMismatch(let place, let wanted): "\(Self.subject(place)) must be \(wanted)."
        case .unknownKey(let place, let key, let allowed):
            "\(Self.subject(place)) has the key \(Self.abbreviated(key)), which is not known; "
                + "\(allowed.joined(separator: ", ")) can be used."
        case .invalidValue(let place, let allowed):
            "\(Self.subject(place)) has a value that is not allowed; allowed is: \(allowed)."
        }
    }

    static func subject(_ place: String) -> String { place.isEmpty ? "The body" : place }

    /// At most 40 characters for a person to recognise.
    static func abbreviated(_ text: String) -> String {
        text.count > 40 ? "\"\(text.prefix(40))…\"" : "\"\(text)\""
    }
}

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
