import Cluster
import Ground

/// A checksum of all events of a run, to compare two runs of one seed.
struct TraceDigest: Sendable {
    private var hash = XXH64(seed: 0)
    /// The bytes that were not hashed yet.
    private var bytes: [UInt8] = []
    /// The number of events added.
    private(set) var events: UInt64 = 0

    /// The digest of everything added so far.
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

    /// Adds a number, which is a detail of an event.
    mutating func add(_ number: UInt64) {
        bytes.appendLittle(number)
        guard bytes.count >= 4_096 else { return }
        let full = bytes
        hash.update(full.span)
        bytes.removeAll()
    }

    /// Adds a member record, as a detail of an event.
    mutating func add(_ record: MemberRecord) {
        add(record.member.id.low)
        add(record.member.process.low)
        add(record.incarnation.epoch)
        add(
            UInt64(record.incarnation.count) << 16 | UInt64(record.member.role.rawValue) << 8
                | UInt64(record.state.rawValue))
    }

    /// Adds a message, as a detail of an event.
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

    /// Adds an event of a membership process.
    mutating func add(_ event: MembershipEvent, process: Int, at now: Instant) {
        switch event {
        case .ticked: add(1, process: process, at: now)
        case .seedsResolved(let addresses):
            add(2, process: process, at: now)
            for address in addresses { add(UInt64(address.port)) }
        case .dialFailed: add(3, process: process, at: now)
        case .connectionOpened(let id, _, let member, let incarnation):
            add(4, process: process, at: now)
            add(id.number)
            add(MemberRecord(member, incarnation, .alive))
        case .connectionClosed(let id, let reason):
            add(5, process: process, at: now)
            add(id.number << 8 | UInt64(reason?.rawValue ?? 0))
        case .messageReceived(let message, let id):
            add(6, process: process, at: now)
            add(id.number)
            add(message)
        case .roleChanged(let role):
            add(7, process: process, at: now)
            add(UInt64(role.rawValue))
        case .leaveRequested: add(8, process: process, at: now)
        case .connectionNearlyExhausted(let id):
            add(9, process: process, at: now)
            add(id.number)
        }
    }
}
