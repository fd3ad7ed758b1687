import Cluster
import Ground
import Logging
import Serving
import Store
import Synchronization
import Tiers

/// What the files of a journal hold.
struct JournalContents: Sendable {
    /// Under which id the node took part in majorities.
    var memberID: NodeID
    var log = PersistedLog()
    /// Nil if nothing of it is to be used.
    var recovered: JournalRecovery.Summary?
    /// Something may be missing that this member has promised to have, or that was invalidated.
    var isLost = false
    var lossReason = ""
    /// What was invalidated.
    private(set) var marks: RecoveredMarks

    /// Reads the journal of a directory that the start in `epoch` has taken.
    ///
    /// `key` hashes marks if the journal has none; of what was invalidated that is kept which
    /// `wanted` gives.
    init(
        _ files: JournalFiles, own: NodeID, epoch: UInt64, key: MarkHashKey,
        wanted: ([InvalidationMark]) -> [InvalidationMark]
    ) {
        memberID = own
        marks = RecoveredMarks(table: MarkTable(key: key))
        do {
            let bytes = try files.readMember(count: JournalIdentity.bytesCount)
            let known =
                try bytes.map { bytes throws(JournalDamage.Reason) in
                    try JournalIdentity(bytes.span)
                } ?? JournalIdentity(node: own, begun: 0)
            memberID = known.node
            let found = try read(files, key: key, wanted)
            recovered = found
            marks.lastVersion = found.latestVersion
            if found.isOldFormat { marks.incompleteReason = "an earlier version has kept what was" }
            if let damage = found.damage.first {
                markLost("journal-\(damage.file): \(damage)")
            } else if let loss = known.loss(of: found.epoch, at: epoch) {
                markLost("\(loss)")
            }
        } catch let reason as JournalDamage.Reason {
            markLost("member: \(reason)")
        } catch {
            markLost("\(error)")
        }
    }

    private mutating func read(
        _ files: JournalFiles, key: MarkHashKey,
        _ wanted: ([InvalidationMark]) -> [InvalidationMark]
    ) throws(DiskFile.Failure) -> JournalRecovery.Summary {
        var recovery = JournalRecovery(node: memberID, files: try files.numbers())
        var isFirst = true
        while let number = recovery.nextFile {
            do throws(DiskFile.Failure) {
                let bytes = try files.read(number)
                recovery.read(bytes.span)
            } catch {
                recovery.readFailed()
            }
            // The file that went on comes first, and has the key of all marks.
            if isFirst, let pieces = recovery.marks {
                isFirst = false
                if let table = MarkTable(encodedChunks: pieces, key: key) {
                    marks.table = table
                } else {
                    marks.incompleteReason = "marks in journal-\(number) make no sense"
                }
            }
            let found = recovery.takePurges().flatMap { purge, version in
                purge.targets.map {
                    InvalidationMark($0, isSoft: purge.mode == .soft, version: version)
                }
            }
            for mark in wanted(found) { marks.table.apply(mark) }
            log.records += recovery.takeRecords()
        }
        let found = recovery.finish()
        log.floors = found.floors
        log.retired = found.retired
        return found
    }

    private mutating func markLost(_ why: String) {
        self.lossReason = why
        isLost = true
        marks.incompleteReason = why
        log = PersistedLog()
        recovered = nil
    }
}

/// Reads the journal when the disk tier takes up its directory, and has what was found until the
/// node takes up its log.
final class JournalReader: Sendable {
    private let state = Mutex<(findings: JournalContents?, isOver: Bool)>((nil, false))
    private let key: MarkHashKey

    /// `key` hashes the marks of a directory that has none.
    init(key: MarkHashKey) { self.key = key }

    func read(
        _ volume: any DiskVolume, _ identity: NodeIdentity,
        _ wanted: ([InvalidationMark]) -> [InvalidationMark]
    ) -> RecoveredMarks {
        let found = JournalContents(
            JournalFiles(volume, space: .none), own: identity.nodeID, epoch: identity.bootEpoch,
            key: key,
            wanted: wanted)
        // What is found in a later directory is another member's but for its marks.
        state.withLock { if !$0.isOver { $0.findings = found } }
        return found.marks
    }

    /// What was found last; nothing is kept from then on.
    func take() -> JournalContents? {
        state.withLock { state in
            defer { state = (nil, true) }
            return state.findings
        }
    }
}

/// What a node takes up of its invalidation log when it starts.
struct InvalidationStartState {
    /// Under which id the node takes part in majorities.
    var memberID: NodeID
    var start: InvalidationReplication.InitialState
    var journal: JournalStore

    /// Takes what was found when the disk tier took up its directory; a log that is damaged or lost
    /// makes the node another member, which has promised nothing.
    ///
    /// `isAlone`: it will be in no cluster; `name` is what the operator calls it.
    init(
        of node: NodeCore, _ settings: InvalidationReplication.Settings, isAlone: Bool,
        name: String?
    ) {
        var random = SystemRandomNumberGenerator()
        let process = ProcessID(using: &random)
        let newcomer = NodeID(named: name, in: node.disk?.volume?.path, using: &random)
        guard let disk = node.disk, let view = disk.view, let volume = disk.volume,
            let found = node.journalReader.take()
        else {
            memberID = newcomer
            start = InvalidationReplication.InitialState(
                node: newcomer, process: process, firstRound: random.next())
            start.settings = settings
            start.mayBootstrap = true
            journal = JournalStore(
                nil, nil, epoch: 0, disk: node.disk, logger: node.logger)
            return
        }
        memberID = found.isLost ? newcomer : found.memberID
        start = InvalidationReplication.InitialState(
            node: memberID, process: process, firstRound: random.next())
        start.settings = settings
        let bytesMax = disk.settings.journalSpace.bytesMax
        start.settings.log.bytesMax = min(settings.log.bytesMax, bytesMax / 3)
        start.settings.log.unsyncedBytesMax = min(settings.log.unsyncedBytesMax, bytesMax / 8)
        start.settings.log.localBytesMax = min(settings.log.localBytesMax, bytesMax / 16)
        start.persistedLog = found.log
        start.persistentState = found.recovered?.persistentState
        start.mayBootstrap = isAlone || !found.isLost
        let files = JournalFiles(volume, space: disk.settings.journalSpace)
        if found.isLost {
            node.logger.warning(
                "the record of invalidations is begun anew: every entry is revalidated once",
                metadata: ["why": "\(found.lossReason)", "member": "\(memberID)"])
            do throws(DiskFile.Failure) {
                // Until its journal is begun, what was lost stays lost.
                try files.writeMember(
                    JournalIdentity(node: memberID, begun: view.identity.bootEpoch).bytes)
                for number in try files.numbers() { files.delete(number) }
            } catch {
                node.logger.error(
                    "the record of invalidations cannot be begun", metadata: ["why": "\(error)"])
            }
        }
        let epoch = view.identity.bootEpoch
        journal = JournalStore(
            Journal(
                node: memberID, epoch: epoch, settings: .init(disk.settings.journalSpace),
                recovered: found.recovered, released: InvalidationVersion(epoch: epoch, count: 0)),
            files, epoch: epoch, disk: disk, logger: node.logger)
        // The next start can tell by it that nothing is missing.
        _ = journal.writeNow([])
    }
}
