import Cluster
import Ground
import Testing

/// Nodes with a log and a disk each, and a network that the test controls.
///
/// The invariants are checked after every event.
struct LogWorld {
    enum Message {
        case push([InvalidationRecord])
        case confirm([StreamPosition], [NodeID])
        case tell([StreamPosition])
        case ask([StreamRange])
        case answer(RepairResponse)
        /// A query, with the ids of all records that the requester has applied.
        case question(UnsentInvalidations, Set<RecordID>)
    }

    struct Letter {
        var from: Int
        var to: Int
        var message: Message
    }

    struct Host {
        var log: InvalidationLog
        /// The synced records, which survive everything.
        var disk: [LogWrite] = []
        var retired: [StreamPosition] = []
        var batch: [LogWrite]?
        /// The number of times that this process has applied each record.
        var applied: [RecordID: Int] = [:]
        var floors: [(positions: [StreamPosition], count: UInt64)] = []
        var settledCount: UInt64 = 0
        var contradictions: [StreamPosition] = []
        /// The positions that were checked.
        var checked: [StreamPosition] = []
        var kept: Set<RecordID> = []
    }

    /// The behaviour of the network.
    struct Weather {
        var isOrdered = true
        /// The percentage of lost letters.
        var lost = 0
        var doubled = 0
        static let fair = Weather()
        static let foul = Weather(isOrdered: false, lost: 20, doubled: 20)
    }

    var hosts: [Host] = []
    var letters: [Letter] = []
    var now = Instant(nanoseconds: 1_000_000_000)
    var dice: SplitMix64
    var weather = Weather.fair
    /// The content of every record ever issued.
    private(set) var contents: [RecordID: [UInt8]] = [:]
    private var connections: UInt64 = 0
    private var clientIDs: UInt64 = 0
    /// The number of queries that were served, and of those answered with *behind*.
    private(set) var answered = (served: 0, behind: 0)

    init(_ count: Int, seed: UInt64) {
        dice = SplitMix64(seed: seed)
        for index in 0..<count {
            let process = ProcessID(using: &dice)
            let log = InvalidationLog(node: Self.id(index), process: process, now: now)
            hosts.append(Host(log: log))
        }
        introduce()
        for one in hosts.indices {
            for other in 0..<one { connect(one, other) }
        }
    }

    static func id(_ index: Int) -> NodeID { NodeID(low: UInt64(index) + 1, high: 0) }
    static func index(_ id: NodeID) -> Int { Int(id.low) - 1 }

    /// Announces all members to all nodes.
    mutating func introduce() {
        let indices = hosts.indices
        let members = hosts.map { ReplicationMember($0.log.node, $0.log.process, .live) }
        for index in indices {
            happens(index) { log, now, effects in
                log.votersChanged(indices.map(Self.id), now: now, effects: &effects)
                log.membersChanged(members, now: now, effects: &effects)
            }
        }
    }

    /// Opens a new connection; letters on the former one are lost.
    mutating func connect(_ one: Int, _ other: Int) {
        connections += 1
        let id = ConnectionID(connections)
        cut(one, other)
        for (here, there) in [(one, other), (other, one)] {
            happens(here) { log, now, effects in
                log.connected(Self.id(there), on: id, now: now, effects: &effects)
            }
        }
    }

    mutating func cut(_ one: Int, _ other: Int) {
        letters.removeAll {
            ($0.from, $0.to) == (one, other) || ($0.from, $0.to) == (other, one)
        }
    }

    mutating func disconnect(_ one: Int, _ other: Int) {
        cut(one, other)
        for (here, there) in [(one, other), (other, one)] {
            happens(here) { log, now, effects in
                log.disconnected(Self.id(there), now: now, effects: &effects)
            }
        }
    }

    /// Issues an invalidation, by default a purge of a unique URL.
    mutating func issue(at index: Int, _ invalidation: Invalidation? = nil) {
        clientIDs += 1
        let name = Array("\(clientIDs)".utf8)
        let usual = Invalidation(id: name, .purge(Purge(.hard, [.url(name)])))
        var issue: IssueOutcome?
        happens(index) { log, now, effects in
            issue = try? log.issue(invalidation ?? usual, now: now, effects: &effects)
        }
        if case .issued(let name) = issue {
            #expect(contents[name] == nil, "a number that was used before")
            contents[name] = hosts[index].log.record(name)?.encodedContent
        }
    }

    mutating func ask(_ index: Int, of other: Int) {
        guard let unsent = hosts[index].log.unsentInvalidations(to: Self.id(other)) else { return }
        let names = Set(hosts[index].applied.keys).union(hosts[index].kept)
        letters.append(Letter(from: index, to: other, message: .question(unsent, names)))
        hosts[index].log.invalidationsSent(unsent, to: Self.id(other))
    }

    /// Completes the last write of a disk.
    mutating func sync(_ index: Int) {
        guard let batch = hosts[index].batch else { return }
        hosts[index].disk += batch
        hosts[index].batch = nil
        happens(index) { log, now, effects in log.writeSynced(now: now, effects: &effects) }
    }

    /// Restarts a process, which finds everything synced and part of the write in progress.
    mutating func crash(_ index: Int) {
        let before = hosts[index].log.syncedPositions
        var disk = hosts[index].disk
        for write in hosts[index].batch ?? [] where Bool.random(using: &dice) {
            disk.append(write)
        }
        let retired = hosts[index].retired
        let process = ProcessID(using: &dice)
        let kept = PersistedLog(
            records: disk.compactMap(\.record), floors: disk.compactMap(\.floor),
            retired: retired)
        letters.removeAll { $0.from == index || $0.to == index }
        hosts[index] = Host(
            log: InvalidationLog(node: Self.id(index), process: process, persisted: kept, now: now),
            disk: disk, retired: retired, kept: Set(disk.compactMap { $0.record?.id }))
        for position in before {
            let after = hosts[index].log.syncedPositions.first { $0.process == position.process }
            #expect(after?.count ?? 0 >= position.count, "a crash took back a confirmation")
        }
        introduce()
        for other in hosts.indices where other != index { connect(index, other) }
    }

    mutating func tick(_ interval: Interval) {
        now = now + interval
        for index in hosts.indices where hosts[index].log.nextTick <= now {
            happens(index) { log, now, effects in log.ticked(now: now, effects: &effects) }
        }
    }

    /// Delivers one letter, or loses or duplicates it.
    mutating func deliver() {
        guard let place = nextPlace() else { return }
        let letter = letters[place]
        let throwOf = Int.random(in: 0..<100, using: &dice)
        if throwOf >= weather.doubled { letters.remove(at: place) }
        if throwOf >= 100 - weather.lost { return }
        arrive(letter)
    }

    private mutating func nextPlace() -> Int? {
        guard let any = letters.indices.randomElement(using: &dice) else { return nil }
        guard weather.isOrdered else { return any }
        let pair = (letters[any].from, letters[any].to)
        return letters.firstIndex { ($0.from, $0.to) == pair }
    }

    private mutating func arrive(_ letter: Letter) {
        let from = Self.id(letter.from)
        happens(letter.to) { log, now, effects in
            switch letter.message {
            case .push(let records):
                log.recordsReceived(records, from: from, now: now, effects: &effects)
            case .confirm(let positions, let members):
                log.confirmationReceived(
                    positions, members: members, by: from, now: now, effects: &effects)
            case .tell(let positions):
                log.appliedPositionsReceived(positions, from: from, now: now, effects: &effects)
            case .answer(let response):
                log.repairResponseReceived(response, from: from, now: now, effects: &effects)
            case .ask, .question: break
            }
        }
        switch letter.message {
        case .ask(let ranges):
            let response = hosts[letter.to].log.repairResponse(to: ranges, of: from, bytesMax: 500)
            letters.append(Letter(from: letter.to, to: letter.from, message: .answer(response)))
        case .question(let unsent, let names):
            happens(letter.to) { log, now, effects in
                log.recordsReceived(unsent.records, from: from, now: now, effects: &effects)
                log.appliedPositionsReceived(
                    unsent.positions, from: from, now: now, effects: &effects)
            }
            serve(letter, names)
        default: break
        }
    }

    /// Checks that a node that does not report a lag has applied all that the requester had.
    private mutating func serve(_ letter: Letter, _ names: Set<RecordID>) {
        let host = hosts[letter.to]
        guard !host.log.lags(behind: Self.id(letter.from)) else {
            answered.behind += 1
            return
        }
        answered.served += 1
        let floors = host.floors.flatMap(\.positions) + host.disk.compactMap(\.floor)
        for name in names where host.applied[name] == nil && !host.kept.contains(name) {
            let isBelow = (floors + host.retired).contains {
                $0.process == name.stream && $0.count >= name.number
            }
            #expect(isBelow, "answered without \(name), which the asker had applied")
        }
    }

    /// Delivers everything and lets time pass until nothing is left to do.
    mutating func calm() {
        weather = .fair
        for one in hosts.indices {
            for other in 0..<one { connect(one, other) }
        }
        settle()
    }

    /// The same without new connections.
    mutating func settle() {
        for _ in 0..<40 {
            while !letters.isEmpty || hosts.contains(where: { $0.batch != nil }) {
                deliver()
                for index in hosts.indices { sync(index) }
            }
            tick(.milliseconds(250))
        }
    }
}
