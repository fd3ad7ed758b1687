import ArgumentParser
import Foundation
import Ground

/// The parent process: it starts writers, kills them, starts a verifier, and checks its findings.
///
/// **Laws** of the state after a kill:
/// - an entry is byte for byte one of the versions stored under its name;
/// - it was not deleted since, if the deletion was acknowledged;
/// - it is not older than the version found after an earlier kill;
/// - at most the records that were being written are damaged, and nothing must be revalidated;
/// - at no instant do the directory's blocks exceed the limit.
struct KillCampaign {
    private let directory: String
    private var dice: SplitMix64
    private var stored: [Int: Set<Int>] = [:]
    private var deleted: [Int: Int] = [:]
    private var found: [Int: Int] = [:]
    private(set) var runs = 0
    private var counts = Counts()
    private var peak = 0
    private var samples = 0

    /// The numbers of the report.
    private struct Counts {
        var killed = 0
        var closed = 0
        var stores = 0
        var deletes = 0
        var found = 0
        var scanned = 0
        var damaged = 0
        var reclaims = 0
        var cachedReads = 0
        var diskReads = 0
    }

    /// A torn record, and one of an earlier use of the file that begins where the next one would.
    private static let damagedMax = 2
    private static let killedAfterMost = Duration.seconds(5)
    private static let readAfterMost = Duration.seconds(60)

    init(directory: String, seed: UInt64) {
        self.directory = directory
        dice = SplitMix64(seed: seed)
    }

    var report: String {
        let share = Double(peak * 1_000 / KillConfiguration.limitBytes) / 10
        return """
            runs \(runs): \(counts.killed) killed, \(counts.closed) closed before that
            stores \(counts.stores), deletes acknowledged \(counts.deletes), \
            reclaims \(counts.reclaims)
            entries found after kills \(counts.found), segments scanned \(counts.scanned), \
            damaged records \(counts.damaged)
            reads at once \(counts.cachedReads), by a thread \(counts.diskReads)
            peak \(peak) of \(KillConfiguration.limitBytes) bytes (\(share) %), \(samples) samples
            """
    }

    /// Runs a writer that is killed after some lines or some time, and a verifier.
    mutating func kill(_ run: Int) throws(KillViolation) {
        runs = run + 1
        let isEarly = Int.random(in: 0..<4, using: &dice) == 0
        let lines = isEarly ? .max : Int.random(in: 1...1_200, using: &dice)
        let time =
            isEarly
            ? Duration.milliseconds(Int.random(in: 1...60, using: &dice)) : Self.killedAfterMost
        let writer = try spawn(["--child", "\(dice.next())"], run: run * 2)
        var reclaims = 0
        let wasKilled = try monitor(writer, lines: lines, time: time) { counts, line in
            if case .reclaimed(let count) = line { reclaims = count }
        }
        counts.reclaims += reclaims
        if wasKilled { counts.killed += 1 } else { counts.closed += 1 }
        let reader = try spawn(["--verify"], run: run * 2 + 1)
        let hadToBeKilled = try monitor(reader, lines: .max, time: Self.readAfterMost) {
            counts, line in
            if case .found = line { counts.found += 1 }
        }
        if hadToBeKilled { throw KillViolation("what is left could not be read in time") }
    }

    private func spawn(_ arguments: [String], run: Int) throws(KillViolation) -> KillChild {
        try KillChild(["kill", directory, "--number", "\(run)"] + arguments)
    }

    /// Handles a child's lines until it is to be killed, including those it had written by then;
    /// returns false if it ended earlier.
    private mutating func monitor(
        _ child: KillChild, lines most: Int, time: Duration,
        _ note: (inout Counts, KillMessage) -> Void
    ) throws(KillViolation) -> Bool {
        let end = ContinuousClock.now + time
        var lines = 0
        var isOver = false
        var isKilled = false
        var damaged = 0
        while let more = child.read() {
            for line in more {
                lines += 1
                if line == .closed { isOver = true }
                if case .damaged(let count) = line { damaged += count }
                note(&counts, line)
                try apply(line)
            }
            try sampleDiskUsage()
            guard !isKilled, !isOver, lines >= most || ContinuousClock.now >= end else { continue }
            child.kill()
            isKilled = true
        }
        guard damaged <= Self.damagedMax else {
            throw KillViolation("\(damaged) records are damaged")
        }
        let status = child.wait()
        guard isKilled || (isOver && status == 0) else {
            throw KillViolation("a child has ended by itself with status \(status)")
        }
        return isKilled
    }

    private mutating func apply(_ line: KillMessage) throws(KillViolation) {
        switch line {
        case .opened(_, let scanned): counts.scanned += scanned
        case .damaged(let count): counts.damaged += count
        case .stored(let name, let version):
            counts.stores += 1
            stored[name, default: []].insert(version)
        case .deleted(let name, let version):
            counts.deletes += 1
            deleted[name] = max(deleted[name] ?? 0, version)
        case .found(let name, let version): try check(name, version)
        case .read(let atOnce, let byThread):
            counts.cachedReads += atOnce
            counts.diskReads += byThread
        case .reclaimed, .closed: break
        case .violation(let what): throw KillViolation(what)
        }
    }

    private mutating func check(_ name: Int, _ version: Int) throws(KillViolation) {
        guard stored[name]?.contains(version) == true else {
            throw KillViolation("entry \(name) is \(version), which was never stored")
        }
        if let deleted = deleted[name], version <= deleted {
            throw KillViolation("entry \(name) is \(version), and was deleted at \(deleted)")
        }
        if let former = found[name], version < former {
            throw KillViolation("entry \(name) is \(version), and was \(former) before")
        }
        found[name] = version
    }

    private mutating func sampleDiskUsage() throws(KillViolation) {
        let bytes = Self.blockBytes(below: directory)
        peak = max(peak, bytes)
        samples += 1
        guard bytes <= KillConfiguration.limitBytes else {
            throw KillViolation("\(bytes) bytes of blocks are above the limit")
        }
    }

    /// Returns the bytes of blocks as du(1) counts them.
    private static func blockBytes(below path: String) -> Int {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { return 0 }
        let own = Int(status.st_blocks) * 512
        guard status.st_mode & S_IFMT == S_IFDIR else { return own }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return names.reduce(own) { $0 + blockBytes(below: "\(path)/\($1)") }
    }
}

/// Repeatedly kills a process that writes to a disk tier, and verifies the state that it left.
struct KillCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "kill",
        abstract: "Kills a writer of a disk tier repeatedly; fails if it leaves wrong data.",
        discussion: """
            The directory is kept from run to run, so that later runs recover what earlier ones \
            left. The exit status is 1 if anything was found that must not exist.
            """)

    @Argument(help: "A directory for the tier, missing or empty.")
    var directory: String

    @Option(help: "Number of times to kill the writer.")
    var runs = 200

    @Option(help: "Seed of all random choices; random if not given.")
    var seed: UInt64?

    @Option(help: .hidden)
    var child: UInt64?

    @Flag(help: .hidden)
    var verify = false

    @Option(help: .hidden)
    var number = 0

    func validate() throws {
        guard runs > 0 else { throw ValidationError("--runs: at least 1") }
    }

    func run() async throws {
        let world = KillConfiguration(directory: directory, run: number)
        if verify {
            await KillVerifier(world).run()
        } else if let child {
            await KillWriter(world, SplitMix64(seed: child)).run()
        } else {
            var random = SystemRandomNumberGenerator()
            try campaign(seed: seed ?? random.next())
        }
    }

    private func campaign(seed: UInt64) throws {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        guard names.isEmpty else { throw ValidationError("\(directory) is not empty") }
        var campaign = KillCampaign(directory: directory, seed: seed)
        print("seed \(seed), \(runs) runs in \(directory)")
        do throws(KillViolation) {
            for run in 0..<runs { try campaign.kill(run) }
        } catch {
            print(campaign.report)
            print("violation in run \(campaign.runs): \(error.message)")
            throw ExitCode(1)
        }
        print(campaign.report)
    }
}
