import Ground
import HTTPRules

/// A GET for a site as a node hands it to the one that owns its key.
///
/// As bytes: the digest of the site's policy (8, the lowest first), flags (1: the client's request
/// came encrypted), and the head as that policy forwards it, without validators.
struct RelayedRequest {
    let policy: UInt64
    let isSecure: Bool
    /// Request line, Host and fields, each with its CRLF, without the empty line.
    let head: [UInt8]

    private static let fixedBytes = 9
    private static let framing: [FieldName] = [.contentLength, .transferEncoding, .connection]

    init(policy: UInt64, isSecure: Bool, head: [UInt8]) {
        self.policy = policy
        self.isSecure = isSecure
        self.head = head
    }

    /// The request in `bytes`; nil if they are none.
    init?(_ bytes: [UInt8]) {
        guard bytes.count > Self.fixedBytes else { return nil }
        let head = Array(bytes[Self.fixedBytes...])
        let lines = RequestLines(written: head).lines
        // Nothing of it ends the head, or says that a body follows.
        guard head.starts(with: "GET ".utf8), let last = lines.last,
            last.value.end + 2 == head.count,
            !lines.contains(where: { Self.framing.contains($0.id) })
        else { return nil }
        self.init(
            policy: bytes.span.little64(at: 0), isSecure: bytes[8] & 1 != 0, head: head)
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.fixedBytes + head.count)
        bytes.appendLittle(policy)
        bytes.append(isSecure ? 1 : 0)
        return bytes + head
    }
}
