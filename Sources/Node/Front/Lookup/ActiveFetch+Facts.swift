import Ground
import HTTPRules
import Origin
import Serving
import Store
import Synchronization
import Tiers
import Wire

/// What is known of a fetch at this moment.
extension ActiveFetch {
    var snapshot: FetchSnapshot { state.withLock { FetchSnapshot($0, isVoid: isUnusable($0)) } }

    /// What the reader does before it has the head of the answer, and what is then known.
    ///
    /// What may be given to nobody any more is given to nobody. Where it says ``ReaderStep/wait``
    /// the reader is woken through its hall.
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

    /// The stored answer that the origin is asked about; nil if there is none.
    var staleEntry: MemoryEntry? { state.withLock { $0.progress.staleEntry } }
    /// The origin is asked, and the answer is not whole.
    var isFetchingFromOrigin: Bool { state.withLock { $0.lookup.isFetchingFromOrigin } }
    /// How many have waited for it, or do.
    var totalReaderCount: Int { state.withLock { $0.lookup.fetch.totalReaderCount } }
    var isPaused: Bool { state.withLock { $0.lookup.fetch.isPaused } }
    var phase: Fetch.Phase { state.withLock { $0.lookup.fetch.phase } }
    /// Its body is larger than what is kept.
    var exceedsStorageLimit: Bool {
        state.withLock { $0.lookup.fetch.receivedBytes > $0.lookup.fetch.keptBytesMax }
    }
    /// How far a body that is not kept may run ahead of its slowest reader.
    var windowBytes: UInt64 { state.withLock { $0.lookup.fetch.windowBytes } }
    /// When ``LookupDriver/deadlineReached(_:)`` is to be told; nil if not at all.
    var deadline: Instant? { state.withLock { $0.lookup.deadline } }
    /// Others are asked who may have the answer, which this node owns.
    var isProbingOwners: Bool { state.withLock { $0.lookup.isProbingOwners } }
    /// There is the whole answer, or there will be none.
    var isFinished: Bool { state.withLock { $0.isFinished } }
}

/// What a fetch takes of what origins and this node have for all.
extension ActiveFetch {
    /// The origin is asked from now on.
    func recordOriginFetchStart() {
        state.withLock { $0.originFetchStartedAt = SystemClock.now() }
    }

    /// The origin is asked for no more than the one who caused it wants.
    func limitToPart() {
        update { $0.lookup.fetch.limitedToPart(effects: &$1) }
    }

    /// What nobody waits for any more goes on only for a little from now on.
    func limitUnread() {
        state.withLock {
            $0.lookup.fetch.limitUnread(
                time: settings.unreadTimeout, bytes: settings.unreadBytesMax)
        }
    }

    /// Bytes have come that nobody reads; the last ones, if the client that caused it has taken as
    /// many as it may.
    func recordUnreadBytes(_ bytes: Int) {
        guard !context.chargeUnread(UInt64(bytes), for: client) else { return }
        state.withLock { $0.lookup.fetch.limitUnread(time: .zero, bytes: 0) }
    }

    /// The client that caused it answers for what it reads not: for the rest, which is fetched
    /// whether or not anybody waits for it, or only for what comes before its part, after which
    /// nothing is fetched for nobody.
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

    /// The origin is asked, and nobody waits for what it answers.
    var isUnread: Bool { state.withLock { $0.isUnread } }

    /// Bytes of the body by the second since the origin was asked.
    func bytesPerSecond(now: Instant) -> Double {
        let (bytes, askedAt) = state.withLock {
            ($0.lookup.fetch.receivedBytes, $0.originFetchStartedAt ?? now)
        }
        return Double(bytes) * 1e9 / Double(max(1, (now - askedAt).nanoseconds))
    }

    /// Whom it belongs to before its origin is asked.
    var quotaHolders: [QuotaHolder] {
        guard siteRequest.isImage else {
            return [.site(siteRequest.policy.name)] + (client.map { [$0] } ?? [])
                + (siteRequest.body.isEmpty ? [] : [.uploads])
        }
        let key = key
        return OriginAuthority(ofKey: key.span).map { holders(fetchingFrom: $0, nil) } ?? []
    }

    /// Whom it belongs to while `origin`, which clients may name, is asked at `address`.
    func holders(fetchingFrom origin: OriginAuthority, _ address: IPAddress?) -> [QuotaHolder] {
        [QuotaHolder(ownerOf: origin)] + (address.map { [QuotaHolder(originAt: $0)] } ?? [])
            + (client.map { [$0] } ?? [])
    }
}

/// Holding what a fetch brings against what was invalidated since it began.
extension ActiveFetch {
    /// What an answer with these tags and facts is good for at this moment; without facts its age
    /// is not looked at.
    func validity(_ tags: [[UInt8]], _ facts: EntryMetadata?, isShared: Bool) -> Fetch.Validity {
        let node = context.node
        return Fetch.Validity(
            of: node.marks.effect(onResponse: key, tags: tags, version: invalidationVersion),
            isExcluded: facts.map {
                node.fence.isExcluded($0.validatedAt, now: SystemClock.now())
            } ?? false, isShared: isShared)
    }

    /// Who comes now may not wait for what it brings, as far as is known what that is.
    var isInvalidated: Bool {
        let tags = state.withLock { $0.tags }
        return context.node.marks.effect(onResponse: key, tags: tags, version: invalidationVersion)
            != nil
    }

    /// What it brings may be given to nobody any more, be it that it was good when it came.
    func isUnusable(_ state: borrowing State) -> Bool {
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
