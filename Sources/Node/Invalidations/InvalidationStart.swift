import Cluster
import Ground
import Logging
import Store
import Tiers

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
