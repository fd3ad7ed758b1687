import Cluster
import Ground
import Logging
import NIOCore
import Store
import Synchronization
import Tiers
import Wire

extension NodeCore {
    /// Invalidates what a purge covers, in memory, on disk and among the fetches in progress.
    ///
    /// - Parameters:
    ///   - purge: the purge; `nil` advances the invalidation version and covers nothing.
    ///   - count: the invalidation count of the log with this purge, which must equal that of the
    ///     marks.
    func applyPurge(_ purge: Purge?, _ count: UInt64) {
        let now = SystemClock.now()
        let version = marks.apply(purge?.targets ?? [], isSoft: purge?.mode == .soft, now: now)
        if marks.needsPruning { disk?.pruneUnmatchedMarks(now: SystemClock.now) }
        assert(version.count == count, "the log counts \(count), and marks \(version.count)")
        for case .url(let name) in purge?.targets ?? [] {
            for key in URLName.keys(of: name) { store.applyMarksForKey(key) }
        }
    }

    /// Marks every entry for revalidation before its next use, because the set of invalidations is
    /// no longer known; stale responses are not served without it either.
    func invalidateEverything(_ count: UInt64) {
        let version = marks.apply([.everything], isSoft: true, now: nil)
        assert(version.count == count, "the log counts \(count), and marks \(version.count)")
    }

    /// Drops marks that nothing needs any more on a node without a disk; called several times a
    /// second by one loop.
    func reclaimMarks() {
        guard disk == nil else { return }
        marks.pruneMarks(leastVersionOnDisk: { .last }, fingerprintsOnDisk: { _ in [] })
        let folded = marks.takeFoldedCount()
        guard folded > 0 else { return }
        let note = DiskEvent.marksFolded(marks: folded)
        logger.warning("\(note.message)", metadata: ["marks": "\(folded)"])
    }

    /// Invalidates the resource of `key`, which a request through this node has changed: no stored
    /// response and no fetch in progress is used for it (RFC 9111 §4.4).
    ///
    /// The call does not wait for the other nodes. If there are too many such changes, or the log
    /// accepts none, the whole host is purged softly a moment later instead. Until then only the
    /// origin's responses are used for this host.
    func invalidate(_ key: [UInt8]) {
        let name = Array(URLName.name(ofKey: key))
        let host = Self.host(of: name)
        let verdict = invalidationThrottle.withLock { $0.admit(host, now: SystemClock.now()) }
        if verdict == .individual {
            let issuance = issue(Purge(.hard, [.url(name)]))
            if let issuance, issuance != .busy { return }
            invalidationThrottle.withLock { $0.requireHostPurge(host) }
            logUnpropagatedPurge()
        }
        _ = purges.invalidateLocally(Purge(.hard, [.url(name)]))
    }

    /// Returns true if a resource of the host of `key` was changed and the other nodes may not know
    /// it.
    func mayBeStaleElsewhere(_ key: [UInt8]) -> Bool {
        invalidationThrottle.withLock { pace in
            pace.hasCoalescedHosts
                && pace.isHostPurgePending(Self.host(of: Array(URLName.name(ofKey: key))))
        }
    }

    /// Returns the host at the start of a URL's name.
    private static func host(of name: [UInt8]) -> [UInt8] {
        Array(name.prefix { $0 != UInt8(ascii: "/") })
    }

    /// Purges the hosts with too many single changes whose purge is due at `now`; with
    /// `.distantFuture`, all of them.
    func purgeMergedHosts(dueAt now: Instant = SystemClock.now()) {
        let due = invalidationThrottle.withLock { pace in
            pace.hasCoalescedHosts ? pace.takeDueHosts(now: now) : []
        }
        for host in due {
            let issuance = issue(Purge(.soft, [.prefix(host: host, path: [])]))
            // A busy log is tried again; only a node that stops cannot do so.
            if issuance == .busy { invalidationThrottle.withLock { $0.requireHostPurge(host) } }
            if issuance == nil || (issuance == .busy && now == .distantFuture) {
                logUnpropagatedPurge()
            }
        }
    }

    /// Issues a purge with a new id; returns `nil` if a name is too long for the log.
    private func issue(_ purge: Purge) -> IssueOutcome? { try? purges.issue(purge, id: nil) }

    /// Logs that a change is unknown to the other nodes until the host is purged.
    private func logUnpropagatedPurge() {
        logger.warning("what was changed is not used here, and by other nodes until they are told")
    }
}

/// Entries received from peers and offered to them.
extension NodeCore {
    /// Stores a response that a peer has offered, unless the node already has one as new.
    ///
    /// - Parameters:
    ///   - entry: the response, complete.
    ///   - offer: the offer that it was fetched for.
    ///   - done: called on any thread, with true if this response or one as new is stored.
    func storeOffered(
        _ entry: MemoryEntry, _ offer: PeerOffer, done: @escaping @Sendable (Bool) -> Void
    ) {
        let held = store.find(entry.key, hash: entry.hash)
        if let held {
            guard held.metadata.date <= entry.metadata.date else { return done(true) }
            if held.metadata.date < entry.metadata.date { store.insert(entry) }
        }
        guard let disk else { return done(held != nil || store.insert(entry)) }
        disk.enqueueHandoff(
            entry, idle: .seconds(60 * Int64(offer.idleMinutes)),
            touches: offer.touches, now: SystemClock.now(), done: done)
    }

    /// Stores the variant index that leads to a received response in memory and on disk.
    func storeVariantIndex(of taken: OfferedLocation, version: InvalidationVersion) {
        guard let (index, names) = taken.variant else { return }
        let base = taken.primaryKey
        insert(index, names, at: taken.entryKey, of: base, version: version, now: SystemClock.now())
        // The index may be in memory alone, from a time when other nodes owned the key.
        guard let view = disk?.view, !view.contains(EntryName(ofKey: base.key).digest),
            let kept = store.find(base.key, hash: base.hash)
        else { return }
        insert(kept)
    }

    /// Offers a response that was just fetched from the origin to its other owners, if it is fresh.
    func offer(_ fetched: MemoryEntry) {
        guard let hub, let name = fetched.name, fetched.metadata.freshUntil > SystemClock.now()
        else {
            return
        }
        hub.offer(fetched, name.digest)
    }
}

extension PeerHub {
    /// Offers a response that was just fetched to those of its owners that are other nodes.
    func offer(_ fetched: MemoryEntry, _ digest: EntryDigest) {
        let owners = ringUpdater.ring.owners(of: digest).prefix(replicas).filter { $0 != ownID }
        guard !owners.isEmpty else { return }
        offeredKeys.record(digest, fetched.key)
        let offer = PeerOffer(
            digest: digest, size: fetched.metadata.size, touches: 1, isJustFetched: true)
        loop.execute { [self] in handoffSender.entryFetched(offer, for: owners) }
    }

    /// Passes offers to the handoff receiver; thread-safe.
    func offersReceived(_ offers: [PeerOffer], on connection: PeerConnection) {
        loop.execute { [self] in handoffReceiver.offersReceived(offers, on: connection) }
    }

    /// Passes the outcomes of offers to the handoff sender; thread-safe.
    func offerOutcomesReceived(_ verdicts: [OfferOutcome], on connection: PeerConnection) {
        guard let peer = connection.peer else { return }
        loop.execute { [self] in handoffSender.outcomesReceived(verdicts, by: peer) }
    }

    /// Drops ownership and hands off all entries.
    ///
    /// - Returns: a future that succeeds when the handoff has ended, with true if every entry was
    ///   taken.
    func drain() -> EventLoopFuture<Bool> {
        loop.flatSubmit { [self] in
            let promise = loop.makePromise(of: Bool.self)
            guard !isStopped else {
                promise.succeed(false)
                return promise.futureResult
            }
            handle(.roleChanged(membership.own.member.role.union(.isDraining)))
            handoffSender.startDrain(promise)
            return promise.futureResult
        }
    }

    /// Cancels the drain and takes ownership again.
    func cancelDrain() {
        loop.execute { [self] in
            guard !isStopped else { return }
            handoffSender.cancelDrain()
            handle(.roleChanged(membership.own.member.role.subtracting(.isDraining)))
        }
    }
}
