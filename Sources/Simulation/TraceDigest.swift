import Cluster
import Ground

/// A checksum of everything that has happened, to compare two runs of one seed.
struct TraceDigest: Sendable {
    private var hash = XXH64(seed: 0)
    /// What the hash has not seen yet.
    private var bytes: [UInt8] = []
    private(set) var events: UInt64 = 0

    var value: UInt64 {
        var whole = hash
        whole.update(bytes.span)
        return whole.finish()
    }

    /// Begins with one event at a process.
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
    /// Estimated bytes on the wire: a TLS record (22), a frame's head (12), 70 for a record.
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

    /// Estimated bytes of a hello.
    static let helloBytes = 34 + 90
}

/// A law that did not hold, with the events that led there.
package struct Violation: Error, CustomStringConvertible {
    package let seed: UInt64
    package let invariant: String
    /// The last of them.
    package let history: [String]

    init(seed: UInt64, law: String, history: ArraySlice<String>) {
        self.seed = seed
        self.invariant = law
        self.history = Array(history)
    }

    package var description: String {
        "seed \(seed): \(invariant)\n" + history.joined(separator: "\n")
    }
}
