package import Ground

/// The hosts that a prefetch was told to leave alone for a while, and what it has to ask of them
/// then.
package struct HostBackoff: Sendable {
    /// A task that waits, and how often it was tried.
    typealias DelayedItem = (task: PrefetchJob.Item, attempts: Int)

    /// How things stand with a host.
    enum HostState: Hashable {
        case available
        case backingOff
        /// It was of no use for too long, the last time in these words.
        case failed(why: String)
    }

    private struct Host {
        var delayed: [DelayedItem] = []
        var backoffUntil = Instant.zero
        /// Pauses since it was of use, which make the next one longer.
        var backoffCount = 0
        /// Those of them that were its own fault.
        var failureCount = 0
        /// What the last of them said.
        var reason = ""

        var isFailed: Bool { failureCount >= failuresMax || backoffCount >= backoffsMax }

        /// For as long as it says, and longer each time; but not for ever.
        mutating func backOff(for said: Interval, at now: Instant) {
            var pause = HostBackoff.backoffMin
            for _ in 1..<max(1, backoffCount) where pause < backoffMax { pause = pause + pause }
            backoffUntil = max(backoffUntil, now + min(max(said, pause), backoffMax))
        }
    }

    /// Those that have failed once.
    private var hosts: [Host] = []
    private var hostIndexes: [String: Int] = [:]

    /// Pauses of a host in succession after which nothing more is asked of it: those that were its
    /// own fault, which come to half a minute at least, and all.
    package static let (failuresMax, backoffsMax) = (6, 20)
    /// The shortest pause, which doubles until the host is of use again.
    package static let backoffMin = Interval.seconds(1)
    /// The longest, whatever it says.
    package static let backoffMax = Interval.seconds(30)

    /// Nothing waits.
    var isEmpty: Bool { hosts.allSatisfy(\.delayed.isEmpty) }

    /// A task whose host may be asked again.
    mutating func dequeue(at now: Instant) -> DelayedItem? {
        let place = hosts.firstIndex { !$0.delayed.isEmpty && now >= $0.backoffUntil }
        return place.map { hosts[$0].delayed.removeFirst() }
    }

    func state(of task: PrefetchJob.Item, at now: Instant) -> HostState {
        guard let place = hostIndexes[Self.host(of: task)] else { return .available }
        if hosts[place].isFailed { return .failed(why: hosts[place].reason) }
        return now < hosts[place].backoffUntil ? .backingOff : .available
    }

    func isHostFailed(_ task: PrefetchJob.Item) -> Bool {
        hostIndexes[Self.host(of: task)].map { hosts[$0].isFailed } ?? false
    }

    /// Keeps `task`, whose host is paused, until that may be asked again.
    mutating func enqueue(_ task: PrefetchJob.Item, attempts: Int) {
        guard let place = hostIndexes[Self.host(of: task)] else {
            preconditionFailure("a task waits for a host that was never paused")
        }
        hosts[place].delayed.append((task, attempts))
    }

    /// Those that waited for a host which is given up, with what it said; they wait no more.
    mutating func removeItemsOfFailedHosts() -> [(task: PrefetchJob.Item, why: String)] {
        var taken: [(task: PrefetchJob.Item, why: String)] = []
        for place in hosts.indices where hosts[place].isFailed {
            taken += hosts[place].delayed.map { ($0.task, hosts[place].reason) }
            hosts[place].delayed = []
        }
        return taken
    }

    /// What the ending of `task`, which was taken at `takenAt`, says about its host.
    mutating func record(
        from ending: PrefetchJob.ItemOutcome, of task: PrefetchJob.Item, takenAt: Instant,
        at now: Instant
    ) {
        switch ending {
        case .cached, .fetched, .sitemap, .failed(_, hostResponded: true):
            guard let place = hostIndexes[Self.host(of: task)], !hosts[place].isFailed else {
                return
            }
            (hosts[place].failureCount, hosts[place].backoffCount) = (0, 0)
        case .failed(_, hostResponded: false): break
        case .deferred(let why, let retryAfter, let isOfHost):
            let place = hostIndex(of: task)
            // Of those that were asked before it paused the first one has said it all.
            if takenAt >= hosts[place].backoffUntil {
                hosts[place].backoffCount += 1
                if isOfHost { hosts[place].failureCount += 1 }
            }
            hosts[place].backOff(for: retryAfter ?? .zero, at: now)
            hosts[place].reason = why
        }
    }

    private mutating func hostIndex(of task: PrefetchJob.Item) -> Int {
        let host = Self.host(of: task)
        if let place = hostIndexes[host] { return place }
        hostIndexes[host] = hosts.count
        hosts.append(Host())
        return hosts.count - 1
    }

    /// Whom it is asked of: host and port as they are written, in lower case; the node itself, if
    /// the URL is one of its API.
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
