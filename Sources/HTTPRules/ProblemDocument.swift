import Ground

/// An error told to a client (RFC 9457).
package struct ProblemDocument: Hashable, Sendable {
    /// The media type of ``append(to:)``.
    package static let contentType: StaticString = "application/problem+json"

    /// The HTTP status code.
    package var status: UInt16
    /// A stable name in lower case and hyphens, which programs may act on; the type is
    /// `urn:nuthatch:problem:` and it.
    package var name: String
    /// What kind of problem it is, the same for every occurrence.
    package var title: String
    /// What was wrong this time, where, and what is allowed; empty if there is nothing to add.
    package var detail: String

    package init(status: UInt16, name: String, title: String, detail: String = "") {
        self.status = status
        self.name = name
        self.title = title
        self.detail = detail
    }

    /// Appends the document as JSON (RFC 8259).
    package func append(to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "{\"type\":".utf8)
        Self.append("urn:nuthatch:problem:" + name, to: &bytes)
        bytes.append(contentsOf: ",\"title\":".utf8)
        Self.append(title, to: &bytes)
        bytes.append(contentsOf: ",\"status\":".utf8)
        ASCII.append(UInt64(status), to: &bytes)
        if !detail.isEmpty {
            bytes.append(contentsOf: ",\"detail\":".utf8)
            Self.append(detail, to: &bytes)
        }
        bytes.append(contentsOf: "}\n".utf8)
    }

    /// Appends a JSON string: quotes, backslashes and control characters escaped, the rest as
    /// UTF-8.
    private static func append(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case 0..<0x20, 0x7F:
                bytes.append(contentsOf: "\\u00".utf8)
                bytes.append(ASCII.hexDigit(byte >> 4))
                bytes.append(ASCII.hexDigit(byte & 15))
            default:
                bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
