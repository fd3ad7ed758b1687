import Cluster
import Ground
import HTTPRules
import Serving
import Store

extension PeerEntry {
    /// What is said of an answer with these facts and this head; `size` is nil if it is not known.
    init(
        _ facts: EntryMetadata, size: UInt64?, _ head: RenderedHead, tags: [[UInt8]],
        from source: Source, version: InvalidationVersion, selection: Negotiation?,
        key: [UInt8] = []
    ) {
        var told = facts
        told.entityTag = head.entityTag
        var facts = PeerEntryFacts(told, size: size, now: SystemClock.now())
        facts.selection = selection
        self.init(
            status: head.status, source: source, facts: facts, version: version,
            head: head.bytes,
            places: HeadOffsets(
                partialStart: UInt32(head.layout.partialStart),
                multipartStart: UInt32(head.layout.multipartStart),
                notModifiedStart: UInt32(head.layout.notModifiedStart),
                contentType: head.layout.contentType),
            tags: tags, key: key)
    }
}

extension OwnerSearch.Reply {
    init(_ response: PeerReply) {
        switch response {
        case .held, .notModified: self = .found
        case .fetching, .interim: self = .fetching
        case .absent: self = .notFound
        case .declined: self = .declined
        case .behind: self = .lagging
        case .originFailed: self = .originFailed
        }
    }
}

extension RenderedHead {
    /// The head of an answer that a peer gives.
    ///
    /// - Throws: what is wrong with it; it is read as strictly as an origin's.
    init(_ entry: PeerEntry) throws(StoredHeadFault) {
        guard let places = entry.headOffsets else { throw .partOffsets }
        self.init(
            bytes: entry.head,
            layout: HeadLayout(
                partialStart: Int(places.partialStart), multipartStart: Int(places.multipartStart),
                notModifiedStart: Int(places.notModifiedStart), contentType: places.contentType),
            entityTag: entry.facts.entityTag)
        try stored.validate(entry.facts.flags, size: entry.facts.size)
        guard status == entry.status else { throw .statusLine }
    }
}

extension PeerQuery.RequestTrace {
    /// What a peer is told of a request; `span` is what the question is called in its trace, if it
    /// has one, and not zero.
    init(_ cause: RequestCorrelation, span: @autoclosure () -> UInt64) {
        self.init(
            requestID: cause.id.text, traceParent: cause.trace?.traceparent(span: span()) ?? [],
            traceState: cause.trace?.state ?? [])
    }
}

extension RequestCorrelation {
    /// The request that a peer has told of; one of which it says nothing has an id of `names`.
    init(_ told: PeerQuery.RequestTrace, fallbackNames names: inout RequestIDGenerator) {
        self.init(
            RequestID(told.requestID) ?? names.id(names.next()),
            TraceContext(parent: told.traceParent, state: told.traceState))
    }
}
