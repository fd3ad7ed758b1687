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
