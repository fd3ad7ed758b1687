import Cluster
package import Ground
import Logging
import Platform
import Synchronization

/// Invalidations that client requests cause (RFC 9111 §4.4); at too high a rate, the whole host is
/// purged instead.
extension PurgeCoordinator {
    /// Invalidates the resource of `key`, which a request through this node has changed: no stored
    /// response and no fetch in progress is used for it (RFC 9111 §4.4).
    ///
    /// The call does not wait for the other nodes. If there are too many such changes, or the log
    /// accepts none, the whole host is purged softly a moment later instead. Until then only the
    /// origin's responses are used for this host.
    package func invalidate(_ key: [UInt8]) {
        let name = Array(URLName.name(ofKey: key))
        let host = Self.host(of: name)
        let admission = throttle.withLock { $0.admit(host, now: SystemClock.now()) }
        if admission == .individual {
            let issuance = issue(Purge(.hard, [.url(name)]))
            if let issuance, issuance != .busy { return }
            throttle.withLock { $0.requireHostPurge(host) }
            logUnpropagatedPurge()
        }
        _ = invalidateLocally(Purge(.hard, [.url(name)]))
    }

    /// Returns true while a purge of the whole host of `key` is pending, so that other nodes may
    /// not know that a resource of the host was changed.
    package func mayBeStaleElsewhere(_ key: [UInt8]) -> Bool {
        throttle.withLock { pace in
            pace.hasCoalescedHosts
                && pace.isHostPurgePending(Self.host(of: Array(URLName.name(ofKey: key))))
        }
    }

    /// Returns the host at the start of a URL's name.
    private static func host(of name: [UInt8]) -> [UInt8] {
        Array(name.prefix { $0 != UInt8(ascii: "/") })
    }

    /// Issues the soft purges of whole hosts that are due at `now`; with `.distantFuture`, all of
    /// them.
    ///
    /// A purge that the log does not accept stays pending for the next call.
    package func purgeMergedHosts(dueAt now: Instant = SystemClock.now()) {
        let due = throttle.withLock { pace in
            pace.hasCoalescedHosts ? pace.takeDueHosts(now: now) : []
        }
        for host in due {
            let issuance = issue(Purge(.soft, [.prefix(host: host, path: [])]))
            // A busy log is tried again; only a node that stops cannot do so.
            if issuance == .busy { throttle.withLock { $0.requireHostPurge(host) } }
            if issuance == nil || (issuance == .busy && now == .distantFuture) {
                logUnpropagatedPurge()
            }
        }
    }

    /// Issues a purge with a new id; returns `nil` if it is invalid, because a name is too long.
    private func issue(_ purge: Purge) -> IssueOutcome? { try? issue(purge, id: nil) }

    /// Logs that the other nodes may not know of a change.
    private func logUnpropagatedPurge() {
        logger.warning("a change could not be sent to other nodes; they may serve the old response")
    }
}
