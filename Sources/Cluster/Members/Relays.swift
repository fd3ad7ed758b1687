import Ground

/// Pings that are sent for others, and whom their answers go to.
struct Relays: Sendable {
    struct Relay: Hashable, Sendable {
        /// Who asked, and under which number.
        let requester: ConnectionID
        let requestSequence: UInt32
        /// When the asker is told that there is no answer yet; nil once it was.
        var nackAt: Instant?
        let forgetAt: Instant
    }

    /// By the number of the ping.
    private var relays = SortedTable<UInt32, Relay>()
    /// More askers are told at once that there is no answer.
    static let countMax = 256

    var hasRoom: Bool { relays.count < Self.countMax }
    var nextDue: Instant? { relays.values.map { $0.nackAt ?? $0.forgetAt }.min() }

    mutating func add(_ relay: Relay, sequence: UInt32) {
        relays[sequence] = relay
    }

    /// The relay whose ping was answered; it is over.
    mutating func ackReceived(_ sequence: UInt32) -> Relay? {
        defer { relays[sequence] = nil }
        return relays[sequence]
    }

    /// Those who are to be told now that there is no answer; what is too old is forgotten.
    mutating func takeUnanswered(at now: Instant) -> [Relay] {
        var unanswered: [Relay] = []
        for (sequence, relay) in zip(relays.keys, relays.values) {
            if let nackAt = relay.nackAt, nackAt <= now {
                unanswered.append(relay)
                relays[sequence]?.nackAt = nil
            }
            if relay.forgetAt <= now { relays[sequence] = nil }
        }
        return unanswered
    }
}
