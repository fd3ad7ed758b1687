import Cluster
import Ground
import Logging
import Store
import Tiers

/// What a node takes up of its invalidation log when it starts.
struct InvalidationStart {
    /// Under which id the node takes part in majorities.
    var member: NodeID
    var start: InvalidationExchange.Start
    var journal: JournalKeeper

    /// Takes what was found when the disk tier took up its directory; a log that is damaged or lost
    /// makes the node another member, which has promised nothing.
    ///
    /// `isAlone`: it will be in no cluster; `name` is what the operator calls it.
    init(
        of node: NodeCore, _ settings: InvalidationExchange.Settings, isAlone: Bool, name: String?
    ) {
        var random = SystemRandomNumberGenerator()
        let process = ProcessID(using: &random)
        let newcomer = NodeID(named: name, in: node.disk?.volume?.path, using: &random)
        guard let disk = node.disk, let view = disk.view, let volume = disk.volume,
            let found = node.journalReader.take()
        else {
            member = newcomer
            start = InvalidationExchange.Start(
                node: newcomer, process: process, firstRound: random.next())
            start.settings = settings
            start.mayOpen = true
            journal = JournalKeeper(
                nil, nil, epoch: 0, disk: node.disk, logger: node.logger)
            return
        }
        member = found.isLost ? newcomer : found.member
        start = InvalidationExchange.Start(
            node: member, process: process, firstRound: random.next())
        start.settings = settings
        let bytesMax = disk.settings.journal.bytesMax
        start.settings.log.bytesMax = min(settings.log.bytesMax, bytesMax / 3)
        start.settings.log.unsyncedBytesMax = min(settings.log.unsyncedBytesMax, bytesMax / 8)
        start.settings.log.localBytesMax = min(settings.log.localBytesMax, bytesMax / 16)
        start.kept = found.kept
        start.memory = found.recovered?.memory
        start.mayOpen = isAlone || !found.isLost
        let files = JournalFiles(volume, room: disk.settings.journal)
        if found.isLost {
            node.logger.warning(
                "the record of invalidations is begun anew: every entry is revalidated once",
                metadata: ["why": "\(found.why)", "member": "\(member)"])
            do throws(DiskFile.Failure) {
                // Until its journal is begun, what was lost stays lost.
                try files.setMember(
                    JournalMember(node: member, begun: view.identity.bootEpoch).bytes)
                for number in try files.numbers() { files.delete(number) }
            } catch {
                node.logger.error(
                    "the record of invalidations cannot be begun", metadata: ["why": "\(error)"])
            }
        }
        let epoch = view.identity.bootEpoch
        journal = JournalKeeper(
            Journal(
                node: member, epoch: epoch, settings: .init(disk.settings.journal),
                recovered: found.recovered, released: Stamp(epoch: epoch, count: 0)),
            files, epoch: epoch, disk: disk, logger: node.logger)
        // The next start can tell by it that nothing is missing.
        _ = journal.put([])
    }
}
