import Cluster
import Ground
import Logging
import Store
import Synchronization
import Tiers

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
