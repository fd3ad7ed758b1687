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
final class JournalKeeper: Sendable {
    private let disk: DiskTier?
    private let logger: Logger
    private let thread = NIOThreadPool(numberOfThreads: 1)
    private let state: Mutex<State>
    private let knownEpoch: Atomic<UInt64>
    private let failures = Atomic<Int>(0)

    private struct State: ~Copyable {
        /// Nil without a directory.
        var journal: Journal?
        var files: JournalFiles?
        var dice: Dice
        var hasFailed = false
        /// That of the directory in which the files are; 0 for none.
        var epoch: UInt64
        /// The next start can tell that there should be a journal of this one.
        var isBegun = false
        /// The files are those of the member that the next start is: nothing of what this one
        /// remembers is for it.
        var isOthers = false
    }

    /// A keeper of what a start has found; `files` are handed over to it.
    init(
        _ journal: Journal?, _ files: sending JournalFiles?, epoch: UInt64, disk: DiskTier?,
        logger: Logger
    ) {
        self.disk = disk
        self.logger = logger
        var random = SystemRandomNumberGenerator()
        state = Mutex(
            State(
                journal: journal, files: files, dice: Dice(seed: random.next()), epoch: epoch))
        knownEpoch = Atomic(epoch)
        thread.start()
    }

    /// Looks whether the disk tier has another directory by now; to be called now and then.
    func followDisk() {
        guard let epoch = disk?.view?.identity.bootEpoch,
            knownEpoch.exchange(epoch, ordering: .relaxed) != epoch
        else { return }
        // What fails is tried again the next time.
        thread.submit { [self] _ in
            if put([]) == .synced { return }
            knownEpoch.store(0, ordering: .relaxed)
        }
    }

    /// How often something could not be written.
    var failureCount: Int { failures.load(ordering: .relaxed) }

    /// What the journal has promised is not in it: the next start finds it lost.
    func abandon() {
        thread.submit { [self] _ in
            state.withLock { state in
                guard let journal = state.journal, let files = state.files else { return }
                do throws(DiskFile.Failure) {
                    try files.setMember(JournalMember.abandoned(journal.node).bytes)
                    state.isBegun = true
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
        disk?.marks.failedToKeep()
    }

    /// Writes and syncs a batch; `done` is told what has become of it on the keeper's thread, but
    /// never when this was closed.
    func write(_ writes: [LogWrite], done: @escaping @Sendable (ExchangeEvent) -> Void) {
        thread.submit { [self] work in if work == .active { done(put(writes)) } }
    }

    /// The same, at once.
    func put(_ writes: [LogWrite]) -> ExchangeEvent {
        let outcome = state.withLock { state -> ExchangeEvent in
            do throws(DiskFile.Failure) {
                return try attempt(writes, &state)
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
        if outcome == .writeFailed { disk?.marks.failedToKeep() }
        if outcome != .synced { failures.add(1, ordering: .relaxed) }
        return outcome
    }

    private func attempt(
        _ writes: [LogWrite], _ state: inout State
    ) throws(DiskFile.Failure) -> ExchangeEvent {
        guard let disk else { return .synced }
        if let view = disk.view, let volume = disk.volume,
            view.identity.bootEpoch != state.epoch
        {
            try begin(in: volume, of: disk, epoch: view.identity.bootEpoch, &state)
        }
        guard state.journal != nil, let files = state.files else { return .synced }
        let marks = disk.marks
        let writes = state.isOthers ? writes.filter { !$0.isMemory } : writes
        let effects = state.journal?.write(
            writes, marks: { marks.pieces(after: $0, upTo: $1) }, using: &state.dice)
        guard let effects else { return .full(state.journal?.surplus ?? []) }
        do throws(DiskFile.Failure) {
            for effect in effects {
                try Self.run(effect, files)
                if case .sync = effect { disk.figures.add(.journalSyncs) }
            }
            if !state.isBegun, let journal = state.journal {
                let member = JournalMember(node: journal.node, begun: state.epoch)
                try files.setMember(member.bytes)
                state.isBegun = true
            }
        } catch {
            state.journal?.failed()
            throw error
        }
        state.journal?.synced()
        marks.keeps(upTo: state.journal?.reached ?? .zero)
        if state.hasFailed {
            state.hasFailed = false
            logger.notice("invalidations are written to disk again")
        }
        return .synced
    }

    /// A directory has come in the place of the former: what this process has promised is not in
    /// it, so that the next start is another member.
    private func begin(
        in volume: any DiskVolume, of disk: DiskTier, epoch: UInt64, _ state: inout State
    ) throws(DiskFile.Failure) {
        let settings = disk.settings
        let member = NodeID(named: settings.nodeName, in: volume.path, using: &state.dice)
        let files = JournalFiles(volume, room: settings.journal)
        // Until the journal is begun, what was lost stays lost.
        try files.setMember(JournalMember(node: member, begun: epoch).bytes)
        for number in try files.numbers() { files.delete(number) }
        state.journal = Journal(
            node: member, epoch: epoch, settings: .init(settings.journal),
            released: disk.marks.stamp)
        state.files = files
        state.epoch = epoch
        state.isBegun = true
        state.isOthers = true
    }

    private static func run(
        _ effect: JournalEffect, _ files: JournalFiles
    ) throws(DiskFile.Failure) {
        switch effect {
        case .create(let number): try files.create(number)
        case .append(let number, let bytes): try files.append(bytes, to: number)
        case .sync(let number): try files.sync(number)
        case .delete(let number): files.delete(number)
        case .syncNames: try files.syncNames()
        }
    }
}

extension Journal.Settings {
    init(_ room: JournalRoom) {
        self.init(fileBytesMax: room.fileBytes, bytesMax: room.bytesMax)
    }
}

extension LogWrite {
    fileprivate var isMemory: Bool {
        if case .note(.memory) = self { true } else { false }
    }
}
