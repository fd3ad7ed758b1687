import Ground
import Store
import Testing
import Tiers
import Trials

/// A log whose entries are invalidated in all ways, with so many marks that some have to go, while
/// writes fail and processes and the power end.
private struct MarkWorld {
    let rig: LogRig
    var dice: Dice
    /// All answers that were ever stored under a name, with their stamps.
    private var history: [Int: [(answer: Answer, stamp: Stamp)]] = [:]
    /// Marks that are on the disk for certain.
    private var written: [DiskMark] = []
    /// Marks that were applied in this process and not yet written.
    private var unwritten: [DiskMark] = []
    /// Marks of former processes that may be on the disk.
    private var uncertain: [DiskMark] = []
    /// What is older than this may be held stale.
    private var foldedTo = Stamp.zero
    private var leases: [StampLease] = []
    private(set) var wrongs: [String] = []
    /// How often what has happened.
    private(set) var drops = 0, folds = 0, hits = 0, covered = 0, damages = 0

    private static let names = 24

    init(seed: UInt64) throws {
        dice = Dice(seed: seed)
        rig = try LogRig(segments: 6, seed: seed)
    }

    mutating func step() throws {
        rig.now += 100
        switch Int.random(in: 0..<100, using: &dice) {
        case 0..<35: try store(stamp: rig.log().view.stamp)
        case 35..<40: leases.append(try rig.log().marks.lease())
        case 40..<45:
            guard !leases.isEmpty else { return }
            try store(stamp: leases.removeFirst().stamp)
        case 45..<65: try invalidate()
        case 65..<94: try invalidateOthers()
        case 94..<97:
            rig.kill()
            try begin()
        default:
            // Some of the next operations fail, then the power does.
            let first = rig.volume.operations + Int.random(in: 0..<12, using: &dice)
            rig.volume.edit { $0.operations = first..<first + 3 }
            for _ in 0..<3 { try? invalidateOthers() }
            try? invalidate()
            rig.losePower()
            try begin()
        }
    }

    private mutating func begin() throws {
        leases = []
        uncertain += unwritten
        unwritten = []
        try rig.start()
        guard !rig.warnings.isEmpty else { return }
        damages += 1
        foldedTo = try rig.log().view.stamp
    }

    private mutating func store(stamp: Stamp) throws {
        let name = Int.random(in: 0..<Self.names, using: &dice)
        let version = (history[name]?.count ?? 0) + 1
        let bytes = Int.random(in: 0..<200_000, using: &dice)
        let answer = Answer(name, version: version, bytes: bytes)
        history[name, default: []].append((answer, stamp))
        try rig.store(answer, stamp: stamp)
    }

    private mutating func invalidate() throws {
        let name = Int.random(in: 0..<Self.names, using: &dice)
        let target: DiskMark.Target =
            switch Int.random(in: 0..<20, using: &dice) {
            case 0: .everything
            case 1: .host(Array("origin".utf8))
            case 2: .prefix(Array("origin/\(name)".utf8))
            case 3: .tag(Array("none".utf8))
            case 4..<10: .entry(Answer.name(name))
            default: .url(Array("origin/\(name)".utf8))
            }
        try apply([target], isSoft: Bool.random(using: &dice))
    }

    /// Marks that cover none of the entries.
    private mutating func invalidateOthers() throws {
        for _ in 0..<4 {
            let first = Int(dice.next() % 1 << 40)
            try apply(
                (0..<500).map { .url(Array("other/\(first + $0)".utf8)) }, isSoft: false)
        }
    }

    private mutating func apply(_ targets: [DiskMark.Target], isSoft: Bool) throws {
        let marks = try rig.log().marks
        let stamp = marks.apply(targets, isSoft: isSoft, now: .zero)
        let applied = targets.count > 1 ? [] : [DiskMark(targets[0], isSoft: isSoft, stamp: stamp)]
        unwritten += applied
        let before = marks.count
        defer {
            if marks.takeFolded() > 0 {
                folds += 1
                foldedTo = stamp
            } else if marks.count < before {
                drops += 1
            }
        }
        try rig.log().writeMarks()
        written += unwritten
        unwritten = []
    }

    // MARK: Laws

    mutating func check() throws {
        let marks = try rig.log().marks
        for name in 0..<Self.names {
            guard let found = try rig.find(name) else { continue }
            guard
                let (_, stamp) = history[name]?.first(where: { $0.answer.head == found.head })
            else {
                wrongs.append("\(name) was never stored")
                continue
            }
            let effects = { (marks: [DiskMark]) in
                marks.compactMap {
                    $0.effect(
                        on: Answer.name(name), key: Answer.key(name), tags: [], stamp: stamp)
                }
            }
            let isCovered = !effects(written + unwritten).isEmpty
            let mayBeCovered = isCovered || !effects(uncertain).isEmpty
            if isCovered, !found.isStale { wrongs.append("\(name) of \(stamp) is served") }
            if !mayBeCovered, found.isStale, stamp >= foldedTo {
                wrongs.append("\(name) of \(stamp) is stale, folded to \(foldedTo)")
            }
            hits += found.isStale ? 0 : 1
            covered += isCovered ? 1 : 0
        }
        let most = (rig.plan.marksFileBytes - MarksHeader.bytesCount) / MarkWriter.markBytes
        if marks.count > most { wrongs.append("\(marks.count) marks of \(most)") }
        for file in ["marks-0", "marks-1"]
        where rig.volume.bytes(of: file).count > rig.plan.marksFileBytes {
            wrongs.append("\(file) is too large")
        }
        if rig.volume.peakBytes > rig.capBytes { wrongs.append("more than the limit") }
    }
}

@Suite("Worlds of marks and entries", .disabled(if: Trials.areFew))
struct MarkWorldTests {
    @Test(
        "nothing that is covered is served, nothing else is stale, whatever is dropped and fails",
        arguments: Trials.seeds(1...3, long: 100))
    func disk(seed: UInt64) throws {
        var world = try MarkWorld(seed: 900 + seed)
        for number in 0..<400 {
            try world.step()
            if number % 5 == 0 { try world.check() }
            try #require(world.wrongs == [], "seed \(seed), step \(number)")
        }
        #expect(world.hits > 100 && world.covered > 20)
        #expect(world.folds + world.drops > 2, "\(world.folds), \(world.drops)")
    }

    @Test("of a node without a disk the same holds", arguments: Trials.seeds(1...4, long: 200))
    func memory(seed: UInt64) throws {
        var dice = Dice(seed: 300 + seed)
        let marksMax = 64
        let book = MarkBook(
            isForDisk: false, key: MarkKey(first: seed, second: 1), marksMax: marksMax)
        let entries = Entries(limitBytes: 8 << 20, marks: book)
        // Seeds differ in how fast entries are asked for again, so that some worlds drop and some
        // fold.
        let names = seed % 2 == 0 ? 6 : 60
        var marks: [DiskMark] = []
        var leases: [StampLease] = []
        var foldedTo = Stamp.zero
        var (hits, covered, folds, drops) = (0, 0, 0, 0)
        for number in 0..<6_000 {
            let name = Int.random(in: 0..<names, using: &dice)
            switch Int.random(in: 0..<20, using: &dice) {
            case 0..<8: entries.put("\(name)", bytes: 10, tags: name % 3 == 0 ? [[7]] : [])
            case 8 where leases.count < 3: leases.append(book.lease())
            case 9:
                guard !leases.isEmpty else { continue }
                let lease = leases.removeFirst()
                entries.put("\(name)", bytes: 10, stamp: lease.stamp)
            case 10..<17:
                let target: DiskMark.Target =
                    switch Int.random(in: 0..<60, using: &dice) {
                    case 0: .everything
                    case 1: .prefix(Array("origin/\(name)".utf8))
                    case 2: .tag([7])
                    case 3..<6: .url(Array("origin/\(name)".utf8))
                    default: .url(Array("other/\(number)".utf8))
                    }
                let isSoft = Bool.random(using: &dice)
                let stamp = book.apply([target], isSoft: isSoft, now: .zero)
                marks.append(DiskMark(target, isSoft: isSoft, stamp: stamp))
                if case .url(let url) = target {
                    for key in URLName.keys(of: url) { entries.store.settle(key) }
                }
            default:
                let before = book.count
                book.ticked()
                drops += book.count < before ? 1 : 0
            }
            if book.takeFolded() > 0 {
                folds += 1
                foldedTo = book.stamp
            }
            try #require(book.count <= marksMax)
            guard number % 7 == 0 else { continue }
            for name in 0..<names {
                guard let found = entries.find("\(name)") else { continue }
                let isStale = found.facts.freshUntil != .distantFuture
                let isCovered = marks.contains {
                    $0.effect(
                        on: nil, key: found.key, tags: found.tags, stamp: found.stamp) != nil
                }
                try #require(!isCovered || isStale, "step \(number): \(name) is served")
                try #require(
                    isCovered || !isStale || found.stamp < foldedTo,
                    "step \(number): \(name) is stale")
                hits += isStale ? 0 : 1
                covered += isCovered ? 1 : 0
            }
        }
        #expect(hits > 500 && covered > 10 && folds + drops > 5)
        #expect(seed % 2 == 0 ? drops > 5 : folds > 5, "\(drops), \(folds)")
    }
}
