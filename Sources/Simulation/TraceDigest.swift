import Cluster
import Ground

/// A checksum of all events of a run, to compare two runs of one seed.
struct TraceDigest: Sendable {
    private var hash = XXH64(seed: 0)
    /// The bytes that were not hashed yet.
    private var bytes: [UInt8] = []
    private(set) var events: UInt64 = 0

    var value: UInt64 {
        var whole = hash
        whole.update(bytes.span)
        return whole.finish()
    }

    /// Adds the code, process and time of an event, before its details.
    mutating func add(_ code: UInt8, process: Int, at now: Instant) {
        events += 1
        add(UInt64(code) << 56 | UInt64(process))
        add(UInt64(bitPattern: now.nanoseconds))
    }

    mutating func add(_ number: UInt64) {
        bytes.appendLittle(number)
        guard bytes.count >= 4_096 else { return }
        let full = bytes
        hash.update(full.span)
        bytes.removeAll()
    }

    mutating func add(_ record: MemberRecord) {
        add(record.member.id.low)
        add(record.member.process.low)
        add(record.incarnation.epoch)
        add(
            UInt64(record.incarnation.count) << 16 | UInt64(record.member.role.rawValue) << 8
                | UInt64(record.state.rawValue))
    }

    mutating func add(_ message: GossipMessage) {
        switch message {
        case .ping(let sequence, let news):
            add(1, sequence, news)
        case .ack(let sequence, let news):
            add(2, sequence, news)
        case .pingRequest(let sequence, let target, let news):
            add(3, sequence, news)
            add(target.low)
        case .nack(let sequence): add(4, sequence, [])
        case .updates(let news): add(5, 0, news)
        case .table(let table, let isQuestion): add(isQuestion ? 6 : 7, 0, table)
        }
    }

    private mutating func add(_ code: UInt64, _ sequence: UInt32, _ news: [MemberRecord]) {
        add(code << 32 | UInt64(sequence))
        for record in news { add(record) }
    }
}

extension GossipMessage {
    /// The estimated bytes on the wire: a TLS record (22), a frame header (12), 70 for each member
    /// record.
    var wireBytes: Int {
        let head = 22 + 12
        switch self {
        case .ping(_, let news), .ack(_, let news): return head + 6 + 70 * news.count
        case .pingRequest(_, _, let news): return head + 22 + 70 * news.count
        case .nack: return head + 4
        case .updates(let news): return head + 2 + 70 * news.count
        case .table(let table, _): return head + 3 + 70 * table.count
        }
    }

    /// The estimated bytes of a hello.
    static let helloBytes = 34 + 90
}

/// A broken invariant, with the events that preceded it.
package struct Violation: Error, CustomStringConvertible {
    /// The seed of the run.
    package let seed: UInt64
    /// The invariant that was broken, with details.
    package let invariant: String
    /// The last events before the violation.
    package let history: [String]

    init(seed: UInt64, law: String, history: ArraySlice<String>) {
        self.seed = seed
        self.invariant = law
        self.history = Array(history)
    }

    /// The seed, the invariant and the events, one per line.
    package var description: String {
        "seed \(seed): \(invariant)\n" + history.joined(separator: "\n")
    }
}
