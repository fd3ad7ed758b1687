import Ground

/// A position in a stream of invalidations.
///
/// A node at this position has everything up to `count`, except where a position is said to be the
/// greatest number, with or without gaps.
package struct StreamPosition: Hashable, Sendable {
    /// The process that issues the stream.
    package var process: ProcessID
    /// The number of the last invalidation that the position includes; 0 for none.
    package var count: UInt64

    /// Creates a position from its parts.
    package init(process: ProcessID, count: UInt64) {
        self.process = process
        self.count = count
    }
}

extension StreamPosition: FixedSizeValue {
    /// The encoded size in bytes.
    package static let bytesCount = 24

    /// Decodes the position at `offset`.
    package init(_ bytes: Span<UInt8>, at offset: Int) {
        self.init(process: bytes.process(at: offset), count: bytes.little64(at: offset + 16))
    }

    /// Encodes the position.
    package func put(into writer: inout StructureWriter) {
        writer.put(process)
        writer.put(count)
    }
}

/// A membership message with stream positions; see "GOSSIP" in <doc:PeerProtocol>.
package struct Gossip: Hashable, Sendable {
    /// The membership message.
    package var message: GossipMessage
    /// The sender's positions in the streams of invalidations.
    package var positions: [StreamPosition]

    /// Creates gossip from its parts.
    package init(_ message: GossipMessage, positions: [StreamPosition] = []) {
        self.message = message
        self.positions = positions
    }

    /// The kinds of messages on the wire.
    fileprivate enum Kind: UInt8 {
        case ping = 1
        case ack = 2
        case pingRequest = 3
        case nack = 4
        case updates = 5
        case table = 6
    }

    private enum Tag {
        static let record: UInt16 = 1
        static let position: UInt16 = 2
    }

    private static let fixedBytes = 24
    private static let requestFlag: UInt8 = 1

    /// The encoded frames: one, or several if one is too small.
    ///
    /// The last of several is the message itself. Those before carry the rest, as tables without a
    /// request if the message is a table, otherwise as `updates`. Records and positions keep their
    /// order.
    package var frames: [[UInt8]] {
        let last = GossipFields(message)
        var ahead = GossipFields(.updates([]))
        if case .table = message { ahead = GossipFields(.table([], isRequest: false)) }
        var fields: [Field] = last.records.map { .record($0.peerBytes) }
        fields += positions.map { .position($0) }
        var frames: [[UInt8]] = []
        var pending: ArraySlice<Field> = []
        var start = 0
        var size = Self.fixedBytes
        for (index, field) in fields.enumerated() {
            if size + field.bytesCount > PeerProtocol.payloadBytesMax {
                frames.append(Self.frame(ahead, pending))
                start = index
                size = Self.fixedBytes
            }
            size += field.bytesCount
            pending = fields[start...index]
        }
        frames.append(Self.frame(last, pending))
        return frames
    }

    private enum Field {
        case record([UInt8])
        case position(StreamPosition)

        /// The encoded size in bytes, including the field's header.
        var bytesCount: Int {
            switch self {
            case .record(let bytes): StructureReader.fieldHeaderBytes + bytes.count
            case .position: StructureReader.fieldHeaderBytes + StreamPosition.bytesCount
            }
        }
    }

    private static func frame(_ gossip: GossipFields, _ fields: ArraySlice<Field>) -> [UInt8] {
        var writer = StructureWriter.payload
        writer.put(gossip.kind.rawValue)
        writer.put(gossip.isRequest ? requestFlag : 0)
        writer.put(gossip.sequence)
        writer.put(gossip.target)
        writer.endFixedPart()
        for field in fields {
            switch field {
            case .record(let bytes): writer.putField(Tag.record, bytes)
            case .position(let position): writer.putField(Tag.position, value: position)
            }
        }
        guard let frame = try? writer.frame(.gossip) else {
            preconditionFailure("gossip that was cut to fit does not")
        }
        return frame
    }

    /// Decodes gossip; `nil` if its kind is unknown, and the frame is then skipped.
    ///
    /// Records that are not understood are omitted.
    ///
    /// - Throws: ``PeerFault/truncated(_:)`` if a part exceeds its enclosing structure.
    package static func read(payload: Span<UInt8>) throws(PeerFault) -> Gossip? {
        var structure = try StructureReader(payload, fixedBytes: fixedBytes, in: .gossip)
        guard let kind = Kind(rawValue: payload[2]) else { return nil }
        var fields = GossipFields(
            kind: kind, isRequest: payload[3] & requestFlag != 0,
            sequence: payload.little32(at: 4), target: NodeID(payload, at: 8))
        var positions: [StreamPosition] = []
        while let field = try structure.next(payload) {
            switch field.tag {
            case Tag.record:
                let bytes = payload.extracting(field.range)
                guard let record = try MemberRecord.read(bytes, in: .gossip) else { continue }
                fields.records.append(record)
            case Tag.position: positions.append(try structure.fixedSizeValue(payload, field))
            default: continue
            }
        }
        return Gossip(fields.message, positions: positions)
    }
}

/// The fields of a membership message.
private struct GossipFields {
    var kind: Gossip.Kind
    var isRequest = false
    var sequence: UInt32 = 0
    var target = NodeID(low: 0, high: 0)
    var records: [MemberRecord] = []

    init(kind: Gossip.Kind, isRequest: Bool, sequence: UInt32, target: NodeID) {
        self.kind = kind
        self.isRequest = isRequest
        self.sequence = sequence
        self.target = target
    }

    init(_ message: GossipMessage) {
        records = message.records
        switch message {
        case .ping(let sequence, _): (kind, self.sequence) = (.ping, sequence)
        case .ack(let sequence, _): (kind, self.sequence) = (.ack, sequence)
        case .pingRequest(let sequence, let target, _):
            (kind, self.sequence, self.target) = (.pingRequest, sequence, target)
        case .nack(let sequence): (kind, self.sequence) = (.nack, sequence)
        case .updates: kind = .updates
        case .table(_, let isRequest): (kind, self.isRequest) = (.table, isRequest)
        }
    }

    var message: GossipMessage {
        switch kind {
        case .ping: .ping(sequence: sequence, updates: records)
        case .ack: .ack(sequence: sequence, updates: records)
        case .pingRequest: .pingRequest(sequence: sequence, target: target, updates: records)
        case .nack: .nack(sequence: sequence)
        case .updates: .updates(records)
        case .table: .table(records, isRequest: isRequest)
        }
    }
}
