import Cluster
import Ground
import Logging
import NIOPosix
import Store
import Synchronization
import Tiers

/// The store of the invalidation log on disk: one thread performs the file operations of
/// `Cluster.Journal`.
///
/// Without a disk nothing is stored, as then the cache is not persistent either.
final class JournalStore: Sendable {
    private let disk: DiskStore?
    private let logger: Logger
    private let thread = NIOThreadPool(numberOfThreads: 1)
    private let state: Mutex<State>
    /// The boot epoch of the directory last seen.
    private let knownEpoch: Atomic<UInt64>
    /// The storage of ``failureCount``.
    private let writeFailureCount = Atomic<Int>(0)

    /// The state under the lock.
    private struct State: ~Copyable {
        /// The journal; `nil` without a directory.
        var journal: Journal?
        var files: JournalFiles?
        var dice: SplitMix64
        /// True since a failed write until the next one that succeeds.
        var hasFailed = false
        /// The boot epoch of the directory with the files; 0 for none.
        var epoch: UInt64
        /// True once the directory records that it should hold this journal.
        var isIdentityWritten = false
        /// True if the files belong to the member that the next start becomes, so that this
        /// member's own consensus state is not written.
        var belongsToNextMember = false
    }

    /// Creates a store for the journal that a start has found; takes ownership of `files`.
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

    /// Begins a new journal, on the store's thread, if the disk tier has opened another directory;
    /// called periodically.
    func checkDiskDirectory() {
        guard let epoch = disk?.view?.identity.bootEpoch,
            knownEpoch.exchange(epoch, ordering: .relaxed) != epoch
        else { return }
        // A failure is tried again at the next call.
        thread.submit { [self] _ in
            if writeNow([]) == .synced { return }
            knownEpoch.store(0, ordering: .relaxed)
        }
    }

    /// The number of writes that have failed or found the disk full.
    var failureCount: Int { writeFailureCount.load(ordering: .relaxed) }

    /// Marks the journal as lost, on the store's thread, so that the next start becomes another
    /// member; does nothing without a journal.
    ///
    /// If the mark cannot be written, the journal's files are deleted. `done` is called afterwards,
    /// on the store's thread, or on another one if ``close()`` comes first.
    func abandon(done: @escaping @Sendable () -> Void = {}) {
        thread.submit { [self] _ in
            defer { done() }
            state.withLock { state in
                guard let journal = state.journal, let files = state.files else { return }
                do throws(DiskFile.Failure) {
                    try files.writeMember(JournalIdentity.abandoned(journal.node).bytes)
                    state.isIdentityWritten = true
                } catch {
                    logger.error(
                        "cannot discard the invalidation journal",
                        metadata: ["why": "\(error)"])
                    // Without its files the journal is lost as well.
                    for number in (try? files.numbers()) ?? [] { files.delete(number) }
                }
            }
        }
    }

    /// Completes the write in progress, drops the queued ones and stops the thread; whoever waits
    /// for marks to be journaled is told that this has failed.
    func close() async {
        try? await thread.shutdownGracefully()
        disk?.marks.journalFailed()
    }

    /// Writes and syncs a batch on the store's thread.
    ///
    /// - Parameters:
    ///   - writes: the batch.
    ///   - done: called with the outcome on the store's thread; never if ``close()`` drops the
    ///     batch.
    func write(_ writes: [LogWrite], done: @escaping @Sendable (ReplicationEvent) -> Void) {
        thread.submit { [self] work in if work == .active { done(writeNow(writes)) } }
    }

    /// Writes and syncs a batch on the calling thread.
    ///
    /// - Returns: `synced`, also if there is no disk to write to; `writeFailed`; or `diskFull` with
    ///   the positions whose records are to be dropped.
    func writeNow(_ writes: [LogWrite]) -> ReplicationEvent {
        let outcome = state.withLock { state -> ReplicationEvent in
            do throws(DiskFile.Failure) {
                return try writeOrThrow(writes, &state)
            } catch {
                // The write is tried again every second; one line is enough until it succeeds.
                if !state.hasFailed {
                    logger.error(
                        "cannot write invalidations to disk; they stay unconfirmed until written",
                        metadata: ["why": "\(error)"])
                }
                state.hasFailed = true
                return .writeFailed
            }
        }
        if outcome == .writeFailed { disk?.marks.journalFailed() }
        if outcome != .synced { writeFailureCount.add(1, ordering: .relaxed) }
        return outcome
    }

    /// Writes and syncs a batch, after beginning a journal in a new directory if there is one.
    ///
    /// - Returns: `synced` or `diskFull`, as ``writeNow(_:)`` does.
    /// - Throws: the failure of a file operation; the batch must be written again.
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
                let member = JournalIdentity(node: journal.node, beganInEpoch: state.epoch)
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

    /// Begins a journal in a new directory, which lacks the promises of this process, so that the
    /// next start becomes another member.
    private func begin(
        in volume: any DiskVolume, of disk: DiskStore, epoch: UInt64, _ state: inout State
    ) throws(DiskFile.Failure) {
        let settings = disk.settings
        let member = NodeID(named: settings.nodeName, in: volume.path, using: &state.dice)
        let files = JournalFiles(volume, space: settings.journalSpace)
        // Until the journal is begun, the lost one must still be found as lost.
        try files.writeMember(JournalIdentity(node: member, beganInEpoch: epoch).bytes)
        for number in try files.numbers() { files.delete(number) }
        state.journal = Journal(
            node: member, epoch: epoch, settings: .init(settings.journalSpace),
            released: disk.marks.version)
        state.files = files
        state.epoch = epoch
        state.isIdentityWritten = true
        state.belongsToNextMember = true
    }

    /// Performs a file operation.
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
    /// Creates the settings from the space reserved for the journal.
    init(_ room: JournalSpace) {
        self.init(fileBytesMax: room.fileBytes, bytesMax: room.bytesMax)
    }
}

extension LogWrite {
    /// True for the member's own consensus state.
    fileprivate var isMemory: Bool {
        if case .metadata(.consensusState) = self { true } else { false }
    }
}
