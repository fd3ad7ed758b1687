/// The reason why a request body is rejected.
///
/// The first value of each case is the path of the offending value, such as `targets[3].url`; the
/// path of the body itself is empty.
package enum RequestBodyError: Error, Hashable, Sendable {
    /// The body is not JSON, or nested more deeply than any valid body.
    case invalidJSON(String)
    case typeMismatch(String, expected: String)
    case unknownKey(String, key: String, allowed: [String])
    case invalidValue(String, allowed: String)

    /// Creates the error that corresponds to an error of a decoder.
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

    /// Returns a path as text, such as `targets[3].url`.
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
    /// The message: the fault, its location, and the allowed values.
    package var message: String {
        switch self {
        case .invalidJSON(let place):
            "\(Self.subject(place)) cannot be read as JSON (RFC 8259) in UTF-8."
        case .typeMismatch(let place, let wanted): "\(Self.subject(place)) must be \(wanted)."
        case .unknownKey(let place, let key, let allowed):
            "\(Self.subject(place)) has the unknown key \(Self.abbreviated(key)); "
                + "allowed: \(allowed.joined(separator: ", "))."
        case .invalidValue(let place, let allowed):
            "\(Self.subject(place)) has an invalid value; allowed: \(allowed)."
        }
    }

    /// Returns the subject of a message about the value at a path.
    static func subject(_ place: String) -> String { place.isEmpty ? "The body" : place }

    /// Returns at most 40 characters of `text`, in quotes, for an operator to recognise.
    static func abbreviated(_ text: String) -> String {
        text.count > 40 ? "\"\(text.prefix(40))…\"" : "\"\(text)\""
    }
}

/// A decoded object with known keys only; errors carry the path of the offending value.
struct StrictKeyedContainer {
    private let container: KeyedDecodingContainer<JSONKey>
    /// The path of the object in the body: `targets[3]`, or empty for the body itself.
    let path: String
    /// The keys present, in the order of the allowed keys.
    let keys: [String]

    /// Opens the object of `decoder`.
    ///
    /// - Throws: ``RequestBodyError`` if there is no object, or one with a key that is not in
    ///   `allowedKeys`.
    init(_ decoder: any Decoder, allowedKeys: [String]) throws {
        path = RequestBodyError.path(decoder.codingPath)
        do {
            container = try decoder.container(keyedBy: JSONKey.self)
        } catch DecodingError.typeMismatch, DecodingError.valueNotFound {
            throw RequestBodyError.typeMismatch(path, expected: "an object")
        }
        let present = Set(container.allKeys.map(\.stringValue))
        // The order of a decoder's keys is unspecified.
        if let unknown = present.subtracting(allowedKeys).min() {
            throw RequestBodyError.unknownKey(path, key: unknown, allowed: allowedKeys)
        }
        keys = allowedKeys.filter(present.contains)
    }

    /// Returns the path of the value under `name` in the body.
    func path(of name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

    /// Returns the string under `name`; `nil` if there is no such key.
    func string(_ name: String) throws -> String? {
        try value(name, expected: "a string") { try container.decode(String.self, forKey: $0) }
    }

    /// Returns the integer under `name`; `nil` if there is no such key.
    func integer(_ name: String) throws(RequestBodyError) -> Int64? {
        guard keys.contains(name) else { return nil }
        do {
            return try container.decode(Int64.self, forKey: JSONKey(name))
        } catch {
            // Decoders report fractions and numbers beyond the type's range in different ways.
            throw RequestBodyError.typeMismatch(path(of: name), expected: "a whole number")
        }
    }

    /// Returns the Boolean under `name`; false if there is no such key.
    func flag(_ name: String) throws -> Bool {
        try value(name, expected: "true") { try container.decode(Bool.self, forKey: $0) } ?? false
    }

    /// Returns the list under `name`; `nil` if there is no such key.
    func list(_ name: String) throws -> (any UnkeyedDecodingContainer)? {
        try value(name, expected: "an array") { try container.nestedUnkeyedContainer(forKey: $0) }
    }

    /// Returns what `decode` makes of the value under `name`; `nil` if there is no such key.
    ///
    /// - Throws: `RequestBodyError.typeMismatch` with `expected` for a value of another type.
    private func value<Value>(
        _ name: String, expected: String, _ decode: (JSONKey) throws -> Value
    ) throws -> Value? {
        guard keys.contains(name) else { return nil }
        do {
            return try decode(JSONKey(name))
        } catch DecodingError.typeMismatch, DecodingError.valueNotFound {
            throw RequestBodyError.typeMismatch(path(of: name), expected: expected)
        }
    }
}
