import Cluster
import Ground
import Serving
import Store
import Synchronization
import Tiers

/// What the files of a journal hold.
struct JournalFindings: Sendable {
    /// Under which id the node took part in majorities.
    var member: NodeID
    var kept = KeptLog()
    /// Nil if nothing of it is to be used.
    var recovered: JournalRecovery.Found?
    /// Something may be missing that this member has promised to have, or that was invalidated.
    var isLost = false
    var why = ""
    /// What was invalidated.
    private(set) var marks: RecoveredMarks

    /// Reads the journal of a directory that the start in `epoch` has taken.
    ///
    /// `key` hashes marks if the journal has none; of what was invalidated that is kept which
    /// `wanted` gives.
    init(
        _ files: JournalFiles, own: NodeID, epoch: UInt64, key: MarkKey,
        wanted: ([Mark]) -> [Mark]
    ) {
        member = own
        marks = RecoveredMarks(table: MarkTable(key: key))
        do {
            let bytes = try files.member(count: JournalMember.bytesCount)
            let known =
                try bytes.map { bytes throws(JournalDamage.Reason) in
                    try JournalMember(bytes.span)
                } ?? JournalMember(node: own, begun: 0)
            member = known.node
            let found = try read(files, key: key, wanted)
            recovered = found
            marks.reached = found.reached
            if found.isOfOldFormat { marks.doubt = "an earlier version has kept what was" }
            if let damage = found.damage.first {
                lose("journal-\(damage.file): \(damage)")
            } else if let loss = known.loss(of: found.epoch, at: epoch) {
                lose("\(loss)")
            }
        } catch let reason as JournalDamage.Reason {
            lose("member: \(reason)")
        } catch {
            lose("\(error)")
        }
    }

    private mutating func read(
        _ files: JournalFiles, key: MarkKey, _ wanted: ([Mark]) -> [Mark]
    ) throws(DiskFile.Failure) -> JournalRecovery.Found {
        var recovery = JournalRecovery(node: member, files: try files.numbers())
        var isFirst = true
        while let number = recovery.wanted {
            do throws(DiskFile.Failure) {
                let bytes = try files.read(number)
                recovery.read(bytes.span)
            } catch {
                recovery.failedToRead()
            }
            // The file that went on comes first, and has the key of all marks.
            if isFirst, let pieces = recovery.marks {
                isFirst = false
                if let table = MarkTable(pieces: pieces, key: key) {
                    marks.table = table
                } else {
                    marks.doubt = "marks in journal-\(number) make no sense"
                }
            }
            let found = recovery.takePurges().flatMap { purge, stamp in
                purge.targets.map { Mark($0, isSoft: purge.mode == .soft, stamp: stamp) }
            }
            for mark in wanted(found) { marks.table.apply(mark) }
            kept.records += recovery.takeRecords()
        }
        let found = recovery.finish()
        kept.floors = found.floors
        kept.retired = found.retired
        return found
    }

    private mutating func lose(_ why: String) {
        self.why = why
        isLost = true
        marks.doubt = why
        kept = KeptLog()
        recovered = nil
    }
}

/// Reads the journal when the disk tier takes up its directory, and has what was found until the
/// node takes up its log.
final class JournalReader: Sendable {
    private let state = Mutex<(findings: JournalFindings?, isOver: Bool)>((nil, false))
    private let key: MarkKey

    /// `key` hashes the marks of a directory that has none.
    init(key: MarkKey) { self.key = key }

    func read(
        _ volume: any DiskVolume, _ identity: NodeIdentity,
        _ wanted: ([Mark]) -> [Mark]
    ) -> RecoveredMarks {
        let found = JournalFindings(
            JournalFiles(volume, room: .none), own: identity.nodeID, epoch: identity.bootEpoch,
            key: key,
            wanted: wanted)
        // What is found in a later directory is another member's but for its marks.
        state.withLock { if !$0.isOver { $0.findings = found } }
        return found.marks
    }

    /// What was found last; nothing is kept from then on.
    func take() -> JournalFindings? {
        state.withLock { state in
            defer { state = (nil, true) }
            return state.findings
        }
    }
}
