import Ground
import HTTPRules
import Origin

/// A GET for a site as a node hands it to the one that owns its key.
///
/// As bytes: the digest of the site's policy (8, the lowest first), flags (1), the client's address
/// in network order behind the count of its bytes (1: 0, 4 or 16), and the head as that policy
/// forwards it, without validators.
struct RelayedRequest {
    /// What the client's own request was, whatever the operator has added.
    struct Flags: OptionSet {
        let rawValue: UInt8

        static let isSecure = Flags(rawValue: 1 << 0)
        static let hasAuthorization = Flags(rawValue: 1 << 1)
        static let hasCookie = Flags(rawValue: 1 << 2)
        /// RFC 9110 §10.1.4.
        static let acceptsTrailers = Flags(rawValue: 1 << 3)
    }

    let policy: UInt64
    let flags: Flags
    /// The client, whose share of the node the fetch takes; nil for this machine itself.
    let client: IPAddress?
    /// Request line, Host and fields, each with its CRLF, without the empty line.
    let head: [UInt8]

    private static let fixedBytes = 10
    /// What no policy forwards of a GET that is to be stored.
    private static let forbiddenFields: [FieldName] = [
        .connection, .contentLength, .expect, .ifMatch, .ifModifiedSince, .ifNoneMatch, .ifRange,
        .ifUnmodifiedSince, .range, .te, .transferEncoding, .upgrade,
    ]

    init(policy: UInt64, _ flags: Flags, client: IPAddress?, head: [UInt8]) {
        self.client = client
        self.policy = policy
        self.flags = flags
        self.head = head
    }

    /// The digest at the beginning of what is told of a request; 0 if nothing is told.
    static func policy(of bytes: [UInt8]) -> UInt64 {
        bytes.count < 8 ? 0 : bytes.span.little64(at: 0)
    }

    /// The request in `bytes`; nil if they are none.
    init?(_ bytes: [UInt8]) {
        guard bytes.count > Self.fixedBytes else { return nil }
        let clientEnd = Self.fixedBytes + Int(bytes[9])
        guard clientEnd < bytes.count else { return nil }
        let client = IPAddress(bytes.span.extracting(Self.fixedBytes..<clientEnd))
        guard client != nil || bytes[9] == 0 else { return nil }
        let head = Array(bytes[clientEnd...])
        let lines = RequestFields(serialized: head).lines
        // Nothing of it ends the head, or says that a body follows.
        guard head.starts(with: "GET ".utf8), let last = lines.last,
            last.value.end + 2 == head.count,
            lines.count(where: { $0.id == .host }) == 1,
            !lines.contains(where: { Self.forbiddenFields.contains($0.id) })
        else { return nil }
        self.init(
            policy: Self.policy(of: bytes), Flags(rawValue: bytes[8]), client: client,
            head: head)
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.fixedBytes + head.count)
        bytes.appendLittle(policy)
        bytes.append(flags.rawValue)
        switch client {
        case nil: bytes.append(0)
        case .v4(let number):
            bytes.append(4)
            for place in 0..<UInt32(4) {
                bytes.append(UInt8(truncatingIfNeeded: number >> (24 - 8 * place)))
            }
        case .v6(let number):
            bytes.append(16)
            for place in 0..<UInt128(16) {
                bytes.append(UInt8(truncatingIfNeeded: number >> (120 - 8 * place)))
            }
        }
        return bytes + head
    }

    /// Whose share of the node the fetch takes.
    var quotaHolder: QuotaHolder? { QuotaHolder(clientAt: client) }
}
