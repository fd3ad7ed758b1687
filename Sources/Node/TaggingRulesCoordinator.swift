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
final class TaggingRulesCoordinator: Sendable {
    private let disk: DiskStore?
    private let purgeCoordinator = Mutex<PurgeCoordinator?>(nil)
    private let logger: Logger
    private let state: Mutex<State>
    /// Held while the file is read or written, on threads that may wait for the disk.
    private let file = Mutex<Void>(())

    private struct State {
        /// The sites that are served.
        var sites: SiteTable
        /// By which rules everything is tagged that is kept; of sites that are not there it is not
        /// known, or they have no rules.
        var tagging: TagRuleFingerprints
        /// That of the directory which was looked at; 0 for none.
        var epoch: UInt64 = 0
        /// Loops are taking over other rules.
        var isChanging = false
        /// Changes with everything above.
        var generation = 0
    }

    init(_ sites: SiteTable, disk: DiskStore?, logger: Logger) {
        self.disk = disk
        self.logger = logger
        state = Mutex(State(sites: sites, tagging: TagRuleFingerprints(sites)))
    }

    // MARK: The directory

    /// To be told when the disk tier has started and the log is open; returns when answers may be
    /// kept.
    func start(_ purges: PurgeCoordinator) async {
        purgeCoordinator.withLock { $0 = purges }
        guard let disk, recordDirectory() else { return }
        try? await disk.readerThreads.runIfActive { [self] in compareWithDirectory() }
    }

    /// Looks whether the disk tier has another directory by now; to be called now and then.
    func checkDirectory() {
        guard let disk, recordDirectory() else { return }
        disk.readerThreads.submit { [self] _ in compareWithDirectory() }
    }

    /// True if there is a directory that was not looked at, and now is.
    private func recordDirectory() -> Bool {
        guard let epoch = disk?.view?.identity.bootEpoch else { return false }
        return state.withLock { state in
            defer { state.epoch = epoch }
            return state.epoch != epoch
        }
    }

    /// Holds what the directory says against the rules that there are.
    private func compareWithDirectory() {
        let said = file.withLock { _ in
            withTaggingFile { tagging throws(DiskFile.Failure) in try tagging.read() }
        }
        let former = said ?? TagRuleFingerprints()
        let isSame = state.withLock { state in
            state.generation += 1
            state.tagging = state.tagging.intersection(former)
            return state.tagging == former && state.tagging == TagRuleFingerprints(state.sites)
        }
        guard !isSame else { return }
        writeTagging()
        invalidateChangedSites()
    }

    // MARK: Changes of rules

    /// To be told before any loop takes over `sites`; true if ``finish(_:)`` is to be told after.
    func beginChange(_ sites: SiteTable) async -> Bool {
        let note = TagRuleFingerprints(sites)
        let isOther = state.withLock { state in
            guard TagRuleFingerprints(state.sites) != note else {
                state.sites = sites
                return false
            }
            state.generation += 1
            state.isChanging = true
            state.tagging = state.tagging.intersection(note)
            return true
        }
        if isOther, let disk {
            try? await disk.readerThreads.runIfActive { [self] in writeTagging() }
        }
        return isOther
    }

    /// Every loop has taken over `sites`.
    func finishChange(_ sites: SiteTable) {
        state.withLock { state in
            state.sites = sites
            state.isChanging = false
        }
        invalidateChangedSites()
    }

    /// Has everything be held against its origin of which it is not known that it is tagged by the
    /// rules that hold.
    private func invalidateChangedSites() {
        let (sites, known, generation) = state.withLock { state in
            state.generation += 1
            // Once the change is over there is more to be marked.
            return (state.isChanging ? nil : state.sites, state.tagging, state.generation)
        }
        guard let sites else { return }
        let note = TagRuleFingerprints(sites)
        let changed = sites.sites.filter { known[$0.name] != note[$0.name] }
        guard !changed.isEmpty, let purges = purgeCoordinator.withLock({ $0 }) else {
            return recordTagging(note, generation)
        }
        let targets = changed.map { site -> PurgeTarget in
            site.pattern == .catchAll
                ? .everything : .prefix(host: Array(site.name.utf8), path: [])
        }
        let version = purges.invalidateLocally(Purge(.soft, targets))
        logger.notice(
            "answers are held against their origins once: other rules name their originals",
            metadata: ["sites": .array(changed.map { .string($0.name) })])
        guard let disk else { return recordTagging(note, generation) }
        disk.marks.whenJournaled(version) { [self] isKept in
            guard isKept else { return }
            disk.readerThreads.submit { [self] _ in recordTagging(note, generation) }
        }
    }

    /// Everything that is kept is tagged by the rules of `note`, unless others have come since.
    private func recordTagging(_ note: TagRuleFingerprints, _ generation: Int) {
        state.withLock { if $0.generation == generation { $0.tagging = note } }
        writeTagging()
    }

    // MARK: The file

    /// Has the directory say what is known.
    private func writeTagging() {
        file.withLock { _ in
            let note = state.withLock { $0.tagging }
            withTaggingFile { tagging throws(DiskFile.Failure) in try tagging.write(note) }
        }
    }

    /// Does something with the file; nil, and the operator is told, if that fails.
    @discardableResult
    private func withTaggingFile<Outcome>(
        _ job: (TagRuleFile) throws(DiskFile.Failure) -> Outcome
    ) -> Outcome? {
        guard let volume = disk?.volume else { return nil }
        do throws(DiskFile.Failure) {
            return try job(TagRuleFile(volume))
        } catch {
            logger.error(
                "by which rules answers are tagged with their originals is not on disk",
                metadata: ["why": "\(error)"])
            return nil
        }
    }
}

extension TagRuleFingerprints {
    /// What the rules of these sites come to.
    fileprivate init(_ sites: SiteTable) {
        self.init()
        for site in sites.sites { self[site.name] = SiteOriginals(site)?.fingerprint }
    }
}
