import Ground
import Store
import Tiers

/// A random sequence of operations on a log.
struct LogScript {
    enum Step {
        case store(Answer)
        /// Stores a response whose request began at the last ``begin``.
        case storeLate(Answer)
        case begin
        case delete([Int])
        case touch(Int, count: UInt32)
        case checkpoint
        case sweep
        case close
        case restart
    }

    /// The number and sizes of the operations.
    struct Size {
        var steps: Int
        var names: Int
        /// The usual maximum of a body's size; a few are larger, up to ``bytesMax``.
        var bytesUsual: Int
        var bytesMax: Int
        var restarts = false
    }

    let size: Size
    let steps: [Step]

    init(_ size: Size, using dice: inout SplitMix64) {
        self.size = size
        steps = (0..<size.steps).map { Self.step($0, size, &dice) }
    }

    private static func step(_ number: Int, _ size: Size, _ dice: inout SplitMix64) -> Step {
        let name = Int.random(in: 0..<size.names, using: &dice)
        switch Int.random(in: 0..<200, using: &dice) {
        case 0..<10: return .begin
        case 10..<20: return .storeLate(answer(name, number, size, &dice))
        case 20..<40:
            let more = Int.random(in: 0..<3, using: &dice)
            return .delete([name] + (0..<more).map { (name + $0 * 7) % size.names })
        case 40..<90:
            return .touch(name, count: UInt32.random(in: 1...3, using: &dice))
        case 90..<94: return .checkpoint
        case 94..<96: return .sweep
        case 96..<97: return .close
        case 97..<100 where size.restarts: return .restart
        default: return .store(answer(name, number, size, &dice))
        }
    }

    private static func answer(
        _ name: Int, _ version: Int, _ size: Size, _ dice: inout SplitMix64
    ) -> Answer {
        let isLarge = Int.random(in: 0..<20, using: &dice) == 0
        let most = isLarge ? size.bytesMax : size.bytesUsual
        return Answer(
            name, version: version, bytes: Int.random(in: 0...most, using: &dice),
            isLaidOut: Bool.random(using: &dice))
    }
}

/// Plays a script on a rig and records what may be found.
struct LogPlay {
    private(set) var rig: LogRig
    let names: Int
    /// The responses stored since the last acknowledged delete, any of which a start may find.
    private(set) var possible: [Int: [Answer]] = [:]
    /// The response that this process must find, if it finds one.
    private(set) var current: [Int: Answer] = [:]
    private(set) var wrongs: [String] = []
    /// A request in progress in this process.
    private var began: VersionPin?
    /// The version of the latest delete of each name, acknowledged or not.
    private var deleted: [Int: InvalidationVersion] = [:]

    init(_ rig: LogRig, names: Int) {
        self.rig = rig
        self.names = names
    }

    /// A copy of a play on another rig.
    init(_ other: LogPlay, on rig: LogRig) {
        self = other
        self.rig = rig
        began = nil
    }

    /// Performs a step and checks its outcome.
    mutating func perform(_ step: LogScript.Step) throws {
        rig.now += 100
        let log = try rig.log()
        switch step {
        case .store(let response): try store(response, version: log.view.version)
        case .storeLate(let response):
            try store(response, version: began?.version ?? log.view.version)
        case .begin: began = log.marks.pin()
        case .delete(let names): try delete(names)
        case .touch(let name, let count): try rig.touch(name, count: count)
        case .checkpoint: try log.checkpoint()
        case .sweep: log.expireIdleEntries(atMost: 100, now: rig.now)
        case .close: try log.close()
        case .restart:
            let before = try found()
            try rig.restart()
            began = try rig.log().marks.pin()
            let after = try found()
            expect(before == after, "a restart found \(after.count) of \(before.count)")
            expect(rig.warnings.isEmpty, "\(rig.warnings)")
        }
    }

    private mutating func store(_ response: Answer, version: InvalidationVersion) throws {
        let isDead = deleted[response.number].map { $0 > version } ?? false
        if !isDead { possible[response.number, default: []].append(response) }
        let kept = try rig.store(response, version: version)
        expect(kept == (isDead ? .purged : .written), "\(kept), though \(isDead ? "" : "not ")dead")
        if kept == .written { current[response.number] = response }
    }

    private mutating func delete(_ names: [Int]) throws {
        let before = try rig.log().view.version
        for name in names {
            current[name] = nil
            deleted[name] = InvalidationVersion(epoch: before.epoch, count: before.count + 1)
        }
        try rig.delete(names)
        for name in names { possible[name] = [] }
    }

    // MARK: Laws

    /// Every name that is found, by a disk thread and on an event loop, with its response.
    mutating func found() throws -> [Int: LogRig.Found] {
        var found: [Int: LogRig.Found] = [:]
        for name in 0..<names {
            found[name] = try rig.find(name)
            let atOnce = try rig.findAtOnce(name)
            expect(atOnce == found[name], "\(name) is another on the event loop")
        }
        // A deleted entry is in the index until it is read or its space is needed.
        let count = try rig.log().view.shards.count
        let isRight = (found.count...found.count + deleted.count).contains(count)
        expect(isRight, "\(found.count) of \(count) entries are found")
        return found
    }

    /// Checks that the process finds only the last stored response under each name.
    mutating func checkCurrent() throws {
        for (name, found) in try found() {
            let response = current[name]
            expect(
                found.body == response?.body && found.head == response?.head, "\(name) is not it")
        }
        checkCap()
    }

    /// Checks that after a kill or a power failure only responses since the last delete are found.
    mutating func checkPossible() throws {
        for name in 0..<names {
            let found = try rig.find(name)
            let atOnce = try rig.findAtOnce(name)
            guard let found else { continue }
            expect(atOnce == found, "\(name) is another on the event loop")
            let response = (possible[name] ?? []).first {
                $0.body == found.body && $0.head == found.head
            }
            expect(
                response != nil || found.isStale,
                "\(name) is found: \(String(decoding: found.head, as: UTF8.self))")
            current[name] = response
        }
        checkCap()
    }

    mutating func checkCap() {
        let peak = rig.volume.peakBytes
        expect(peak <= rig.capBytes, "\(peak) bytes of \(rig.capBytes)")
    }

    mutating func expect(_ holds: Bool, _ otherwise: String) {
        if !holds && wrongs.count < 10 { wrongs.append(otherwise) }
    }
}
