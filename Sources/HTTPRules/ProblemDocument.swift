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
        JSONText.append("urn:nuthatch:problem:" + name, to: &bytes)
        bytes.append(contentsOf: ",\"title\":".utf8)
        JSONText.append(title, to: &bytes)
        bytes.append(contentsOf: ",\"status\":".utf8)
        ASCII.append(UInt64(status), to: &bytes)
        if !detail.isEmpty {
            bytes.append(contentsOf: ",\"detail\":".utf8)
            JSONText.append(detail, to: &bytes)
        }
        bytes.append(contentsOf: "}\n".utf8)
    }
}
