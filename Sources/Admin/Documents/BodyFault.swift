/// Why a body is not what was wanted.
///
/// Places are those of a value in the body, as `targets[3].url`; the body itself has an empty one.
package enum BodyFault: Error, Hashable, Sendable {
    /// The body is no JSON, or nested too deeply for anybody to mean it.
    case notJSON(String)
    case type(String, wanted: String)
    case unknown(String, key: String, allowed: [String])
    case value(String, allowed: String)

    /// What a decoder threw.
    package init(reading error: any Error) {
        switch error {
        case let fault as BodyFault: self = fault
        case DecodingError.typeMismatch(_, let context),
            DecodingError.valueNotFound(_, let context):
            self = .type(Self.place(context.codingPath), wanted: "another type")
        case DecodingError.dataCorrupted(let context):
            self = .notJSON(Self.place(context.codingPath))
        default: self = .notJSON("")
        }
    }

    /// `targets[3].url` for such a path.
    static func place(_ path: [any CodingKey]) -> String {
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

extension BodyFault {
    /// What is wrong, where, and what is allowed.
    package var sentence: String {
        switch self {
        case .notJSON(let place):
            "\(Self.subject(place)) cannot be read as JSON (RFC 8259) in UTF-8."
        case .type(let place, let wanted): "\(Self.subject(place)) must be \(wanted)."
        case .unknown(let place, let key, let allowed):
            "\(Self.subject(place)) has the key \(Self.shown(key)), which is not known; "
                + "\(allowed.joined(separator: ", ")) can be used."
        case .value(let place, let allowed):
            "\(Self.subject(place)) has a value that is not allowed; allowed is: \(allowed)."
        }
    }

    static func subject(_ place: String) -> String { place.isEmpty ? "The body" : place }

    /// At most 40 characters for a person to recognise.
    static func shown(_ text: String) -> String {
        text.count > 40 ? "\"\(text.prefix(40))…\"" : "\"\(text)\""
    }
}
