import Cluster
import Ground
import Logging
import NIOCore
import Store
import Synchronization
import Tiers
import Wire

extension NodeCore {
    /// Invalidates what a purge covers, in memory, on disk and among the fetches under way.
    ///
    /// Of nil nothing; `count` is what the log counts with it, as the stamps of requests do.
    func applyPurge(_ purge: Purge?, _ count: UInt64) {
        let now = SystemClock.now()
        let version = marks.apply(purge?.targets ?? [], isSoft: purge?.mode == .soft, now: now)
        if marks.needsPruning { disk?.pruneUnmatchedMarks(now: SystemClock.now) }
        assert(version.count == count, "the log counts \(count), and marks \(version.count)")
        for case .url(let name) in purge?.targets ?? [] {
            for key in URLName.keys(of: name) { store.applyMarksForKey(key) }
        }
    }

    /// Nobody can say any more what was invalidated: everything is held against its origin before
    /// it is used, also where stale answers may be.
    func invalidateEverything(_ count: UInt64) {
        let version = marks.apply([.everything], isSoft: true, now: nil)
        assert(version.count == count, "the log counts \(count), and marks \(version.count)")
    }

    /// Lets go of marks that nothing needs any more, where no disk does that; to be called several
    /// times a second by one loop.
    func reclaimMarks() {
        guard disk == nil else { return }
        marks.pruneMarks(leastVersionOnDisk: { .last }, fingerprintsOnDisk: { _ in [] })
        let folded = marks.takeFoldedCount()
        guard folded > 0 else { return }
        let note = DiskEvent.marksFolded(marks: folded)
        logger.warning("\(note.message)", metadata: ["marks": "\(folded)"])
    }

    /// The resource that has this key was changed by a request that went through this node: what is
    /// stored anywhere, or being fetched, is not to be used any more (RFC 9111 §4.4).
    ///
    /// Nobody waits for the other nodes. Where too many come, or the log takes none, the whole host
    /// is purged instead, a moment later and softly; until then nobody's word but the origin's is
    /// taken for what is of this host.
    func invalidate(_ key: [UInt8]) {
        let name = Array(URLName.name(ofKey: key))
        let host = Self.host(of: name)
        let verdict = invalidationPace.withLock { $0.admit(host, now: SystemClock.now()) }
        if verdict == .individual {
            let issuance = issue(Purge(.hard, [.url(name)]))
            if let issuance, issuance != .busy { return }
            invalidationPace.withLock { $0.requireHostPurge(host) }
            logUnpropagatedPurge()
        }
        _ = purges.invalidateLocally(Purge(.hard, [.url(name)]))
    }

    /// Something of the host of `key` was changed, and the other nodes may not know.
    func mayBeStaleElsewhere(_ key: [UInt8]) -> Bool {
        invalidationPace.withLock { pace in
            pace.hasCoalescedHosts
                && pace.isHostPurgePending(Self.host(of: Array(URLName.name(ofKey: key))))
        }
    }

    private static func host(of name: [UInt8]) -> [UInt8] {
        Array(name.prefix { $0 != UInt8(ascii: "/") })
    }

    /// Purges the hosts of which too many resources were changed one by one, those that are due
    /// at `now`.
    func purgeMergedHosts(dueAt now: Instant = SystemClock.now()) {
        let due = invalidationPace.withLock { pace in
            pace.hasCoalescedHosts ? pace.takeDueHosts(now: now) : []
        }
        for host in due {
            let issuance = issue(Purge(.soft, [.prefix(host: host, path: [])]))
            // What is busy now is tried again; only a node that stops cannot.
            if issuance == .busy { invalidationPace.withLock { $0.requireHostPurge(host) } }
            if issuance == nil || (issuance == .busy && now == .distantFuture) {
                logUnpropagatedPurge()
            }
        }
    }

    /// Nil if a name is too long for the log.
    private func issue(_ purge: Purge) -> IssueOutcome? { try? purges.issue(purge, id: nil) }

    private func logUnpropagatedPurge() {
        logger.warning("what was changed is not used here, and by other nodes until they are told")
    }
}

/// What is taken over from peers, and offered to them.
extension NodeCore {
    /// Keeps an answer that a peer has offered, unless one as new is here; `done` is told, on any
    /// thread, whether either is.
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

    /// Puts the index of variants that leads to what was taken over into memory and on disk.
    func storeVariantIndex(of taken: OfferedLocation, version: InvalidationVersion) {
        guard let (index, names) = taken.variant else { return }
        let base = taken.primaryKey
        insert(index, names, at: taken.entryKey, of: base, version: version, now: SystemClock.now())
        // It may have been in memory alone, from when others owned the key.
        guard let view = disk?.view, !view.contains(EntryName(ofKey: base.key).digest),
            let kept = store.find(base.key, hash: base.hash)
        else { return }
        insert(kept)
    }

    /// Offers an answer that the origin has just given to its other owners, if it may be used
    /// there without asking again.
    func offer(_ fetched: MemoryEntry) {
        guard let hub, let name = fetched.name, fetched.metadata.freshUntil > SystemClock.now()
        else {
            return
        }
        hub.offer(fetched, name.digest)
    }
}

extension PeerHub {
    /// Offers an answer that was just fetched to those who keep it, as far as they are other nodes.
    func offer(_ fetched: MemoryEntry, _ digest: EntryDigest) {
        let owners = ringUpdater.ring.owners(of: digest).prefix(replicas).filter { $0 != ownID }
        guard !owners.isEmpty else { return }
        offeredKeys.record(digest, fetched.key)
        let offer = PeerOffer(digest: digest, size: fetched.metadata.size, touches: 1, isNew: true)
        loop.execute { [self] in handoffSender.entryFetched(offer, for: owners) }
    }

    func offersReceived(_ offers: [PeerOffer], on connection: PeerConnection) {
        loop.execute { [self] in handoffReceiver.offersReceived(offers, on: connection) }
    }

    func offerOutcomesReceived(_ verdicts: [OfferOutcome], on connection: PeerConnection) {
        guard let peer = connection.peer else { return }
        loop.execute { [self] in handoffSender.outcomesReceived(verdicts, by: peer) }
    }

    /// Owns nothing any more, and hands over what it holds; succeeds when that is done, or cannot
    /// be, with true if everything was taken.
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

    /// Owns again.
    func cancelDrain() {
        loop.execute { [self] in
            guard !isStopped else { return }
            handoffSender.cancelDrain()
            handle(.roleChanged(membership.own.member.role.subtracting(.isDraining)))
        }
    }
}
