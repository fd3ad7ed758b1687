import HTTPRules
import Telemetry

/// The content of a problem document (RFC 9457), as read by a client.
///
/// ``HTTPRules/ProblemDocument`` is the type that nodes write.
package struct ReceivedProblem: AdminDocument {
    /// The URI of the type.
    var type = "about:blank"
    /// The kind of problem.
    var title = ""
    /// The status code of the response.
    var status = 0
    /// The specific fault; `nil` if there is nothing to add.
    var detail: String?

    /// Creates an empty problem.
    package init() {}

    /// Creates a problem from a body that is not a problem document; its title is the first 80
    /// characters.
    package init(ofText body: [UInt8]) {
        title = String(String(decoding: body, as: UTF8.self).prefix(80))
    }

    /// The name of a Nuthatch problem; `nil` for any other type.
    package var name: String? {
        let prefix = ProblemDocument.typePrefix
        return type.hasPrefix(prefix) ? String(type.dropFirst(prefix.count)) : nil
    }

    /// The title and the detail on one line of at most 500 characters.
    package var message: String {
        String((title + (detail.map { ": \($0)" } ?? "")).prefix(500)).singleLine
    }

    /// The members; only the title is required of a problem that another program has written.
    package static let fields: [Field] = [
        .required(
            "type", \.type, as: .text(pattern: "^urn:nuthatch:problem:[a-z-]+$"), isLenient: true),
        .required("title", \.title),
        .required("status", \.status, as: .integer(400...599), isLenient: true),
        .optional("detail", \.detail),
    ]
}
