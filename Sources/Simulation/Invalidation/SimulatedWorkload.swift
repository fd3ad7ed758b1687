import Cluster
import Ground
import Serving
import Tiers

/// The clients and operators of an invalidation simulation: reads, edits and purges at random.
struct SimulatedWorkload: Sendable {
    /// The number of purges made.
    private var purgeCount: UInt64 = 0

    /// Schedules a client's reads, edits and purges, and the next step; only that in the final
    /// phase.
    func step(_ world: inout SimulatedWorld) {
        world.schedule(.client, after: world.milliseconds(world.isLarge ? 5...60 : 10...150))
        guard !world.isQuiescent else { return }
        let key = Int.random(in: world.keys.indices, using: &world.dice)
        switch Int.random(in: 0..<10, using: &world.dice) {
        case 0:
            world.oracle.update(key, at: world.now)
            world.schedule(.purge(key: key), after: world.milliseconds(0...40))
            for _ in 0..<3 { read(key, within: 0...120, &world) }
        case 1: world.schedule(.purge(key: key), after: .zero)
        case 2...3:
            for _ in 0..<4 { read(key, within: 0...20, &world) }
        default: read(key, within: 0...5, &world)
        }
    }

    /// Schedules a read at a random node, within a range of milliseconds from now.
    private func read(
        _ key: Int, within range: ClosedRange<Int64>, _ world: inout SimulatedWorld
    ) {
        let index = Int.random(in: world.members.indices, using: &world.dice)
        world.schedule(.read(index, key: key), after: world.milliseconds(range))
    }

    /// Returns a purge that covers the key, on behalf of the operator or the origin; sometimes of a
    /// kind that nodes do not know.
    mutating func purge(of key: SimulatedKey, _ world: inout SimulatedWorld) -> Invalidation {
        let target: PurgeTarget =
            switch Int.random(in: 0..<10, using: &world.dice) {
            case 0...5: .url(key.urlName)
            case 6: .prefix(host: key.host, path: key.path)
            case 7: .prefix(host: key.host, path: [])
            case 8: .tag(key.tags[0])
            default: .everything
            }
        purgeCount += 1
        let id = Array("p\(purgeCount)".utf8)
        let mode = world.chance(oneIn: 3) ? Purge.Mode.soft : .hard
        let purge = Invalidation(id: id, .purge(Purge(mode, [target])))
        guard world.chance(oneIn: 20), var content = try? purge.content() else { return purge }
        // A purge of a later protocol version.
        content[2] = 9
        return Invalidation(content: content.span)
    }
}

/// The reading and checking of receipts of recent purges.
struct ReceiptAudit: Sendable {
    /// The purges whose receipts are watched, by their numbers in the oracle.
    private var watchedPurges: [Int] = []

    /// True if no receipts are watched.
    var isEmpty: Bool { watchedPurges.isEmpty }

    /// Watches the receipt of a purge.
    mutating func watch(_ purge: Int) { watchedPurges.append(purge) }

    /// Reads the receipts of two of the last 60 watched purges at random nodes, and reports their
    /// majorities and confirmations to the oracle.
    ///
    /// A receipt that is confirmed by all is no longer watched.
    mutating func check(_ nodes: [SimulatedCacheNode], _ world: inout SimulatedWorld) {
        if watchedPurges.count > 60 { watchedPurges.removeFirst(watchedPurges.count - 60) }
        guard let number = watchedPurges.randomElement(using: &world.dice) else { return }
        for number in [number, watchedPurges[watchedPurges.count - 1]] {
            let index = Int.random(in: nodes.indices, using: &world.dice)
            guard let exchange = nodes[index].replica.replication,
                nodes[index].pausedUntil <= world.now,
                var receipt = exchange.receipt(of: world.oracle.purges[number].name)
            else { continue }
            if world.scenario.mutation == .receiptWithoutJoiners {
                let counted = exchange.voterConfiguration?.set.members ?? []
                receipt.confirmations.removeAll { !counted.contains($0.node) }
            }
            // The bound that the receipt promises applies to reads, whether or not the purge is
            // durable.
            if let majorityAt = receipt.majorityAt {
                let reported = nodes[index].replica.clock.instant(of: majorityAt)
                world.oracle.recordReportedMajority(number, majorityAt: reported)
            }
            guard receipt.isConfirmedByAll else { continue }
            Self.recordConfirmed(number, by: nodes, &world)
            watchedPurges.removeAll { $0 == number }
        }
    }

    /// Records a receipt that reports confirmation by all, with the processes that it had to
    /// consider.
    ///
    /// The receipt does not cover a removed fenced node. Nor does it cover a node that no voter
    /// knows, or that every voter that knew it has lost for so long that it is no longer a member.
    static func recordConfirmed(
        _ purge: Int, by nodes: [SimulatedCacheNode], _ world: inout SimulatedWorld
    ) {
        let issuedAt = world.oracle.purges[purge].issuedAt
        let known = nodes.filter { node in
            guard !world.oracle.isFormerVoter(world.members[node.index].id) else { return false }
            return node.roundContacts.contains { contact in
                let other = nodes[contact.by]
                guard contact.at < issuedAt, other.replica.run == contact.run,
                    world.isVoter(contact.by)
                else { return false }
                return other.view.unseenSince[node.index].map {
                    world.now - $0 < SimulatedReplica.forgetAfter
                } ?? true
            }
        }
        world.oracle.recordConfirmed(purge, known: Set(known.map(\.process)), at: world.now)
    }
}
