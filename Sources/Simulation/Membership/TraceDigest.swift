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
    mutating func note(_ code: UInt8, process: Int, at now: Instant) {
        events += 1
        note(UInt64(code) << 56 | UInt64(process))
        note(UInt64(bitPattern: now.nanoseconds))
    }

    mutating func note(_ number: UInt64) {
        bytes.appendLittle(number)
        guard bytes.count >= 4_096 else { return }
        let full = bytes
        hash.update(full.span)
        bytes.removeAll()
    }

    mutating func note(_ record: MemberRecord) {
        note(record.member.id.low)
        note(record.member.process.low)
        note(record.incarnation.epoch)
        note(
            UInt64(record.incarnation.count) << 16 | UInt64(record.member.role.rawValue) << 8
                | UInt64(record.state.rawValue))
    }

    mutating func note(_ message: GossipMessage) {
        switch message {
        case .ping(let sequence, let news):
            note(1, sequence, news)
        case .ack(let sequence, let news):
            note(2, sequence, news)
        case .pingRequest(let sequence, let target, let news):
            note(3, sequence, news)
            note(target.low)
        case .nack(let sequence): note(4, sequence, [])
        case .news(let news): note(5, 0, news)
        case .table(let table, let isQuestion): note(isQuestion ? 6 : 7, 0, table)
        }
    }

    private mutating func note(_ code: UInt64, _ sequence: UInt32, _ news: [MemberRecord]) {
        note(code << 32 | UInt64(sequence))
        for record in news { note(record) }
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
        case .news(let news): return head + 2 + 70 * news.count
        case .table(let table, _): return head + 3 + 70 * table.count
        }
    }

    /// Estimated bytes of a hello.
    static let helloBytes = 34 + 90
}
