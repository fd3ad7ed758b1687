package import Ground

/// What one node asks another about one entry; see "ASK" in <doc:PeerProtocol>.
package struct PeerQuery: Hashable, Sendable {
    package var kind: Kind
    /// Names the entry.
    package var name: EntryName
    /// The entry's key; empty where the asker knows the name alone (it was offered): then the
    /// answer says the key.
    package var key: [UInt8]
    /// The reduced Accept and Accept-Encoding of the client's request.
    package var negotiation: Negotiation
    /// The entity tag that the asker holds; empty if none.
    package var entityTag: [UInt8]
    /// What the owner is told of the request; not looked into here.
    package var request: [UInt8]
    /// What the asker has of streams of invalidations, as far as this connection was not told.
    package var positions: [StreamPosition]
    /// Records of invalidations that this connection was not told.
    package var invalidations: [[UInt8]]
    /// The request for whose sake it is asked; empty if there is none.
    package var trace = RequestTrace()

    /// What a request is called, in the forms of the fields of HTTP that say so; not looked into
    /// here.
    package struct RequestTrace: Hashable, Sendable {
        /// X-Request-Id.
        package var requestID: [UInt8]
        /// traceparent, with the asker as the parent.
        package var traceParent: [UInt8]
        /// tracestate.
        package var traceState: [UInt8]

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

    /// What may be done to answer (DESIGN.md §7 "Owners and the path of a miss").
    package enum Kind: UInt8, Hashable, Sendable {
        /// May start a fetch; is never passed on.
        case get = 1
        /// Starts nothing, and waits for nothing but a fetch that runs.
        case probe = 2
    }

    package init(
        _ kind: Kind, name: EntryName, key: [UInt8], negotiation: Negotiation = [],
        entityTag: [UInt8] = [], request: [UInt8] = [], knowledge: [StreamPosition] = [],
        invalidations: [[UInt8]] = []
    ) {
        self.kind = kind
        self.name = name
        self.key = key
        self.negotiation = negotiation
        self.entityTag = entityTag
        self.request = request
        self.positions = knowledge
        self.invalidations = invalidations
    }

    /// The limit that it passes; nil if none.
    private var exceededLimit: PeerLimit? {
        if key.count > PeerProtocol.keyBytesMax { return .key }
        if request.count > PeerProtocol.requestBytesMax { return .request }
        if entityTag.count > PeerProtocol.entityTagBytesMax { return .entityTag }
        if trace.isTooLong { return .requestTrace }
        if positions.count > PeerProtocol.queryPositionsMax { return .positions }
        // The head of a field costs an empty record, too.
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

    /// The frame that opens `stream`.
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

    /// The question in `payload`; nil if it is of a kind that this version does not know: then the
    /// asker is told to fetch for itself.
    ///
    /// - Throws: ``PeerFault/truncated(_:)``, or ``PeerFault/tooLong(_:)``.
    package static func read(payload: Span<UInt8>) throws(PeerFault) -> PeerQuery? {
        var structure = try StructureReader(payload, fixedBytes: fixedBytes, in: .query)
        guard let kind = Kind(rawValue: payload[2]) else { return nil }
        var question = PeerQuery(
            kind, name: EntryName(payload, at: 20), key: [],
            negotiation: Negotiation(rawValue: payload[3]))
        while let field = try structure.next(payload) {
            switch field.tag {
            case Tag.key: question.key = payload.copy(field.range)
            case Tag.request: question.request = payload.copy(field.range)
            case Tag.entityTag: question.entityTag = payload.copy(field.range)
            case Tag.position:
                question.positions.append(try structure.fixedSizeValue(payload, field))
            case Tag.invalidation: question.invalidations.append(payload.copy(field.range))
            case Tag.requestID: question.trace.requestID = payload.copy(field.range)
            case Tag.traceParent: question.trace.traceParent = payload.copy(field.range)
            case Tag.traceState: question.trace.traceState = payload.copy(field.range)
            default: continue
            }
        }
        if let limit = question.exceededLimit { throw .tooLong(limit) }
        return question
    }
}
