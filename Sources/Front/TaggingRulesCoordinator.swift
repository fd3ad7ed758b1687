import Cluster
import Ground
package import HTTPRules
import Logging
import NIOPosix
package import Peering
import Store
import Synchronization
import Tiers

/// Coordinator that has a site's entries revalidated once when the rules that derive their
/// originals change.
///
/// Older entries are tagged by the former rules, so that a purge of an original would not find
/// them.
///
/// The cache directory records the rules by which its entries are tagged. Before entries are tagged
/// by other rules, it records those sites as unknown, and only when the marks are on disk the new
/// rules. A crash in between therefore costs one more revalidation per entry, and no entry is
/// missed.
package final class TaggingRulesCoordinator: Sendable {
    private let disk: DiskStore?
    private let purgeCoordinator = Mutex<PurgeCoordinator?>(nil)
    private let logger: Logger
    private let state: Mutex<State>
    /// A lock held while the file is read or written, on threads that may block on the disk.
    private let file = Mutex<Void>(())

    /// The state under the lock.
    private struct State {
        /// The current sites.
        var sites: SiteTable
        /// The rules by which all stored entries are tagged; a site that is absent has no rules or
        /// unknown ones.
        var tagging: TagRuleFingerprints
        /// The boot epoch of the directory that was last compared; 0 for none.
        var epoch: UInt64 = 0
        /// True while event loops are taking over other rules.
        var isChanging = false
        /// A number that grows with each change of the other properties.
        var generation = 0
    }

    /// Creates a coordinator for the current sites; `disk` is `nil` without a disk cache.
    init(_ sites: SiteTable, disk: DiskStore?, logger: Logger) {
        self.disk = disk
        self.logger = logger
        state = Mutex(State(sites: sites, tagging: TagRuleFingerprints(sites)))
    }

    // MARK: The directory

    /// Compares the directory with the current rules, once the disk tier has started and the log is
    /// open; responses may be stored when it returns.
    package func start(_ purges: PurgeCoordinator) async {
        purgeCoordinator.withLock { $0 = purges }
        guard let disk, recordDirectory() else { return }
        try? await disk.readerThreads.runIfActive { [self] in compareWithDirectory() }
    }

    /// Compares the directory with the current rules if the disk tier has opened another one;
    /// called periodically.
    func checkDirectory() {
        guard let disk, recordDirectory() else { return }
        disk.readerThreads.submit { [self] _ in compareWithDirectory() }
    }

    /// Records the current directory; returns true if there is one and it was not compared yet.
    private func recordDirectory() -> Bool {
        guard let epoch = disk?.view?.identity.bootEpoch else { return false }
        return state.withLock { state in
            defer { state.epoch = epoch }
            return state.epoch != epoch
        }
    }

    /// Compares the rules recorded in the directory with the current ones, and invalidates where
    /// they differ.
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

    /// Begins a change of the sites, before any loop takes over `sites`; returns true if
    /// ``finishChange(_:)`` must be called afterwards.
    package func beginChange(_ sites: SiteTable) async -> Bool {
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

    /// Ends a change of the sites; to be called once every loop has taken over `sites`.
    ///
    /// Softly invalidates, on this node, each site whose entries are not known to be tagged by its
    /// current rules.
    package func finishChange(_ sites: SiteTable) {
        state.withLock { state in
            state.sites = sites
            state.isChanging = false
        }
        invalidateChangedSites()
    }

    /// Softly invalidates the sites whose entries are not known to be tagged by the current rules.
    private func invalidateChangedSites() {
        let (sites, known, generation) = state.withLock { state in
            state.generation += 1
            // During a change, more is to be marked once it is over.
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
            "tagging rules changed; each stored response of these sites is revalidated once",
            metadata: ["sites": .array(changed.map { .string($0.name) })])
        guard let disk else { return recordTagging(note, generation) }
        disk.marks.whenJournaled(version) { [self] isKept in
            guard isKept else { return }
            disk.readerThreads.submit { [self] _ in recordTagging(note, generation) }
        }
    }

    /// Records that all entries are tagged by the rules of `note`, unless something has changed
    /// since `generation`, and writes the known rules to the directory.
    private func recordTagging(_ note: TagRuleFingerprints, _ generation: Int) {
        state.withLock { if $0.generation == generation { $0.tagging = note } }
        writeTagging()
    }

    // MARK: The file

    /// Writes the known rules to the directory.
    private func writeTagging() {
        file.withLock { _ in
            let note = state.withLock { $0.tagging }
            withTaggingFile { tagging throws(DiskFile.Failure) in try tagging.write(note) }
        }
    }

    /// Runs `job` on the file; returns `nil` if there is no directory or the job fails, which is
    /// logged.
    @discardableResult
    private func withTaggingFile<Outcome>(
        _ job: (TagRuleFile) throws(DiskFile.Failure) -> Outcome
    ) -> Outcome? {
        guard let volume = disk?.volume else { return nil }
        do throws(DiskFile.Failure) {
            return try job(TagRuleFile(volume))
        } catch {
            logger.error(
                "cannot write the tagging rules to disk",
                metadata: ["why": "\(error)"])
            return nil
        }
    }
}

extension TagRuleFingerprints {
    /// Creates the fingerprints of the rules of `sites`.
    fileprivate init(_ sites: SiteTable) {
        self.init()
        for site in sites.sites { self[site.name] = SiteOriginals(site)?.fingerprint }
    }
}
