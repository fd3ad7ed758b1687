package import Ground

/// The hosts that a prefetch backs off from, with the items delayed until they may be retried.
package struct HostBackoff: Sendable {
    /// A delayed item, with the number of attempts so far.
    typealias DelayedItem = (task: PrefetchJob.Item, attempts: Int)

    /// The state of a host.
    enum HostState: Hashable {
        case available
        case backingOff
        /// The host failed too often; `why` is the last reason.
        case failed(why: String)
    }

    private struct Host {
        var delayed: [DelayedItem] = []
        /// The end of the last pause.
        var backoffUntil = Instant.zero
        /// The number of pauses since the last success; each makes the next one longer.
        var backoffCount = 0
        /// The number of those pauses that the host caused.
        var failureCount = 0
        /// The reason of the last pause.
        var reason = ""

        /// True if the host is given up.
        var isFailed: Bool { failureCount >= failuresMax || backoffCount >= backoffsMax }

        /// Pauses the host for `requested` or the doubling minimum, whichever is longer, up to
        /// ``backoffMax``.
        mutating func backOff(for requested: Interval, at now: Instant) {
            var pause = HostBackoff.backoffMin
            for _ in 1..<max(1, backoffCount) where pause < backoffMax { pause = pause + pause }
            backoffUntil = max(backoffUntil, now + min(max(requested, pause), backoffMax))
        }
    }

    /// The hosts that have been paused at least once.
    private var hosts: [Host] = []
    /// The indices in ``hosts``, by host.
    private var hostIndexes: [String: Int] = [:]

    /// The numbers of consecutive pauses after which a host is given up: `failuresMax` of pauses
    /// that the host caused, which take at least half a minute in total, and `backoffsMax` of all
    /// pauses.
    package static let (failuresMax, backoffsMax) = (6, 20)
    /// The shortest pause; it doubles until the host succeeds again.
    package static let backoffMin = Interval.seconds(1)
    /// The longest pause, whatever the host requests.
    package static let backoffMax = Interval.seconds(30)

    /// True if no items are delayed.
    var isEmpty: Bool { hosts.allSatisfy(\.delayed.isEmpty) }

    /// Removes and returns an item whose host may be retried; `nil` if there is none.
    mutating func dequeue(at now: Instant) -> DelayedItem? {
        let index = hosts.firstIndex { !$0.delayed.isEmpty && now >= $0.backoffUntil }
        return index.map { hosts[$0].delayed.removeFirst() }
    }

    /// Returns the state of the item's host.
    func state(of task: PrefetchJob.Item, at now: Instant) -> HostState {
        guard let index = hostIndexes[Self.host(of: task)] else { return .available }
        if hosts[index].isFailed { return .failed(why: hosts[index].reason) }
        return now < hosts[index].backoffUntil ? .backingOff : .available
    }

    /// Returns true if the item's host is given up.
    func isHostFailed(_ task: PrefetchJob.Item) -> Bool {
        hostIndexes[Self.host(of: task)].map { hosts[$0].isFailed } ?? false
    }

    /// Delays `task` until the pause of its host has ended; the host must have been paused before.
    mutating func enqueue(_ task: PrefetchJob.Item, attempts: Int) {
        guard let index = hostIndexes[Self.host(of: task)] else {
            preconditionFailure("an item is delayed for a host that was never paused")
        }
        hosts[index].delayed.append((task, attempts))
    }

    /// Removes and returns the items of hosts that are given up, each with the reason.
    mutating func removeItemsOfFailedHosts() -> [(task: PrefetchJob.Item, why: String)] {
        var taken: [(task: PrefetchJob.Item, why: String)] = []
        for index in hosts.indices where hosts[index].isFailed {
            taken += hosts[index].delayed.map { ($0.task, hosts[index].reason) }
            hosts[index].delayed = []
        }
        return taken
    }

    /// Updates the state of the item's host with an outcome: a response resets its counts of
    /// pauses, and a deferred item pauses it.
    ///
    /// An item without a response leaves it unchanged, and a host that is given up remains so.
    /// `takenAt` is when the item was dequeued.
    mutating func record(
        from ending: PrefetchJob.ItemOutcome, of task: PrefetchJob.Item, takenAt: Instant,
        at now: Instant
    ) {
        switch ending {
        case .cached, .fetched, .sitemap, .failed(_, hostResponded: true):
            guard let index = hostIndexes[Self.host(of: task)], !hosts[index].isFailed else {
                return
            }
            (hosts[index].failureCount, hosts[index].backoffCount) = (0, 0)
        case .failed(_, hostResponded: false): break
        case .deferred(let why, let retryAfter, let isOfHost):
            let index = hostIndex(of: task)
            // Of the items that were started before the pause, only the first counts.
            if takenAt >= hosts[index].backoffUntil {
                hosts[index].backoffCount += 1
                if isOfHost { hosts[index].failureCount += 1 }
            }
            hosts[index].backOff(for: retryAfter ?? .zero, at: now)
            hosts[index].reason = why
        }
    }

    /// Returns the index of the item's host, which is added if it is new.
    private mutating func hostIndex(of task: PrefetchJob.Item) -> Int {
        let host = Self.host(of: task)
        if let index = hostIndexes[host] { return index }
        hostIndexes[host] = hosts.count
        hosts.append(Host())
        return hosts.count - 1
    }

    /// Returns the host and port of the item's URL, as written, in lower case.
    ///
    /// For a URL of the node's own API that is the node itself.
    private static func host(of task: PrefetchJob.Item) -> String {
        let url =
            switch task {
            case .url(let url), .sitemap(let url): url
            }
        let bytes = Array(url.utf8)
        let slashes = bytes.indices.first { bytes[$0...].starts(with: "//".utf8) }
        let rest = slashes.map { bytes[($0 + 2)...] } ?? bytes[...]
        let host = rest.prefix { !"/?#".utf8.contains($0) }
        return String(decoding: host, as: UTF8.self).lowercased()
    }
}
