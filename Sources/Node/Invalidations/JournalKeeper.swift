import Cluster
import Ground
import Logging
import NIOPosix
import Store
import Synchronization
import Tiers

/// Has the invalidation log on disk.
///
/// One thread does what `Cluster.Journal` wants done with its files, while the disk tier writes the
/// marks. Without a disk nothing is kept, which is as much as the cache itself keeps then.
final class JournalKeeper: Sendable {
    private let disk: DiskTier?
    private let logger: Logger
    private let thread = NIOThreadPool(numberOfThreads: 1)
    private let state: Mutex<State>
    /// Asks the log to give up records, for which there is no room.
    private let giveUp = Mutex<(@Sendable ([StreamPosition]) -> Void)?>(nil)

    private struct State: ~Copyable {
        /// Nil without a disk.
        var journal: Journal?
        var files: JournalFiles?
        var dice: Dice
        /// What the count remembers now.
        var memory: CountedMembers.Memory?
        var hasFailed = false
        /// That of the directory in which the files are; 0 for none.
        var epoch: UInt64
        /// The next start can tell that there should be a journal of this one.
        var isBegun = false

        /// A directory has come in the place of the former, or there was none: what this process
        /// has promised is not in it, so that the next start is another member.
        mutating func begin(
            in volume: any DiskVolume, epoch: UInt64, _ settings: DiskTier.Settings
        ) throws(DiskFile.Failure) {
            let member = NodeID(named: settings.nodeName, in: volume.path, using: &dice)
            let (room, next) = (settings.journal, JournalFiles(volume))
            for number in try next.numbers() { next.delete(number) }
            try next.setMember(JournalMember(node: member, begun: epoch).bytes)
            journal = Journal(
                node: member, epoch: epoch,
                settings: .init(fileBytesMax: room.fileBytes, bytesMax: room.bytesMax))
            files = next
            self.epoch = epoch
            isBegun = true
            memory = nil
            isOthers = true
        }

        /// The files are those of the member that the next start is.
        var isOthers = false

        mutating func take(_ note: Note) {
            switch note {
            case .remembered(let memory): if !isOthers { self.memory = memory }
            case .dropped(let position): journal?.dropped(position)
            case .retired(let position): journal?.retired(position)
            case .forgot(let process): journal?.forgot(process)
            }
        }
    }

    /// A keeper of what a start has found; `files` are handed over to it.
    init(
        _ journal: Journal?, _ files: sending JournalFiles?, memory: CountedMembers.Memory?,
        epoch: UInt64, disk: DiskTier?, logger: Logger
    ) {
        self.disk = disk
        self.logger = logger
        var random = SystemRandomNumberGenerator()
        state = Mutex(
            State(
                journal: journal, files: files, dice: Dice(seed: random.next()),
                memory: memory, epoch: epoch))
        knownEpoch = Atomic(epoch)
        thread.start()
    }

    /// Looks whether the disk tier has another directory by now; to be called now and then.
    func followDisk() {
        guard let epoch = disk?.view?.identity.bootEpoch,
            knownEpoch.exchange(epoch, ordering: .relaxed) != epoch
        else { return }
        // What fails is tried again the next time.
        thread.submit { [self] _ in if !put([]) { knownEpoch.store(0, ordering: .relaxed) } }
    }

    private let knownEpoch: Atomic<UInt64>

    /// `giveUp` is told, on any thread, what there is no room for.
    func whenFull(_ giveUp: @escaping @Sendable ([StreamPosition]) -> Void) {
        self.giveUp.withLock { $0 = giveUp }
    }

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
                }
            }
        }
    }

    /// Does what was begun, and ends.
    func close() async {
        try? await thread.shutdownGracefully()
    }

    // MARK: What is to be kept

    /// What is written with the next records; the lock is never held while the disk works.
    private let notes = Mutex<[Note]>([])

    private enum Note {
        case remembered(CountedMembers.Memory)
        case dropped(StreamPosition)
        case retired(StreamPosition)
        case forgot(ProcessID)
    }

    private func note(_ note: Note) {
        notes.withLock { $0.append(note) }
    }

    func remember(_ memory: CountedMembers.Memory) { note(.remembered(memory)) }
    func drop(_ position: StreamPosition) { note(.dropped(position)) }
    func retire(_ position: StreamPosition) { note(.retired(position)) }
    func forget(_ process: ProcessID) { note(.forgot(process)) }

    /// Writes and syncs the marks that were applied until now, and then the records; `done` is
    /// told, on another thread, whether both are on the disk.
    ///
    /// A start takes for applied what its journal holds, so no record is there before its marks.
    func write(_ writes: [LogWrite], done: @escaping @Sendable (Bool) -> Void) {
        guard let disk else { return put(writes, done) }
        disk.writeMarks { [self] failure in
            guard failure == nil else { return thread.submit { _ in done(false) } }
            put(writes, done)
        }
    }

    /// Never tells `done` at once, but when this was closed.
    private func put(_ writes: [LogWrite], _ done: @escaping @Sendable (Bool) -> Void) {
        thread.submit { [self] work in done(work == .active && put(writes)) }
    }

    // MARK: On the thread

    /// False if it could not be written, or there is no room.
    func put(_ writes: [LogWrite]) -> Bool {
        while true {
            switch attempt(writes) {
            case .written: return true
            case .failed: return false
            case .full(let surplus):
                // What is given up is noted before this returns.
                giveUp.withLock { $0 }?(surplus)
                guard !surplus.isEmpty, case .written = attempt([]) else { return false }
            }
        }
    }

    private enum Attempt {
        case written
        case failed
        case full([StreamPosition])
    }

    private func attempt(_ writes: [LogWrite]) -> Attempt {
        let taken = notes.withLock { notes in
            defer { notes = [] }
            return notes
        }
        return state.withLock { state -> Attempt in
            if let disk, let view = disk.view, let volume = disk.volume,
                view.identity.bootEpoch != state.epoch
            {
                do throws(DiskFile.Failure) {
                    try state.begin(
                        in: volume, epoch: view.identity.bootEpoch, disk.settings)
                } catch {
                    note(error, isFirst: !state.hasFailed)
                    state.hasFailed = true
                    return .failed
                }
            }
            guard state.journal != nil, let files = state.files else { return .written }
            for note in taken { state.take(note) }
            let effects = state.journal?.write(
                writes, memory: state.memory, using: &state.dice)
            guard let effects else { return .full(state.journal?.surplus ?? []) }
            do throws(DiskFile.Failure) {
                for effect in effects { try Self.run(effect, files) }
                if !state.isBegun, let journal = state.journal {
                    let member = JournalMember(node: journal.node, begun: state.epoch)
                    try files.setMember(member.bytes)
                    state.isBegun = true
                }
            } catch {
                state.journal?.failed()
                note(error, isFirst: !state.hasFailed)
                state.hasFailed = true
                return .failed
            }
            state.journal?.synced()
            if state.hasFailed {
                state.hasFailed = false
                logger.notice("invalidations are written to disk again")
            }
            return .written
        }
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

    /// It is tried again every second; one line is enough until it is well.
    private func note(_ failure: DiskFile.Failure, isFirst: Bool) {
        guard isFirst else { return }
        logger.error(
            "invalidations are not on disk, and are not confirmed until they are",
            metadata: ["why": "\(failure)"])
    }
}
