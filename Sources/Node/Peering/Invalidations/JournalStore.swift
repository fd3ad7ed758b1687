import Cluster
import Ground
import Logging
import NIOPosix
import Store
import Synchronization
import Tiers

/// Has the invalidation log on disk: one thread does what `Cluster.Journal` wants done with its
/// files.
///
/// Without a disk nothing is kept, which is as much as the cache itself keeps then.
final class JournalStore: Sendable {
    private let disk: DiskStore?
    private let logger: Logger
    private let thread = NIOThreadPool(numberOfThreads: 1)
    private let state: Mutex<State>
    private let knownEpoch: Atomic<UInt64>
    private let failureCounter = Atomic<Int>(0)

    private struct State: ~Copyable {
        /// Nil without a directory.
        var journal: Journal?
        var files: JournalFiles?
        var dice: SplitMix64
        var hasFailed = false
        /// That of the directory in which the files are; 0 for none.
        var epoch: UInt64
        /// The next start can tell that there should be a journal of this one.
        var isIdentityWritten = false
        /// The files are those of the member that the next start is: nothing of what this one
        /// remembers is for it.
        var belongsToNextMember = false
    }

    /// A keeper of what a start has found; `files` are handed over to it.
    init(
        _ journal: Journal?, _ files: sending JournalFiles?, epoch: UInt64, disk: DiskStore?,
        logger: Logger
    ) {
        self.disk = disk
        self.logger = logger
        var random = SystemRandomNumberGenerator()
        state = Mutex(
            State(
                journal: journal, files: files, dice: SplitMix64(seed: random.next()), epoch: epoch)
        )
        knownEpoch = Atomic(epoch)
        thread.start()
    }

    /// Looks whether the disk tier has another directory by now; to be called now and then.
    func checkDiskDirectory() {
        guard let epoch = disk?.view?.identity.bootEpoch,
            knownEpoch.exchange(epoch, ordering: .relaxed) != epoch
        else { return }
        // What fails is tried again the next time.
        thread.submit { [self] _ in
            if writeNow([]) == .synced { return }
            knownEpoch.store(0, ordering: .relaxed)
        }
    }

    /// How often something could not be written.
    var failureCount: Int { failureCounter.load(ordering: .relaxed) }

    /// What the journal has promised is not in it: the next start finds it lost.
    func abandon() {
        thread.submit { [self] _ in
            state.withLock { state in
                guard let journal = state.journal, let files = state.files else { return }
                do throws(DiskFile.Failure) {
                    try files.writeMember(JournalIdentity.abandoned(journal.node).bytes)
                    state.isIdentityWritten = true
                } catch {
                    logger.error(
                        "the record of invalidations cannot be given up",
                        metadata: ["why": "\(error)"])
                    // Without its files it is lost all the same.
                    for number in (try? files.numbers()) ?? [] { files.delete(number) }
                }
            }
        }
    }

    /// Does what was begun, and ends.
    func close() async {
        try? await thread.shutdownGracefully()
        disk?.marks.journalFailed()
    }

    /// Writes and syncs a batch; `done` is told what has become of it on the keeper's thread, but
    /// never when this was closed.
    func write(_ writes: [LogWrite], done: @escaping @Sendable (ReplicationEvent) -> Void) {
        thread.submit { [self] work in if work == .active { done(writeNow(writes)) } }
    }

    /// The same, at once.
    func writeNow(_ writes: [LogWrite]) -> ReplicationEvent {
        let outcome = state.withLock { state -> ReplicationEvent in
            do throws(DiskFile.Failure) {
                return try writeOrThrow(writes, &state)
            } catch {
                // It is tried again every second; one line is enough until it is well.
                if !state.hasFailed {
                    logger.error(
                        "invalidations are not on disk, and are not confirmed until they are",
                        metadata: ["why": "\(error)"])
                }
                state.hasFailed = true
                return .writeFailed
            }
        }
        if outcome == .writeFailed { disk?.marks.journalFailed() }
        if outcome != .synced { failureCounter.add(1, ordering: .relaxed) }
        return outcome
    }

    private func writeOrThrow(
        _ writes: [LogWrite], _ state: inout State
    ) throws(DiskFile.Failure) -> ReplicationEvent {
        guard let disk else { return .synced }
        if let view = disk.view, let volume = disk.volume,
            view.identity.bootEpoch != state.epoch
        {
            try begin(in: volume, of: disk, epoch: view.identity.bootEpoch, &state)
        }
        guard state.journal != nil, let files = state.files else { return .synced }
        let marks = disk.marks
        let writes = state.belongsToNextMember ? writes.filter { !$0.isMemory } : writes
        let effects = state.journal?.write(
            writes, marks: { marks.encodedChunks(after: $0, upTo: $1) }, using: &state.dice)
        guard let effects else { return .diskFull(state.journal?.surplusPositions ?? []) }
        do throws(DiskFile.Failure) {
            for effect in effects {
                try Self.perform(effect, files)
                if case .sync = effect { disk.counters.add(.journalSyncs) }
            }
            if !state.isIdentityWritten, let journal = state.journal {
                let member = JournalIdentity(node: journal.node, begun: state.epoch)
                try files.writeMember(member.bytes)
                state.isIdentityWritten = true
            }
        } catch {
            state.journal?.failed()
            throw error
        }
        state.journal?.synced()
        marks.journaled(upTo: state.journal?.latestVersion ?? .zero)
        if state.hasFailed {
            state.hasFailed = false
            logger.notice("invalidations are written to disk again")
        }
        return .synced
    }

    /// A directory has come in the place of the former: what this process has promised is not in
    /// it, so that the next start is another member.
    private func begin(
        in volume: any DiskVolume, of disk: DiskStore, epoch: UInt64, _ state: inout State
    ) throws(DiskFile.Failure) {
        let settings = disk.settings
        let member = NodeID(named: settings.nodeName, in: volume.path, using: &state.dice)
        let files = JournalFiles(volume, space: settings.journalSpace)
        // Until the journal is begun, what was lost stays lost.
        try files.writeMember(JournalIdentity(node: member, begun: epoch).bytes)
        for number in try files.numbers() { files.delete(number) }
        state.journal = Journal(
            node: member, epoch: epoch, settings: .init(settings.journalSpace),
            released: disk.marks.version)
        state.files = files
        state.epoch = epoch
        state.isIdentityWritten = true
        state.belongsToNextMember = true
    }

    private static func perform(
        _ effect: JournalEffect, _ files: JournalFiles
    ) throws(DiskFile.Failure) {
        switch effect {
        case .create(let number): try files.create(number)
        case .append(let number, let bytes): try files.append(bytes, to: number)
        case .sync(let number): try files.sync(number)
        case .delete(let number): files.delete(number)
        case .syncDirectory: try files.syncNames()
        }
    }
}

extension Journal.Settings {
    init(_ room: JournalSpace) {
        self.init(fileBytesMax: room.fileBytes, bytesMax: room.bytesMax)
    }
}

extension LogWrite {
    fileprivate var isMemory: Bool {
        if case .metadata(.consensusState) = self { true } else { false }
    }
}
