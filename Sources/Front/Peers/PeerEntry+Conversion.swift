import Cluster
import Ground
import HTTPRules
import Platform
import Serving
import Store

extension PeerEntry {
    /// Creates the description of a response for a peer.
    ///
    /// - Parameters:
    ///   - facts: the metadata of the response.
    ///   - size: the size of the body in bytes; `nil` if unknown.
    ///   - head: the head of the response.
    ///   - tags: the tags of the response.
    ///   - source: where this node has found it.
    ///   - version: the invalidation version of the response.
    ///   - selection: the negotiation of an image's request; `nil` for others.
    ///   - key: the key of an offered entry; empty if the query contains it.
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
            headOffsets: HeadOffsets(
                partialStart: UInt32(head.layout.partialStart),
                multipartStart: UInt32(head.layout.multipartStart),
                notModifiedStart: UInt32(head.layout.notModifiedStart),
                contentType: head.layout.contentTypeExtent),
            tags: tags, key: key)
    }
}

extension PeerEntry.Terms {
    /// Creates the terms of a fetched response; returns `nil` if it must not be sent to the peer.
    ///
    /// A response that may not be shared is sent to the peer whose query caused the fetch.
    ///
    /// - Parameters:
    ///   - view: the state of the fetch.
    ///   - isInitiator: true if the peer's query has caused the fetch.
    ///   - isProbe: true for a probe, to which only a response without a failed origin is sent.
    init?(of view: FetchSnapshot, forInitiator isInitiator: Bool, isProbe: Bool) {
        let known = view.progress
        guard view.isShared || isInitiator, known.staleFallback == nil || !isProbe else {
            return nil
        }
        self.init()
        if !view.isShared { restrictions.insert(.isPrivate) }
        if !known.isStored { restrictions.insert(.isNoStore) }
        if known.isHitForMiss { restrictions.insert(.isHitForMiss) }
        if let stoodIn = known.staleFallback {
            restrictions.formUnion([.isStaleIfError, .isNoStore])
            originErrorStatus = stoodIn.status
        }
    }
}

extension OwnerSearch.Reply {
    /// Creates the reply that the owner search works with from a peer's reply.
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
    /// Creates the head of a peer's response, checked as strictly as an origin's; throws the fault
    /// that was found.
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
    /// Creates the trace of a request for a peer; `span` is the span id of the query, not zero, and
    /// only computed if there is a trace.
    init(_ cause: RequestCorrelation, span: @autoclosure () -> UInt64) {
        self.init(
            requestID: cause.id.text, traceParent: cause.trace?.traceparent(span: span()) ?? [],
            traceState: cause.trace?.state ?? [])
    }
}

extension RequestCorrelation {
    /// Creates the correlation of a peer's query; without a request id, it gets one of `names`.
    init(_ told: PeerQuery.RequestTrace, fallbackNames names: inout RequestIDGenerator) {
        self.init(
            RequestID(told.requestID) ?? names.id(names.next()),
            TraceContext(parent: told.traceParent, state: told.traceState))
    }
}
