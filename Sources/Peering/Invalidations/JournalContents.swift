package import Cluster
package import Ground
package import Logging
import Serving
package import Store
import Synchronization
package import Tiers

/// The contents of a journal's files at the start of the node.
struct JournalContents: Sendable {
    /// The id of the member that the journal belongs to, or else the node's own.
    var memberID: NodeID
    /// The records of the log.
    var log = PersistedLog()
    /// The summary of the recovery; `nil` if nothing is to be used.
    var recovered: JournalRecovery.Summary?
    /// True if promises of this member or invalidations may be missing.
    var isLost = false
    /// The reason for the loss; empty if there is none.
    var lossReason = ""
    /// The marks of recorded invalidations.
    private(set) var marks: RecoveredMarks

    /// Reads the journal of a cache directory.
    ///
    /// - Parameters:
    ///   - files: the journal's files.
    ///   - own: the node's id if the journal does not name one.
    ///   - epoch: the boot epoch of this start.
    ///   - key: hashes the marks if the journal has none.
    ///   - wanted: returns those of the given marks that are to be kept.
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
                } ?? JournalIdentity(node: own, beganInEpoch: 0)
            memberID = known.node
            let found = try read(files, key: key, wanted)
            recovered = found
            marks.lastVersion = found.latestVersion
            if found.isOldFormat { marks.incompleteReason = "marks are from an earlier version" }
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

    /// Reads all files in order, applies those of their marks that are wanted, and keeps the
    /// records of the log.
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
            // The continued file comes first and has the hash key of all marks.
            if isFirst, let pieces = recovery.marks {
                isFirst = false
                if let table = MarkTable(encodedChunks: pieces, key: key) {
                    marks.table = table
                } else {
                    marks.incompleteReason = "marks in journal-\(number) are malformed"
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

    /// Records that the journal is lost, discards its log, and declares its marks incomplete.
    private mutating func markLost(_ why: String) {
        self.lossReason = why
        isLost = true
        marks.incompleteReason = why
        log = PersistedLog()
        recovered = nil
    }
}

/// The reader of the journal, which runs when the disk tier opens its directory and holds the
/// contents until the log takes them.
package final class JournalReader: Sendable {
    private let state = Mutex<(findings: JournalContents?, isOver: Bool)>((nil, false))
    private let key: MarkHashKey

    /// Creates a reader; `key` hashes the marks of a directory without any.
    package init(key: MarkHashKey) { self.key = key }

    /// Reads the journal in `volume`, holds its contents for ``take()``, and returns its marks.
    ///
    /// - Parameters:
    ///   - volume: the directory.
    ///   - identity: the directory's node id and boot epoch.
    ///   - wanted: returns those of the given marks that are to be kept.
    /// - Returns: the marks, declared incomplete if the journal is lost or damaged.
    package func read(
        _ volume: any DiskVolume, _ identity: NodeIdentity,
        _ wanted: ([InvalidationMark]) -> [InvalidationMark]
    ) -> RecoveredMarks {
        let found = JournalContents(
            JournalFiles(volume, space: .none), own: identity.nodeID, epoch: identity.bootEpoch,
            key: key,
            wanted: wanted)
        // Of a directory that is opened later, only the marks are used: the rest belongs to another
        // member.
        state.withLock { if !$0.isOver { $0.findings = found } }
        return found.marks
    }

    /// Returns the contents read last, once; `nil` if there are none.
    ///
    /// Contents read afterwards are not held.
    func take() -> JournalContents? {
        state.withLock { state in
            defer { state = (nil, true) }
            return state.findings
        }
    }
}

/// The state with which a node starts its invalidation log.
package struct InvalidationStartState {
    /// The id under which the node is a member from this start on.
    package var memberID: NodeID
    /// The initial state of the replication.
    var state: InvalidationReplication.InitialState
    /// The journal that receives the log's writes.
    var journal: JournalStore

    /// Takes the journal's contents from `reader` and prepares the journal for writing.
    ///
    /// Without a disk, or if the journal is damaged or lost, the node becomes another member, which
    /// has promised nothing; a lost journal's files are deleted.
    ///
    /// - Parameters:
    ///   - reader: the reader that holds the journal's contents.
    ///   - disk: the disk tier; `nil` without one.
    ///   - logger: the node's log.
    ///   - settings: the limits of the log and the fence.
    ///   - isAlone: true if the node is in no cluster.
    ///   - name: the operator's name of the node; `nil` for none.
    package init(
        from reader: JournalReader, _ disk: DiskStore?, logger: Logger,
        _ settings: InvalidationReplication.Settings, isAlone: Bool, name: String?
    ) {
        var random = SystemRandomNumberGenerator()
        let process = ProcessID(using: &random)
        let newcomer = NodeID(named: name, in: disk?.volume?.path, using: &random)
        guard let disk, let view = disk.view, let volume = disk.volume,
            let found = reader.take()
        else {
            memberID = newcomer
            state = InvalidationReplication.InitialState(
                node: newcomer, process: process, firstRound: random.next())
            state.settings = settings
            state.mayBootstrap = true
            journal = JournalStore(
                nil, nil, epoch: 0, disk: disk, logger: logger)
            return
        }
        memberID = found.isLost ? newcomer : found.memberID
        state = InvalidationReplication.InitialState(
            node: memberID, process: process, firstRound: random.next())
        state.settings = settings
        let bytesMax = disk.settings.journalSpace.bytesMax
        state.settings.log.bytesMax = min(settings.log.bytesMax, bytesMax / 3)
        state.settings.log.unsyncedBytesMax = min(settings.log.unsyncedBytesMax, bytesMax / 8)
        state.settings.log.localBytesMax = min(settings.log.localBytesMax, bytesMax / 16)
        state.persistedLog = found.log
        state.persistentState = found.recovered?.persistentState
        state.mayBootstrap = isAlone || !found.isLost
        let files = JournalFiles(volume, space: disk.settings.journalSpace)
        if found.isLost {
            logger.warning(
                "starting a new invalidation journal: every entry is revalidated once",
                metadata: ["why": "\(found.lossReason)", "member": "\(memberID)"])
            do throws(DiskFile.Failure) {
                // Until a new journal is begun, the lost one must still be found as lost.
                try files.writeMember(
                    JournalIdentity(node: memberID, beganInEpoch: view.identity.bootEpoch).bytes)
                for number in try files.numbers() { files.delete(number) }
            } catch {
                logger.error(
                    "cannot create the invalidation journal", metadata: ["why": "\(error)"])
            }
        }
        let epoch = view.identity.bootEpoch
        journal = JournalStore(
            Journal(
                node: memberID, epoch: epoch, settings: .init(disk.settings.journalSpace),
                recovered: found.recovered, released: InvalidationVersion(epoch: epoch, count: 0)),
            files, epoch: epoch, disk: disk, logger: logger)
        // This write lets the next start see that nothing is missing.
        _ = journal.writeNow([])
    }
}
