import Ground

/// The first frame of both sides; see "HELLO" in <doc:PeerProtocol>.
package struct Hello: Hashable, Sendable {
    /// The sender, with the protocol versions that it supports.
    package var member: Member
    /// The sender's incarnation.
    package var incarnation: Incarnation
    /// The limits of what the sender accepts.
    package var limits: LinkLimits

    /// Creates a hello from its parts.
    package init(member: Member, incarnation: Incarnation, limits: LinkLimits = .usual) {
        self.member = member
        self.incarnation = incarnation
        self.limits = limits
    }

    private enum Tag {
        static let member: UInt16 = 1
    }

    private static let magic = "NUTHPEER"
    private static let fixedBytes = 32

    /// The encoded frame.
    package var frame: [UInt8] {
        var writer = StructureWriter.payload
        for byte in Self.magic.utf8 { writer.put(byte) }
        writer.put(member.versions.lowerBound)
        writer.put(member.versions.upperBound)
        writer.put(UInt16(0))
        writer.put(limits.dataBytesMax)
        writer.put(limits.payloadBytesMax)
        writer.put(limits.streamsMax)
        writer.put(limits.windowBytes)
        writer.endFixedPart()
        writer.putField(Tag.member, MemberRecord(member, incarnation, .alive).peerBytes)
        guard let frame = try? writer.frame(.hello) else {
            preconditionFailure("a HELLO that is longer than a frame")
        }
        return frame
    }

    /// Decodes a HELLO received by a node that supports the versions of `own`.
    ///
    /// Magic and versions are at the same offsets in every version; the rest is read only if there
    /// is a common one.
    ///
    /// - Throws: The fault that prevents the connection.
    package init(payload: Span<UInt8>, own: ClosedRange<UInt16>) throws(PeerFault) {
        guard payload.count >= 14 else { throw .truncated(.hello) }
        guard payload.matches(Self.magic, at: 2..<10) else { throw .notPeerProtocol }
        let (oldest, newest) = (payload.little16(at: 10), payload.little16(at: 12))
        guard oldest <= newest else { throw .malformed(.hello) }
        guard PeerProtocol.commonVersion(own, oldest...newest) != nil else {
            throw .noCommonVersion(oldest...newest)
        }
        var structure = try StructureReader(payload, fixedBytes: Self.fixedBytes, in: .hello)
        var record: MemberRecord?
        while let field = try structure.next(payload) {
            guard field.tag == Tag.member else { continue }
            record = try MemberRecord.read(payload.extracting(field.range), in: .hello)
        }
        let limits = LinkLimits(
            dataBytesMax: payload.little32(at: 16), payloadBytesMax: payload.little32(at: 20),
            streamsMax: payload.little32(at: 24), windowBytes: payload.little32(at: 28))
        guard let record, record.member.versions == oldest...newest, limits.areUsable else {
            throw .malformed(.hello)
        }
        self.init(member: record.member, incarnation: record.incarnation, limits: limits)
    }
}
