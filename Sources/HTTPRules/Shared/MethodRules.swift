import Ground

/// What a cache has to know of a method (RFC 9110 §9.2, RFC 9111 §4).
package struct MethodProperties: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Asks for nothing to be changed (RFC 9110 §9.2.1); a method that is not known counts as
    /// unsafe (RFC 9111 §4.4).
    package static let isSafe = MethodProperties(rawValue: 1 << 0)
    /// Sent twice it changes no more than once (RFC 9110 §9.2.2).
    package static let isIdempotent = MethodProperties(rawValue: 1 << 1)

    /// What holds for the method whose name is in `range`, compared with regard to case.
    package init(_ bytes: Span<UInt8>, at range: Range<Int>) {
        if Self.safe.contains(where: { bytes.matches($0, at: range) }) {
            self = [.isSafe, .isIdempotent]
        } else if Self.idempotent.contains(where: { bytes.matches($0, at: range) }) {
            self = .isIdempotent
        } else {
            self = []
        }
    }

    /// Those that IANA's registry of methods calls safe.
    private static let safe = [
        "GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY",
    ]
    /// Those of RFC 9110, and of WebDAV (RFC 4918) those that do not move or lock.
    private static let idempotent = ["PUT", "DELETE", "PROPPATCH", "MKCOL", "COPY", "UNLOCK"]
}
