package import Ground

/// A query for an entry, from one node to another; see "ASK" in <doc:PeerProtocol>.
package struct PeerQuery: Hashable, Sendable {
    /// The work that the responder may do.
    package var kind: Kind
    /// The name of the entry.
    package var name: EntryName
    /// The entry's key; empty if the requester knows the name alone (from an offer), and the
    /// response then includes the key.
    package var key: [UInt8]
    /// The reduced Accept and Accept-Encoding of the client's request.
    package var negotiation: Negotiation
    /// The entity tag of the requester's entry; empty if it has none.
    package var entityTag: [UInt8]
    /// The client's request as passed to the owner; opaque here.
    package var request: [UInt8]
    /// The requester's stream positions that were not yet sent on this connection.
    package var positions: [StreamPosition]
    /// Invalidation records that were not yet sent on this connection.
    package var invalidations: [[UInt8]]
    /// The identity of the client's request that caused the query; empty if there is none.
    package var trace = RequestTrace()

    /// The identity of a request, in the forms of the HTTP fields that carry it; opaque here.
    package struct RequestTrace: Hashable, Sendable {
        /// The value of X-Request-Id.
        package var requestID: [UInt8]
        /// The value of traceparent, with the requester as the parent.
        package var traceParent: [UInt8]
        /// The value of tracestate.
        package var traceState: [UInt8]

        /// Creates a trace from its parts.
        package init(
            requestID: [UInt8] = [], traceParent: [UInt8] = [], traceState: [UInt8] = []
        ) {
            self.requestID = requestID
            self.traceParent = traceParent
            self.traceState = traceState
        }

        fileprivate var isTooLong: Bool {
            requestID.count > PeerProtocol.requestIDBytesMax
                || traceParent.count > PeerProtocol.traceParentBytesMax
                || traceState.count > PeerProtocol.traceStateBytesMax
        }
    }

    /// The work that a query allows (Design, "Owners and the path of a miss").
    package enum Kind: UInt8, Hashable, Sendable {
        /// May start a fetch; is never forwarded.
        case get = 1
        /// Starts nothing, and waits only for a fetch in progress.
        case probe = 2
    }

    /// Creates a query without a trace, from its parts.
    ///
    /// - Parameters:
    ///   - kind: The work that the responder may do.
    ///   - name: The name of the entry.
    ///   - key: The entry's key; empty if only the name is known.
    ///   - negotiation: The reduced Accept and Accept-Encoding.
    ///   - entityTag: The entity tag of the requester's entry.
    ///   - request: The client's request as passed to the owner.
    ///   - positions: Stream positions not yet sent on this connection.
    ///   - invalidations: Invalidation records not yet sent on this connection.
    package init(
        _ kind: Kind, name: EntryName, key: [UInt8], negotiation: Negotiation = [],
        entityTag: [UInt8] = [], request: [UInt8] = [], positions: [StreamPosition] = [],
        invalidations: [[UInt8]] = []
    ) {
        self.kind = kind
        self.name = name
        self.key = key
        self.negotiation = negotiation
        self.entityTag = entityTag
        self.request = request
        self.positions = positions
        self.invalidations = invalidations
    }

    /// The limit that the query exceeds; `nil` if none.
    private var exceededLimit: PeerLimit? {
        if key.count > PeerProtocol.keyBytesMax { return .key }
        if request.count > PeerProtocol.requestBytesMax { return .request }
        if entityTag.count > PeerProtocol.entityTagBytesMax { return .entityTag }
        if trace.isTooLong { return .requestTrace }
        if positions.count > PeerProtocol.queryPositionsMax { return .positions }
        // The field header counts, so that empty records are limited too.
        let bytes = invalidations.reduce(0) { $0 + $1.count + StructureReader.fieldHeaderBytes }
        return bytes > PeerProtocol.invalidationBytesMax ? .invalidations : nil
    }
}

extension PeerQuery {
    private enum Tag {
        static let key: UInt16 = 1
        static let request: UInt16 = 2
        static let entityTag: UInt16 = 3
        static let position: UInt16 = 4
        static let invalidation: UInt16 = 5
        static let requestID: UInt16 = 6
        static let traceParent: UInt16 = 7
        static let traceState: UInt16 = 8
    }

    private static let fixedBytes = 52

    /// Returns the frame that opens `stream`.
    ///
    /// - Throws: ``SendError/tooLong(_:)``.
    package func frame(stream: UInt32) throws(SendError) -> [UInt8] {
        if let exceededLimit { throw .tooLong(exceededLimit) }
        var writer = StructureWriter.payload
        writer.put(kind.rawValue)
        writer.put(negotiation.rawValue)
        writer.put(UInt64(0))
        writer.put(UInt64(0))
        writer.put(name)
        writer.endFixedPart()
        writer.putField(Tag.key, unlessEmpty: key)
        writer.putField(Tag.request, unlessEmpty: request)
        writer.putField(Tag.entityTag, unlessEmpty: entityTag)
        writer.putFields(Tag.position, positions)
        for record in invalidations { writer.putField(Tag.invalidation, record) }
        writer.putField(Tag.requestID, unlessEmpty: trace.requestID)
        writer.putField(Tag.traceParent, unlessEmpty: trace.traceParent)
        writer.putField(Tag.traceState, unlessEmpty: trace.traceState)
        return try writer.frame(.query, stream: stream)
    }

    /// Decodes a query; `nil` if its kind is unknown, and the requester must then fetch
    /// from the origin itself.
    ///
    /// - Throws: ``PeerFault/truncated(_:)``, or ``PeerFault/tooLong(_:)``.
    package static func read(payload: Span<UInt8>) throws(PeerFault) -> PeerQuery? {
        var structure = try StructureReader(payload, fixedBytes: fixedBytes, in: .query)
        guard let kind = Kind(rawValue: payload[2]) else { return nil }
        var query = PeerQuery(
            kind, name: EntryName(payload, at: 20), key: [],
            negotiation: Negotiation(rawValue: payload[3]))
        while let field = try structure.next(payload) {
            switch field.tag {
            case Tag.key: query.key = payload.copy(field.range)
            case Tag.request: query.request = payload.copy(field.range)
            case Tag.entityTag: query.entityTag = payload.copy(field.range)
            case Tag.position:
                query.positions.append(try structure.fixedSizeValue(payload, field))
            case Tag.invalidation: query.invalidations.append(payload.copy(field.range))
            case Tag.requestID: query.trace.requestID = payload.copy(field.range)
            case Tag.traceParent: query.trace.traceParent = payload.copy(field.range)
            case Tag.traceState: query.trace.traceState = payload.copy(field.range)
            default: continue
            }
        }
        if let limit = query.exceededLimit { throw .tooLong(limit) }
        return query
    }
}
