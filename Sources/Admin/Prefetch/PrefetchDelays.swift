package import Ground

/// The hosts that a prefetch was told to leave alone for a while, and what it has to ask of them
/// then.
package struct PrefetchDelays: Sendable {
    /// A task that waits, and how often it was tried.
    typealias Waiting = (task: Prefetch.Task, attempts: Int)

    /// How things stand with a host.
    enum Standing: Hashable {
        case open
        case paused
        /// It was of no use for too long, the last time in these words.
        case givenUp(why: String)
    }

    private struct Host {
        var waiting: [Waiting] = []
        var pausedUntil = Instant.zero
        /// Pauses since it was of use, which make the next one longer.
        var pauseCount = 0
        /// Those of them that were its own fault.
        var faultCount = 0
        /// What the last of them said.
        var why = ""

        var isGivenUp: Bool { faultCount >= faultsMax || pauseCount >= pausesMax }

        /// For as long as it says, and longer each time; but not for ever.
        mutating func pause(for said: Interval, at now: Instant) {
            var pause = PrefetchDelays.pause
            for _ in 1..<max(1, pauseCount) where pause < pauseMax { pause = pause + pause }
            pausedUntil = max(pausedUntil, now + min(max(said, pause), pauseMax))
        }
    }

    /// Those that have failed once.
    private var hosts: [Host] = []
    private var places: [String: Int] = [:]

    /// Pauses of a host in succession after which nothing more is asked of it: those that were its
    /// own fault, which come to half a minute at least, and all.
    package static let (faultsMax, pausesMax) = (6, 20)
    /// The shortest pause, which doubles until the host is of use again.
    package static let pause = Interval.seconds(1)
    /// The longest, whatever it says.
    package static let pauseMax = Interval.seconds(30)

    /// Nothing waits.
    var isEmpty: Bool { hosts.allSatisfy(\.waiting.isEmpty) }

    /// A task whose host may be asked again.
    mutating func take(at now: Instant) -> Waiting? {
        let place = hosts.firstIndex { !$0.waiting.isEmpty && now >= $0.pausedUntil }
        return place.map { hosts[$0].waiting.removeFirst() }
    }

    func standing(of task: Prefetch.Task, at now: Instant) -> Standing {
        guard let place = places[Self.host(of: task)] else { return .open }
        if hosts[place].isGivenUp { return .givenUp(why: hosts[place].why) }
        return now < hosts[place].pausedUntil ? .paused : .open
    }

    func hasGivenUp(_ task: Prefetch.Task) -> Bool {
        places[Self.host(of: task)].map { hosts[$0].isGivenUp } ?? false
    }

    /// Keeps `task`, whose host is paused, until that may be asked again.
    mutating func wait(_ task: Prefetch.Task, attempts: Int) {
        guard let place = places[Self.host(of: task)] else {
            preconditionFailure("a task waits for a host that was never paused")
        }
        hosts[place].waiting.append((task, attempts))
    }

    /// Those that waited for a host which is given up, with what it said; they wait no more.
    mutating func takeGivenUp() -> [(task: Prefetch.Task, why: String)] {
        var taken: [(task: Prefetch.Task, why: String)] = []
        for place in hosts.indices where hosts[place].isGivenUp {
            taken += hosts[place].waiting.map { ($0.task, hosts[place].why) }
            hosts[place].waiting = []
        }
        return taken
    }

    /// What the ending of `task`, which was taken at `takenAt`, says about its host.
    mutating func learn(
        from ending: Prefetch.Ending, of task: Prefetch.Task, takenAt: Instant, at now: Instant
    ) {
        switch ending {
        case .held, .fetched, .sitemap, .failed(_, hasAnswered: true):
            guard let place = places[Self.host(of: task)], !hosts[place].isGivenUp else { return }
            (hosts[place].faultCount, hosts[place].pauseCount) = (0, 0)
        case .failed(_, hasAnswered: false): break
        case .busy(let why, let retryAfter, let isOfHost):
            let place = place(of: task)
            // Of those that were asked before it paused the first one has said it all.
            if takenAt >= hosts[place].pausedUntil {
                hosts[place].pauseCount += 1
                if isOfHost { hosts[place].faultCount += 1 }
            }
            hosts[place].pause(for: retryAfter ?? .zero, at: now)
            hosts[place].why = why
        }
    }

    private mutating func place(of task: Prefetch.Task) -> Int {
        let host = Self.host(of: task)
        if let place = places[host] { return place }
        places[host] = hosts.count
        hosts.append(Host())
        return hosts.count - 1
    }

    /// Whom it is asked of: host and port as they are written, in lower case; the node itself, if
    /// the URL is one of its API.
    private static func host(of task: Prefetch.Task) -> String {
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
