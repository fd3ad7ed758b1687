import Ground

/// An error told to a client (RFC 9457).
package struct ProblemDocument: Hashable, Sendable {
    /// The media type of ``append(to:)``.
    package static let contentType: StaticString = "application/problem+json"

    /// The HTTP status code.
    package var status: UInt16
    /// What types begin with; ``name`` follows.
    package static let typePrefix = "urn:nuthatch:problem:"

    /// A stable name in lower case and hyphens, which programs may act on.
    package var name: String
    /// What kind of problem it is, the same for every occurrence.
    package var title: String
    /// What was wrong this time, where, and what is allowed; empty if there is nothing to add.
    package var detail: String
    /// A further member, a list of texts, for programs (RFC 9457 §3.2); nil for none.
    package var list: List?

    /// A member of a problem that others of its kind have, too.
    package struct List: Hashable, Sendable {
        /// In lower case, with underscores.
        package var name: String
        package var texts: [String]

        package init(_ name: String, _ texts: [String]) {
            self.name = name
            self.texts = texts
        }
    }

    package init(status: UInt16, name: String, title: String, detail: String = "") {
        self.status = status
        self.name = name
        self.title = title
        self.detail = detail
    }

    /// Appends the document as JSON (RFC 8259).
    package func append(to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "{\"type\":".utf8)
        JSONText.append(Self.typePrefix + name, to: &bytes)
        bytes.append(contentsOf: ",\"title\":".utf8)
        JSONText.append(title, to: &bytes)
        bytes.append(contentsOf: ",\"status\":".utf8)
        ASCII.append(UInt64(status), to: &bytes)
        if !detail.isEmpty {
            bytes.append(contentsOf: ",\"detail\":".utf8)
            JSONText.append(detail, to: &bytes)
        }
        if let list {
            bytes.append(UInt8(ascii: ","))
            JSONText.append(list.name, to: &bytes)
            bytes.append(contentsOf: ":[".utf8)
            for (index, text) in list.texts.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                JSONText.append(text, to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        }
        bytes.append(contentsOf: "}\n".utf8)
    }
}
