/// What clients have seen.
struct ChurnResults: Sendable {
    private(set) var responses: [Int: Int] = [:]
    private(set) var bytes = 0
    /// Whole answers, by what Cache-Status says.
    private(set) var hits = 0
    private(set) var misses = 0
    /// Bodies that were not what the origin has; the first of them is told.
    private(set) var wrongBodies: [String] = []
    private(set) var wrongCount = 0
    /// Connections that ended inside an answer, and those that could not be opened.
    private(set) var brokenConnections = 0
    private(set) var failedConnections = 0
    /// Answers that slow clients gave up on themselves.
    private(set) var abandoned = 0
    private var hitTimes = OctaveHistogram()
    private var missTimes = OctaveHistogram()

    /// Answers of all statuses.
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

    /// True if nothing was seen that may not be: 200, and 503 where there was no room.
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

/// Times in steps of an eighth of an octave: as many as one likes in little memory.
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
