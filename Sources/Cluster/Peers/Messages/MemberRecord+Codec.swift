import Ground

/// The encoding of member records between nodes; see "Member" in <doc:PeerProtocol>.
extension MemberRecord {
    private enum Tag {
        static let host: UInt16 = 1
    }

    private static let fixedBytes = 56

    /// The encoded structure.
    var peerBytes: [UInt8] {
        var writer = StructureWriter()
        writer.put(state.rawValue)
        writer.put(member.role.rawValue)
        writer.put(member.weight)
        writer.put(member.address.port)
        writer.put(member.versions.lowerBound)
        writer.put(member.versions.upperBound)
        writer.put(incarnation.count)
        writer.put(incarnation.epoch)
        writer.put(member.id)
        writer.put(member.process)
        writer.endFixedPart()
        writer.putField(Tag.host, Array(member.address.host.utf8))
        return writer.bytes
    }

    /// Decodes a record; `nil` if this version does not understand it, and it is then skipped.
    ///
    /// - Throws: ``PeerFault/truncated(_:)`` if a part exceeds its enclosing structure.
    static func read(
        _ bytes: Span<UInt8>, in kind: PeerFrameKind
    ) throws(PeerFault) -> MemberRecord? {
        var structure = try StructureReader(bytes, fixedBytes: fixedBytes, in: kind)
        var host: String?
        while let field = try structure.next(bytes) {
            guard field.tag == Tag.host, field.range.count <= PeerAddress.hostBytesMax else {
                continue
            }
            host = bytes.peerText(field.range)
        }
        let weight = bytes.little16(at: 4)
        let (oldest, newest) = (bytes.little16(at: 8), bytes.little16(at: 10))
        guard let host, let address = PeerAddress(host, port: bytes.little16(at: 6)),
            let state = State(rawValue: bytes[2]), weight > 0, oldest <= newest
        else { return nil }
        let member = Member(
            id: NodeID(bytes, at: 24), process: bytes.process(at: 40), address: address,
            weight: weight, versions: oldest...newest, role: Member.Role(rawValue: bytes[3]))
        let incarnation = Incarnation(
            epoch: bytes.little64(at: 16), count: bytes.little32(at: 12))
        return MemberRecord(member, incarnation, state)
    }
}

extension PeerAddress {
    /// Creates an address; `nil` for a host that is neither a name nor an address, and for port 0.
    fileprivate init?(_ host: String, port: UInt16) {
        let isLong = host.utf8.contains(UInt8(ascii: ":"))
        guard let written = HostPort(isLong ? "[\(host)]:\(port)" : "\(host):\(port)") else {
            return nil
        }
        self.init(written)
    }
}
