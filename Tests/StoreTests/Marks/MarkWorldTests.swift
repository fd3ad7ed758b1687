import Ground
import Store
import Testing
import Tiers
import Trials

/// A log under all kinds of invalidations, with so many marks that some are dropped or folded,
/// kills and power failures; the journal is always synced.
private struct MarkWorld {
    let rig: LogRig
    var dice: SplitMix64
    /// All responses ever stored under a name, with their versions.
    private var history: [Int: [(response: Answer, version: InvalidationVersion)]] = [:]
    /// Marks that cover an entry.
    private var marks: [InvalidationMark] = []
    /// Entries older than this may count as stale.
    private var foldedTo = InvalidationVersion.zero
    private var leases: [VersionPin] = []
    private(set) var wrongs: [String] = []
    /// Counts of events.
    private(set) var drops = 0, folds = 0, hits = 0, covered = 0, damages = 0

    private static let names = 24

    init(seed: UInt64) throws {
        dice = SplitMix64(seed: seed)
        rig = try LogRig(segments: 6, seed: seed)
        rig.marksMax = Self.marksMax
    }

    private static let marksMax = 6_000

    mutating func step() throws {
        rig.now += 100
        switch Int.random(in: 0..<100, using: &dice) {
        case 0..<35: try store(version: rig.log().view.version)
        case 35..<40: leases.append(try rig.log().marks.pin())
        case 40..<45:
            guard !leases.isEmpty else { return }
            try store(version: leases.removeFirst().version)
        case 45..<65: try invalidate()
        case 65..<94: try invalidateOthers()
        case 94..<97:
            rig.kill()
            try begin()
        default:
            rig.losePower()
            try begin()
        }
    }

    private mutating func begin() throws {
        leases = []
        try rig.start()
        guard !rig.warnings.isEmpty else { return }
        damages += 1
        foldedTo = try rig.log().view.version
    }

    private mutating func store(version: InvalidationVersion) throws {
        let name = Int.random(in: 0..<Self.names, using: &dice)
        let number = (history[name]?.count ?? 0) + 1
        let bytes = Int.random(in: 0..<200_000, using: &dice)
        let response = Answer(name, version: number, bytes: bytes)
        history[name, default: []].append((response, version))
        try rig.store(response, version: version)
    }

    private mutating func invalidate() throws {
        let name = Int.random(in: 0..<Self.names, using: &dice)
        let target: PurgeTarget =
            switch Int.random(in: 0..<20, using: &dice) {
            case 0: .everything
            case 1: .prefix(host: Array("origin".utf8), path: [])
            case 2: .prefix(host: Array("origin".utf8), path: Array("/\(name)".utf8))
            case 3: .tag(Array("none".utf8))
            default: .url(Array("origin/\(name)".utf8))
            }
        try apply([target], isSoft: Bool.random(using: &dice))
    }

    /// Adds marks that cover no entry.
    private mutating func invalidateOthers() throws {
        for _ in 0..<4 {
            let first = Int(dice.next() % 1 << 40)
            let isURL = Bool.random(using: &dice)
            try apply(
                (0..<500).map {
                    let name = Array("other/\(first + $0)".utf8)
                    return isURL ? .url(name) : .tag(name)
                }, isSoft: false)
        }
    }

    private mutating func apply(_ targets: [PurgeTarget], isSoft: Bool) throws {
        let log = try rig.log()
        let applied = try rig.invalidate(targets, isSoft: isSoft)
        let version = log.marks.version
        if targets.count == 1 { marks += applied }
        if log.marks.takeFoldedCount() > 0 {
            folds += 1
            foldedTo = version
        }
        let before = log.marks.count
        log.marks.pruneMarks(
            leastVersionOnDisk: { log.leastVersion }, fingerprintsOnDisk: log.fingerprintsOnDisk)
        if log.marks.count < before { drops += 1 }
        // A journal keeps only marks that may cover an entry.
        if rig.journal.count > 4 * Self.marksMax {
            let least = min(log.marks.leastStoredVersion(), log.leastVersion)
            rig.journal.removeAll { $0.version <= least }
        }
    }

    // MARK: Laws

    mutating func check() throws {
        for name in 0..<Self.names {
            guard let found = try rig.find(name) else { continue }
            guard
                let (_, version) = history[name]?.first(where: { $0.response.head == found.head })
            else {
                wrongs.append("\(name) was never stored")
                continue
            }
            let isCovered = marks.contains {
                $0.effect(on: Answer.key(name), tags: [], version: version) != nil
            }
            if isCovered, !found.isStale { wrongs.append("\(name) of \(version) is served") }
            if !isCovered, found.isStale, version >= foldedTo {
                wrongs.append("\(name) of \(version) is stale, folded to \(foldedTo)")
            }
            hits += found.isStale ? 0 : 1
            covered += isCovered ? 1 : 0
        }
        let count = try rig.log().marks.count
        if count > Self.marksMax { wrongs.append("\(count) marks") }
        if rig.volume.peakBytes > rig.capBytes { wrongs.append("more than the limit") }
    }
}

@Suite("Marks and entries under random events", .disabled(if: Trials.isReduced))
struct MarkWorldTests {
    @Test(
        "Covered entries are not served and others are not stale, whatever is dropped and fails",
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

    @Test("Without a disk the same entries are covered", arguments: Trials.seeds(1...4, long: 200))
    func memory(seed: UInt64) throws {
        var dice = SplitMix64(seed: 300 + seed)
        let marksMax = 64
        let index = InvalidationIndex(
            key: MarkHashKey(first: seed, second: 1), marksMax: marksMax)
        let entries = Entries(limitBytes: 8 << 20, marks: index)
        // Seeds differ in how soon entries are requested again, so that some worlds drop marks and
        // some fold them.
        let names = seed % 2 == 0 ? 6 : 60
        var marks: [InvalidationMark] = []
        var leases: [VersionPin] = []
        var foldedTo = InvalidationVersion.zero
        var (hits, covered, folds, drops) = (0, 0, 0, 0)
        for number in 0..<6_000 {
            let name = Int.random(in: 0..<names, using: &dice)
            switch Int.random(in: 0..<20, using: &dice) {
            case 0..<8: entries.put("\(name)", bytes: 10, tags: name % 3 == 0 ? [[7]] : [])
            case 8 where leases.count < 3: leases.append(index.pin())
            case 9:
                guard !leases.isEmpty else { continue }
                let lease = leases.removeFirst()
                entries.put("\(name)", bytes: 10, version: lease.version)
            case 10..<17:
                let target: PurgeTarget =
                    switch Int.random(in: 0..<60, using: &dice) {
                    case 0: .everything
                    case 1: .prefix(host: Array("origin".utf8), path: Array("/\(name)".utf8))
                    case 2: .tag([7])
                    case 3..<6: .url(Array("origin/\(name)".utf8))
                    case 6..<20: .url(Array("other/\(number)".utf8))
                    default: .tag(Array("other/\(number)".utf8))
                    }
                let isSoft = Bool.random(using: &dice)
                let version = index.apply([target], isSoft: isSoft, now: .zero)
                marks.append(InvalidationMark(target, isSoft: isSoft, version: version))
                if case .url(let url) = target {
                    for key in URLName.keys(of: url) { entries.store.applyMarksForKey(key) }
                }
            default:
                let before = index.count
                index.pruneMarks(leastVersionOnDisk: { .last }, fingerprintsOnDisk: { _ in [] })
                drops += index.count < before ? 1 : 0
            }
            if index.takeFoldedCount() > 0 {
                folds += 1
                foldedTo = index.version
            }
            try #require(index.count <= marksMax)
            guard number % 7 == 0 else { continue }
            for name in 0..<names {
                guard let found = entries.find("\(name)") else { continue }
                let isStale = found.metadata.freshUntil != .distantFuture
                let isCovered = marks.contains {
                    $0.effect(on: found.key, tags: found.tags, version: found.version) != nil
                }
                try #require(!isCovered || isStale, "step \(number): \(name) is served")
                try #require(
                    isCovered || !isStale || found.version < foldedTo,
                    "step \(number): \(name) is stale")
                hits += isStale ? 0 : 1
                covered += isCovered ? 1 : 0
            }
        }
        #expect(hits > 500 && covered > 10 && folds + drops > 5)
        #expect(seed % 2 == 0 ? drops > 5 : folds > 5, "\(drops), \(folds)")
    }
}
