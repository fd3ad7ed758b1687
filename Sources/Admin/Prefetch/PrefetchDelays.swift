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
        /// It was busy too often in succession, and said so in these words.
        case givenUp(why: String)
    }

    private struct Host {
        var waiting: [Waiting] = []
        var pausedUntil = Instant.zero
        /// Times in succession that it was busy when its pause was over.
        var busyCount = 0
        /// What it said the last time.
        var why = ""

        var isGivenUp: Bool { busyCount >= Prefetch.attemptsMax }
    }

    /// Those that were busy once.
    private var hosts: [Host] = []
    private var places: [String: Int] = [:]

    /// The shortest pause, which doubles as long as a host stays busy.
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

    /// Keeps `task`, whose host was busy, until that may be asked again.
    mutating func wait(_ task: Prefetch.Task, attempts: Int) {
        guard let place = places[Self.host(of: task)] else {
            preconditionFailure("a task waits for a host that was never busy")
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

    mutating func wasBusy(
        with task: Prefetch.Task, _ why: String, retryAfter: Interval?, at now: Instant
    ) {
        let place = places[Self.host(of: task)] ?? hosts.count
        if place == hosts.count {
            places[Self.host(of: task)] = place
            hosts.append(Host())
        }
        // Of questions that were under way together the first one counts.
        if now >= hosts[place].pausedUntil { hosts[place].busyCount += 1 }
        var pause = Self.pause
        for _ in 1..<hosts[place].busyCount where pause < Self.pauseMax { pause = pause + pause }
        pause = min(max(retryAfter ?? .zero, pause), Self.pauseMax)
        hosts[place].pausedUntil = max(hosts[place].pausedUntil, now + pause)
        hosts[place].why = why
    }

    mutating func wasNotBusy(with task: Prefetch.Task) {
        guard let place = places[Self.host(of: task)], !hosts[place].isGivenUp else { return }
        hosts[place].busyCount = 0
    }

    /// Whom it is asked of: host and port as they are written, in lower case.
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
