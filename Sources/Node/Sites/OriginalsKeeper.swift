import Cluster
import Ground
import HTTPRules
import Logging
import NIOPosix
import Store
import Synchronization
import Tiers

/// Has answers of a site be held against their origin once when other rules say of which originals
/// they are made: what was kept before is tagged by the rules of then, and a purge of an original
/// would not find it.
///
/// The directory says by which rules what it holds is tagged. Before anything is tagged by others,
/// it says of those sites that this is not known, and only when the marks are on the disk what it
/// is. So whatever is lost on the way costs one question more for each answer, and finds each.
final class OriginalsKeeper: Sendable {
    private let disk: DiskTier?
    private let deskBox = Mutex<InvalidationDesk?>(nil)
    private let logger: Logger
    private let state: Mutex<State>
    /// Held while the file is read or written, on threads that may wait for the disk.
    private let file = Mutex<Void>(())

    private struct State {
        /// The sites that are served.
        var sites: SiteTable
        /// By which rules everything is tagged that is kept; of sites that are not there it is not
        /// known, or they have no rules.
        var known: TaggingNote
        /// That of the directory which was looked at; 0 for none.
        var epoch: UInt64 = 0
        /// Loops are taking over other rules.
        var isChanging = false
        /// Changes with everything above.
        var generation = 0
    }

    init(_ sites: SiteTable, disk: DiskTier?, logger: Logger) {
        self.disk = disk
        self.logger = logger
        state = Mutex(State(sites: sites, known: TaggingNote(sites)))
    }

    // MARK: The directory

    /// To be told when the disk tier has started and the log is open; returns when answers may be
    /// kept.
    func start(_ desk: InvalidationDesk) async {
        deskBox.withLock { $0 = desk }
        guard let disk, takeUpDirectory() else { return }
        try? await disk.readers.runIfActive { [self] in compare() }
    }

    /// Looks whether the disk tier has another directory by now; to be called now and then.
    func followDisk() {
        guard let disk, takeUpDirectory() else { return }
        disk.readers.submit { [self] _ in compare() }
    }

    /// True if there is a directory that was not looked at, and now is.
    private func takeUpDirectory() -> Bool {
        guard let epoch = disk?.view?.identity.bootEpoch else { return false }
        return state.withLock { state in
            defer { state.epoch = epoch }
            return state.epoch != epoch
        }
    }

    /// Holds what the directory says against the rules that there are.
    private func compare() {
        let said = file.withLock { _ in
            attempt { tagging throws(DiskFile.Failure) in try tagging.read() }
        }
        let former = said ?? TaggingNote()
        let isSame = state.withLock { state in
            state.generation += 1
            state.known = state.known.agreeing(with: former)
            return state.known == former && state.known == TaggingNote(state.sites)
        }
        guard !isSame else { return }
        writeKnown()
        mark()
    }

    // MARK: Changes of rules

    /// To be told before any loop takes over `sites`; true if ``finish(_:)`` is to be told after.
    func begin(_ sites: SiteTable) async -> Bool {
        let note = TaggingNote(sites)
        let isOther = state.withLock { state in
            guard TaggingNote(state.sites) != note else {
                state.sites = sites
                return false
            }
            state.generation += 1
            state.isChanging = true
            state.known = state.known.agreeing(with: note)
            return true
        }
        if isOther, let disk { try? await disk.readers.runIfActive { [self] in writeKnown() } }
        return isOther
    }

    /// Every loop has taken over `sites`.
    func finish(_ sites: SiteTable) {
        state.withLock { state in
            state.sites = sites
            state.isChanging = false
        }
        mark()
    }

    /// Has everything be held against its origin of which it is not known that it is tagged by the
    /// rules that hold.
    private func mark() {
        let (sites, known, generation) = state.withLock { state in
            state.generation += 1
            // Once the change is over there is more to be marked.
            return (state.isChanging ? nil : state.sites, state.known, state.generation)
        }
        guard let sites else { return }
        let note = TaggingNote(sites)
        let changed = sites.sites.filter { known[$0.name] != note[$0.name] }
        guard !changed.isEmpty, let desk = deskBox.withLock({ $0 }) else {
            return settle(note, generation)
        }
        let targets = changed.map { site -> PurgeTarget in
            site.pattern == .everything
                ? .everything : .prefix(host: Array(site.name.utf8), path: [])
        }
        let stamp = desk.changedLocally(Purge(.soft, targets))
        logger.notice(
            "answers are held against their origins once: other rules name their originals",
            metadata: ["sites": .array(changed.map { .string($0.name) })])
        guard let disk else { return settle(note, generation) }
        disk.marks.whenKept(stamp) { [self] isKept in
            guard isKept else { return }
            disk.readers.submit { [self] _ in settle(note, generation) }
        }
    }

    /// Everything that is kept is tagged by the rules of `note`, unless others have come since.
    private func settle(_ note: TaggingNote, _ generation: Int) {
        state.withLock { if $0.generation == generation { $0.known = note } }
        writeKnown()
    }

    // MARK: The file

    /// Has the directory say what is known.
    private func writeKnown() {
        file.withLock { _ in
            let note = state.withLock { $0.known }
            attempt { tagging throws(DiskFile.Failure) in try tagging.write(note) }
        }
    }

    /// Does something with the file; nil, and the operator is told, if that fails.
    @discardableResult
    private func attempt<Outcome>(
        _ job: (TaggingFile) throws(DiskFile.Failure) -> Outcome
    ) -> Outcome? {
        guard let volume = disk?.volume else { return nil }
        do throws(DiskFile.Failure) {
            return try job(TaggingFile(volume))
        } catch {
            logger.error(
                "by which rules answers are tagged with their originals is not on disk",
                metadata: ["why": "\(error)"])
            return nil
        }
    }
}

extension TaggingNote {
    /// What the rules of these sites come to.
    fileprivate init(_ sites: SiteTable) {
        self.init()
        for site in sites.sites { self[site.name] = SiteOriginals(site)?.fingerprint }
    }
}
