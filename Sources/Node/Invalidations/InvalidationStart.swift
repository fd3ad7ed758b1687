import Cluster
import Ground
import Logging
import NIOPosix
import Store
import Tiers

/// What a node takes up of its invalidation log when it starts.
struct InvalidationStart {
    /// Under which id the node takes part in majorities.
    var member: NodeID
    var start: InvalidationExchange.Start
    var journal: JournalKeeper

    /// Reads what the disk has; a log that is damaged or lost makes the node another member, which
    /// has promised nothing, and every entry is held against its origin once.
    ///
    /// `isAlone`: it will be in no cluster; `name` is what the operator calls it.
    init(
        of node: NodeCore, _ settings: InvalidationExchange.Settings, isAlone: Bool, name: String?
    ) async {
        var random = SystemRandomNumberGenerator()
        let process = ProcessID(using: &random)
        let newcomer = NodeID(named: name, in: node.disk?.volume?.path, using: &random)
        guard let disk = node.disk, let view = disk.view, let volume = disk.volume else {
            member = newcomer
            start = InvalidationExchange.Start(
                node: newcomer, process: process, firstRound: random.next())
            start.settings = settings
            start.mayOpen = true
            journal = JournalKeeper(
                nil, nil, memory: nil, epoch: 0, disk: node.disk, logger: node.logger)
            return
        }
        let found = await JournalFindings.read(
            volume, own: view.identity.nodeID, epoch: view.identity.bootEpoch, on: disk.readers)
        member = found.isLost ? newcomer : found.member
        start = InvalidationExchange.Start(
            node: member, process: process, firstRound: random.next())
        start.settings = settings
        start.settings.log.bytesMax = min(
            settings.log.bytesMax, disk.settings.journal.bytesMax / 3)
        start.settings.log.unsyncedBytesMax = min(
            settings.log.unsyncedBytesMax, disk.settings.journal.bytesMax / 8)
        start.kept = found.kept
        start.memory = found.recovered?.memory
        start.mayOpen = isAlone || !found.isLost
        let files = JournalFiles(volume)
        var isMarked = true
        if found.isLost {
            node.logger.warning(
                found.isDamaged
                    ? "the record of invalidations is not whole: every entry is revalidated once"
                    : "the record of invalidations is begun anew",
                metadata: ["why": "\(found.why)", "member": "\(member)"])
            if found.isDamaged {
                node.markAllUnknown()
                isMarked = await withCheckedContinuation { done in
                    disk.writeMarks { done.resume(returning: $0 == nil) }
                }
            }
            do throws(DiskFile.Failure) {
                // What cannot be marked is found not to be whole by the next start, too.
                for number in try isMarked ? files.numbers() : [] { files.delete(number) }
                // Until its journal is begun, what was lost stays lost.
                try files.setMember(
                    JournalMember(node: member, begun: view.identity.bootEpoch).bytes)
            } catch {
                node.logger.error(
                    "the record of invalidations cannot be begun", metadata: ["why": "\(error)"])
            }
        }
        journal = JournalKeeper(
            Journal(
                node: member, epoch: view.identity.bootEpoch,
                settings: .init(
                    fileBytesMax: disk.settings.journal.fileBytes,
                    bytesMax: disk.settings.journal.bytesMax),
                recovered: found.recovered),
            files, memory: found.recovered?.memory, epoch: view.identity.bootEpoch, disk: disk,
            logger: node.logger)
        // The next start can tell by it that nothing is missing.
        if isMarked { _ = journal.put([]) }
    }
}

/// What the files of a journal hold.
private struct JournalFindings: Sendable {
    var member: NodeID
    var kept = KeptLog()
    /// Nil if nothing of it is to be used.
    var recovered: JournalRecovery.Found?
    /// Something may be missing that this member has promised to have.
    var isLost = false
    /// Something that was applied may be missing, too.
    ///
    /// Without any journal nothing is: marks are kept beside it, and others' records come again and
    /// are applied to all that is stored.
    var isDamaged = false
    var why = ""

    /// The same on a thread that may wait for the disk.
    static func read(
        _ volume: any DiskVolume, own: NodeID, epoch: UInt64, on threads: NIOThreadPool
    ) async -> JournalFindings {
        await withCheckedContinuation { done in
            threads.submit { _ in
                done.resume(
                    returning: JournalFindings(JournalFiles(volume), own: own, epoch: epoch))
            }
        }
    }

    /// `epoch` is that of this start.
    init(_ files: JournalFiles, own: NodeID, epoch: UInt64) {
        member = own
        do {
            let bytes = try files.member(count: JournalMember.bytesCount)
            let known =
                try bytes.map { bytes throws(JournalDamage.Reason) in
                    try JournalMember(bytes.span)
                } ?? JournalMember(node: own, begun: 0)
            member = known.node
            var recovery = JournalRecovery(node: member, files: try files.numbers())
            while let number = recovery.wanted {
                do throws(DiskFile.Failure) {
                    let bytes = try files.read(number)
                    recovery.read(bytes.span)
                } catch {
                    recovery.failedToRead()
                }
                kept.records += recovery.takeRecords()
            }
            let found = recovery.finish()
            kept.floors = found.floors
            kept.retired = found.retired
            recovered = found
            if let damage = found.damage.first {
                lose("journal-\(damage.file): \(damage)")
            } else if let loss = known.loss(of: found.epoch, at: epoch) {
                lose("\(loss)")
                isDamaged = loss != .noJournal
            }
        } catch let reason as JournalDamage.Reason {
            lose("member: \(reason)")
        } catch {
            lose("\(error)")
        }
    }

    private mutating func lose(_ why: String) {
        self.why = why
        isLost = true
        isDamaged = true
        kept = KeptLog()
        recovered = nil
    }
}
