import Ground

/// How the origin failed the answerer; see "ORIGIN_FAILED" in <doc:PeerProtocol>.
package struct PeerOriginFailure: Hashable, Sendable {
    /// The status that the origin answered with; 0 if it did not answer.
    package var status: UInt16
    package var cause: Cause
    /// True if an asker that holds a stale answer may give it, as far as that answer grants it.
    package var mayServeStale: Bool
    /// For operators; at most ``PeerProtocol/textBytesMax`` bytes of it are sent.
    package var text: String

    /// What went wrong; one that this version does not know is kept as it is.
    package struct Cause: RawRepresentable, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// It answered with a status that is not stored.
        package static let status = Cause(rawValue: 1)
        /// Its name has no address.
        package static let name = Cause(rawValue: 2)
        /// It took no connection.
        package static let connect = Cause(rawValue: 3)
        /// TLS failed.
        package static let tls = Cause(rawValue: 4)
        /// It took too long.
        package static let timeout = Cause(rawValue: 5)
        /// Its answer broke off or broke the rules.
        package static let answer = Cause(rawValue: 6)
        /// It failed too often and is left alone.
        package static let circuitOpen = Cause(rawValue: 7)
        /// It may not be asked.
        package static let refused = Cause(rawValue: 8)
    }

    package init(status: UInt16, cause: Cause, mayServeStale: Bool, text: String = "") {
        self.status = status
        self.cause = cause
        self.mayServeStale = mayServeStale
        self.text = text
    }

    private enum Tag {
        static let text: UInt16 = 1
    }

    private static let fixedBytes = 6
    private static let staleFlag: UInt8 = 1

    func frame(stream: UInt32) throws(SendError) -> [UInt8] {
        var writer = StructureWriter.payload
        writer.put(status)
        writer.put(cause.rawValue)
        writer.put(mayServeStale ? Self.staleFlag : 0)
        writer.endFixedPart()
        writer.putField(Tag.text, unlessEmpty: text.peerText)
        return try writer.frame(.originFailed, stream: stream)
    }

    init(payload: Span<UInt8>) throws(PeerFault) {
        var structure = try StructureReader(payload, fixedBytes: Self.fixedBytes, in: .originFailed)
        self.init(
            status: payload.little16(at: 2), cause: Cause(rawValue: payload[4]),
            mayServeStale: payload[5] & Self.staleFlag != 0)
        while let field = try structure.next(payload) {
            if field.tag == Tag.text { text = payload.peerText(field.range) }
        }
    }
}
