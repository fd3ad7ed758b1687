import Ground
import HTTPRules
import Origin

/// A GET request for a site, as relayed to the node that owns its key.
///
/// Encoding: digest of the site's policy (8 bytes, little-endian), flags (1 byte), byte count of
/// the client's address (1 byte: 0, 4 or 16), the address in network order, and the head as the
/// policy forwards it, without validators.
struct RelayedRequest {
    /// Properties of the client's request, before fields configured by the operator were added.
    struct Flags: OptionSet {
        let rawValue: UInt8

        static let isSecure = Flags(rawValue: 1 << 0)
        static let hasAuthorization = Flags(rawValue: 1 << 1)
        static let hasCookie = Flags(rawValue: 1 << 2)
        /// The client accepts trailers (RFC 9110 §10.1.4).
        static let acceptsTrailers = Flags(rawValue: 1 << 3)
    }

    /// Digest of the policy under which the request was forwarded.
    let policy: UInt64
    /// Properties of the client's request.
    let flags: Flags
    /// The client whose quota is charged; `nil` for this machine.
    let client: IPAddress?
    /// Request line, Host and fields, each with its CRLF, without the empty line.
    let head: [UInt8]

    /// Bytes before the client's address.
    private static let fixedBytes = 10
    /// Fields that no policy forwards for a GET whose response is to be stored.
    private static let forbiddenFields: [FieldName] = [
        .connection, .contentLength, .expect, .ifMatch, .ifModifiedSince, .ifNoneMatch, .ifRange,
        .ifUnmodifiedSince, .range, .te, .transferEncoding, .upgrade,
    ]

    /// Creates a relayed request from its parts.
    init(policy: UInt64, _ flags: Flags, client: IPAddress?, head: [UInt8]) {
        self.client = client
        self.policy = policy
        self.flags = flags
        self.head = head
    }

    /// Returns the policy digest at the beginning of an encoded request; 0 if it has none.
    static func policy(of bytes: [UInt8]) -> UInt64 {
        bytes.count < 8 ? 0 : bytes.span.little64(at: 0)
    }

    /// Decodes a request; returns `nil` if `bytes` are invalid.
    init?(_ bytes: [UInt8]) {
        guard bytes.count > Self.fixedBytes else { return nil }
        let clientEnd = Self.fixedBytes + Int(bytes[9])
        guard clientEnd < bytes.count else { return nil }
        let client = IPAddress(bytes.span.extracting(Self.fixedBytes..<clientEnd))
        guard client != nil || bytes[9] == 0 else { return nil }
        let head = Array(bytes[clientEnd...])
        let lines = RequestFields(serialized: head).lines
        // No part of it may end the head early, or announce a body.
        guard head.starts(with: "GET ".utf8), let last = lines.last,
            last.value.end + 2 == head.count,
            lines.count(where: { $0.id == .host }) == 1,
            !lines.contains(where: { Self.forbiddenFields.contains($0.id) })
        else { return nil }
        self.init(
            policy: Self.policy(of: bytes), Flags(rawValue: bytes[8]), client: client,
            head: head)
    }

    /// The encoded request.
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

    /// Holder of the quota that the fetch uses.
    var quotaHolder: QuotaHolder? { QuotaHolder(clientAt: client) }
}
