import HTTPRules
import Telemetry

/// What an answer that refuses says of itself (RFC 9457), as who has asked reads it;
/// ``HTTPRules/ProblemDocument`` is what writes it.
package struct ReceivedProblem: Hashable, Sendable {
    /// The name of a node's problem; nil for any other type.
    package let name: String?
    /// What is wrong, on one line.
    package let message: String

    /// Of a body that is no problem document: its beginning.
    package init(ofText body: [UInt8]) {
        name = nil
        message = String(String(decoding: body, as: UTF8.self).prefix(80)).singleLine
    }
}

extension ReceivedProblem: Decodable {
    private enum CodingKeys: String, CodingKey {
        case type, title, detail
    }

    /// - Throws: the decoder's own errors where there is no title.
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
