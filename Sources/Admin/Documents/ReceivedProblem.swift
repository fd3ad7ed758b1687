import HTTPRules
import Telemetry

/// The content of a problem document (RFC 9457), as read by a client.
///
/// ``HTTPRules/ProblemDocument`` is the type that nodes write.
package struct ReceivedProblem: Hashable, Sendable {
    /// The name of a Nuthatch problem; `nil` for any other type.
    package let name: String?
    /// The problem in words, on one line.
    package let message: String

    /// Creates a problem from a body that is no problem document; its message is the beginning.
    package init(ofText body: [UInt8]) {
        name = nil
        message = String(String(decoding: body, as: UTF8.self).prefix(80)).singleLine
    }
}

extension ReceivedProblem: Decodable {
    private enum CodingKeys: String, CodingKey {
        case type, title, detail
    }

    /// Decodes a problem document.
    ///
    /// - Throws: the decoder's own errors if there is no title.
    package init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let type = (try? members.decode(String.self, forKey: .type)) ?? ""
        let prefix = ProblemDocument.typePrefix
        name = type.hasPrefix(prefix) ? String(type.dropFirst(prefix.count)) : nil
        let title = try members.decode(String.self, forKey: .title)
        let detail = try members.decodeIfPresent(String.self, forKey: .detail)
        message = String((title + (detail.map { ": \($0)" } ?? "")).prefix(500)).singleLine
    }
}
