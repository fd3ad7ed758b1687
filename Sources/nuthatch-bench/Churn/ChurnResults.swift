/// The observations of the clients.
struct ChurnResults: Sendable {
    private(set) var responses: [Int: Int] = [:]
    private(set) var bytes = 0
    /// The complete responses by Cache-Status.
    private(set) var hits = 0
    private(set) var misses = 0
    /// The descriptions of the first bodies that differ from the origin's.
    private(set) var wrongBodies: [String] = []
    private(set) var wrongCount = 0
    /// The connections that ended within a response, and those that failed to open.
    private(set) var brokenConnections = 0
    private(set) var failedConnections = 0
    /// The responses that slow clients have aborted.
    private(set) var abandoned = 0
    private var hitTimes = OctaveHistogram()
    private var missTimes = OctaveHistogram()

    /// The number of responses of all statuses.
    var count: Int { responses.values.reduce(0, +) }

    mutating func recordResponse(_ status: Int, bytes: Int, isHit: Bool, nanoseconds: UInt64?) {
        responses[status, default: 0] += 1
        self.bytes += bytes
        guard status == 200 else { return }
        if isHit { hits += 1 } else { misses += 1 }
        guard let nanoseconds else { return }
        if isHit { hitTimes.add(nanoseconds) } else { missTimes.add(nanoseconds) }
    }

    mutating func recordWrongBody(_ what: String) {
        wrongCount += 1
        if wrongBodies.count < 5 { wrongBodies.append(what) }
    }

    mutating func recordBrokenConnection() { brokenConnections += 1 }
    mutating func recordFailedConnection() { failedConnections += 1 }
    mutating func recordAbandoned() { abandoned += 1 }

    /// True if only permitted results occurred: status 200, and 503 at a limit.
    var isClean: Bool {
        wrongCount == 0 && failedConnections == 0
            && responses.keys.allSatisfy { $0 == 200 || $0 == 503 }
    }

    var report: String {
        let statuses = responses.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        return """
            answers: \(count) (\(statuses.joined(separator: ", "))), \(bytes >> 20) MiB
            hits: \(hits), misses: \(misses)
            time of a hit: \(hitTimes.text)
            time of a miss: \(missTimes.text)
            wrong bodies: \(wrongCount) \(wrongBodies)
            broken off by the node: \(brokenConnections), given up by slow clients: \(abandoned), \
            not connected: \(failedConnections)
            """
    }
}

/// A histogram of times with buckets of an eighth of an octave, in constant memory.
struct OctaveHistogram: Sendable {
    private var counts = [Int](repeating: 0, count: 64 * 8)

    mutating func add(_ nanoseconds: UInt64) {
        let octave = 63 - max(1, nanoseconds).leadingZeroBitCount
        let eighth = octave < 3 ? 0 : Int(nanoseconds >> UInt64(octave - 3)) & 7
        counts[octave * 8 + eighth] += 1
    }

    var text: String {
        "p50 \(at(0.5)), p99 \(at(0.99)), p99.9 \(at(0.999)), most \(at(1))"
    }

    private func at(_ part: Double) -> String {
        var left = Int(Double(counts.reduce(0, +)) * part)
        for (step, count) in counts.enumerated() where count > 0 {
            left -= count
            guard left <= 0 else { continue }
            let octave = UInt64(1) << UInt64(step / 8)
            return "\((octave + octave / 8 * UInt64(step % 8 + 1)) / 1_000) µs"
        }
        return "-"
    }
}
