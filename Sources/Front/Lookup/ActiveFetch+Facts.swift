import Ground
import HTTPRules
import NIOCore
import Origin
import Peering
import Platform
import Serving
import Store
import Synchronization
import Tiers
import Wire

/// The state of a fetch, as seen under its lock.
extension ActiveFetch {
    /// The state at this moment.
    var snapshot: FetchSnapshot { state.withLock { FetchSnapshot($0, isVoid: isUnusable($0)) } }

    /// Returns the next step of a reader that does not have the response head yet, with the state
    /// it is based on.
    ///
    /// While no head is known, the step is `ReaderStep.wait`, and the reader is woken through
    /// `context`, its own context. Later, it is `ReaderStep.restart` if the reader cannot be
    /// served, for example because the response has become unusable. Steps other than `restart`,
    /// `abort` and `fail` then mean only that the head may be sent.
    func nextHeadStep(_ reader: Fetch.ReaderID, on context: EventLoopContext) -> (
        ReaderStep, FetchSnapshot
    ) {
        state.withLock { state in
            let view = FetchSnapshot(state, isVoid: isUnusable(state))
            var step = state.lookup.fetch.nextStep(for: reader, limit: 0)
            switch (step, view.progress.outcome) {
            case (.restart, _), (.abort, _), (.fail, _): break
            case (_, .pending):
                state.waitingLoops |= 1 << UInt64(context.index)
                step = .wait
            default: if view.isUnusable { step = .restart(isExclusive: false) }
            }
            return (step, view)
        }
    }

    /// The stored response being revalidated; `nil` if there is none.
    var staleEntry: MemoryEntry? { state.withLock { $0.progress.staleEntry } }
    /// True while the origin fetch is in progress and the response incomplete.
    var isFetchingFromOrigin: Bool { state.withLock { $0.lookup.isFetchingFromOrigin } }
    /// Number of readers that have ever joined.
    var totalReaderCount: Int { state.withLock { $0.lookup.fetch.totalReaderCount } }
    /// True while the source must hold back the body for slow readers.
    var isPaused: Bool { state.withLock { $0.lookup.fetch.isPaused } }
    /// The phase of the fetch.
    var phase: Fetch.Phase { state.withLock { $0.lookup.fetch.phase } }
    /// True if more bytes of the body have arrived than may be stored.
    var exceedsStorageLimit: Bool {
        state.withLock { $0.lookup.fetch.receivedBytes > $0.lookup.fetch.keptBytesMax }
    }
    /// Bytes that a body that is not kept may run ahead of its slowest reader.
    var windowBytes: UInt64 { state.withLock { $0.lookup.fetch.windowBytes } }
    /// When ``LookupDriver/deadlineReached(_:)`` must be called; `nil` for never.
    var deadline: Instant? { state.withLock { $0.lookup.deadline } }
    /// True while other owners are queried for the response, which this node owns.
    var isProbingOwners: Bool { state.withLock { $0.lookup.isProbingOwners } }
    /// True if the response is complete or has failed.
    var isFinished: Bool { state.withLock { $0.isFinished } }
}

/// Quotas and charges of a fetch.
extension ActiveFetch {
    /// Records the start of the origin fetch.
    func recordOriginFetchStart() {
        state.withLock { $0.originFetchStartedAt = SystemClock.now() }
    }

    /// Limits the fetch to the part that its first reader requests, so that all other readers start
    /// again; does nothing once the head is known.
    func limitToPart() {
        update { $0.lookup.fetch.limitedToPart(effects: &$1) }
    }

    /// Limits for how long, and for how many bytes, the fetch continues without readers.
    func limitUnread() {
        state.withLock {
            $0.lookup.fetch.limitUnread(
                time: settings.unreadTimeout, bytes: settings.unreadBytesMax)
        }
    }

    /// Charges the client that caused the fetch for bytes received without a reader; if its
    /// allowance is exhausted, the fetch may no longer continue without one.
    func recordUnreadBytes(_ bytes: Int) {
        guard !context.chargeUnread(UInt64(bytes), for: client) else { return }
        state.withLock { $0.lookup.fetch.limitUnread(time: .zero, bytes: 0) }
    }

    /// Records that the client that caused the fetch was charged for bytes that it does not read.
    ///
    /// - Parameter continuesUnread: true to fetch the rest whether or not anyone reads it; false if
    ///   the charge covers only the bytes before the requested part, after which nothing is fetched
    ///   without a reader.
    func chargeToClient(continuesUnread: Bool) {
        state.withLock {
            $0.progress.isChargedToClient = true
            if continuesUnread {
                $0.lookup.fetch.removeUnreadLimit()
            } else {
                $0.lookup.fetch.limitUnread(time: .zero, bytes: 0)
            }
        }
    }

    /// True if an origin fetch is in progress and has no reader.
    var isUnread: Bool { state.withLock { $0.isUnread } }

    /// Returns the body bytes received per second since the origin fetch began.
    func bytesPerSecond(now: Instant) -> Double {
        let (bytes, askedAt) = state.withLock {
            ($0.lookup.fetch.receivedBytes, $0.originFetchStartedAt ?? now)
        }
        return Double(bytes) * 1e9 / Double(max(1, (now - askedAt).nanoseconds))
    }

    /// Quota holders charged before the origin is contacted.
    var quotaHolders: [QuotaHolder] {
        guard siteRequest.isImage else {
            return [.site(siteRequest.policy.name)] + (client.map { [$0] } ?? [])
                + (siteRequest.body.isEmpty ? [] : [.uploads])
        }
        let key = key
        return OriginAuthority(ofKey: key.span).map { holders(fetchingFrom: $0, nil) } ?? []
    }

    /// Returns the quota holders charged while `origin`, which clients may name, is contacted at
    /// `address`.
    func holders(fetchingFrom origin: OriginAuthority, _ address: IPAddress?) -> [QuotaHolder] {
        [QuotaHolder(ownerOf: origin)] + (address.map { [QuotaHolder(originAt: $0)] } ?? [])
            + (client.map { [$0] } ?? [])
    }
}

/// Checks of a response against invalidations since the fetch began.
extension ActiveFetch {
    /// Returns how a response with these tags may be used at this moment.
    ///
    /// - Parameters:
    ///   - tags: the tags of the response.
    ///   - facts: its metadata; `nil` to skip the check of its validation time against the fence.
    ///   - isShared: true if the response may be served to other requests.
    /// - Returns: which readers may receive the response.
    func validity(_ tags: [[UInt8]], _ facts: EntryMetadata?, isShared: Bool) -> Fetch.Validity {
        let node = context.node
        return Fetch.Validity(
            of: node.marks.effect(onResponse: key, tags: tags, version: invalidationVersion),
            isExcluded: facts.map {
                node.fence.isExcluded($0.validatedAt, now: SystemClock.now())
            } ?? false, isShared: isShared)
    }

    /// True if new requests must not join, because a mark set since the fetch began covers the key
    /// or the tags known so far.
    var isInvalidated: Bool {
        let tags = state.withLock { $0.tags }
        return context.node.marks.effect(onResponse: key, tags: tags, version: invalidationVersion)
            != nil
    }

    /// Returns true if the response must no longer be served, even if it was valid on arrival;
    /// false as long as there is none.
    func isUnusable(_ state: borrowing FetchState) -> Bool {
        let isShared = state.lookup.fetch.isShared
        switch state.progress.outcome {
        case .receiving(let response):
            let facts = state.progress.staleFallback == nil ? response.metadata : nil
            return validity(response.tags, facts, isShared: isShared) == .unusable
        case .stored(let entry), .loadedFromDisk(let entry):
            let facts = state.progress.staleFallback == nil ? entry.metadata : nil
            return validity(entry.tags, facts, isShared: isShared) == .unusable
        case .pending, .failed: return false
        }
    }
}

/// Memory for the entry of a fetch.
extension ActiveFetch {
    /// Reserves memory for a body of `length` bytes, or of unknown length, with its head; returns
    /// false if it is too large to be kept or there is no capacity.
    ///
    /// - Parameters:
    ///   - length: length of the body in bytes; `nil` if unknown.
    ///   - head: the head of the entry.
    ///   - name: the disk name of the URL's primary entry; `nil` without one.
    ///   - place: the placement of the entry.
    /// - Returns: true if the memory was reserved.
    func reserveEntry(
        _ length: UInt64?, _ head: RenderedHead, name: EntryName?, at place: EntryPlacement
    ) -> Bool {
        if let length, length > siteRequest.policy.objectBytesMax { return false }
        let overhead = MemoryEntry.overhead(
            keyBytes: place.key?.key.count ?? key.count, headBytes: head.bytes.count,
            bodyBytes: length ?? 0)
        let body = length.map(BodyLayout.capacity) ?? FetchedResponse.reservedBytes(growingTo: 0)
        return reserve(
            overhead + body,
            weighedBy: context.node.entries.admissionHash(
                of: place.name(primary: name), at: place.key?.hash ?? hash))
    }

    /// Creates the entry of a body that arrived together with its head; returns `nil` if memory has
    /// no capacity.
    func makeEntry(
        _ body: [ByteBuffer], _ name: EntryName?, tags: [[UInt8]], place: EntryKey?,
        _ facts: EntryMetadata, _ head: RenderedHead
    ) -> MemoryEntry? {
        state.withLock { state in
            state.body = BodyBuffer(isRetained: true)
            for piece in body { state.body.append(piece) }
            return state.makeEntry(self, name, tags, place, facts, head)
        }
    }

    /// Creates an entry of the stored body with new metadata and head; returns `nil` if memory has
    /// no capacity for the head.
    func makeFreshenedEntry(
        _ stale: MemoryEntry, _ name: EntryName?, tags: [[UInt8]], place: EntryKey? = nil,
        _ facts: EntryMetadata, _ head: RenderedHead
    ) -> MemoryEntry? {
        let place = place ?? EntryKey(key: key, hash: hash)
        let overhead = MemoryEntry.overhead(
            keyBytes: place.key.count, headBytes: head.bytes.count,
            tagBytes: MemoryEntry.bytes(of: tags), bodyBytes: stale.body.size)
        return state.withLock { state in
            guard state.reservation.grow(by: overhead) else { return nil }
            state.reservation.transfer(overhead)
            return MemoryEntry(
                key: place.key, hash: place.hash, name: name, metadata: facts, head: head.bytes,
                layout: head.layout, tags: tags, version: invalidationVersion, body: stale.body,
                account: context.node.store.account, share: siteRequest.share)
        }
    }
}
