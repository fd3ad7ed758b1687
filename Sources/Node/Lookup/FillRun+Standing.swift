import Ground
import Serving
import Store
import Synchronization
import Tiers

/// Holding what a fetch brings against what was invalidated since it began.
extension ActiveFetch {
    /// What an answer with these tags and facts is good for at this moment; without facts its age
    /// is not looked at.
    func validity(_ tags: [[UInt8]], _ facts: EntryMetadata?, isShared: Bool) -> Fetch.Validity {
        let node = context.node
        return Fetch.Validity(
            of: node.marks.effect(onResponse: key, tags: tags, version: invalidationVersion),
            isExcluded: facts.map {
                node.fence.isExcluded($0.validatedAt, now: SystemClock.now())
            } ?? false, isShared: isShared)
    }

    /// Who comes now may not wait for what it brings, as far as is known what that is.
    var isInvalidated: Bool {
        let tags = state.withLock { $0.tags }
        return context.node.marks.effect(onResponse: key, tags: tags, version: invalidationVersion)
            != nil
    }

    /// What it brings may be given to nobody any more, be it that it was good when it came.
    func isUnusable(_ state: borrowing State) -> Bool {
        let isShared = state.lookup.fetch.isShared
        switch state.progress.outcome {
        case .receiving(let response):
            let facts = state.progress.staleFallback == nil ? response.metadata : nil
            return validity(response.tags, facts, isShared: isShared) == .unusable
        case .stored(let entry), .loadedFromDisk(let entry):
            let facts = state.progress.staleFallback == nil ? entry.metadata : nil
            return validity(entry.tags, facts, isShared: isShared) == .unusable
        case .pending, .failed: return false
        }
    }
}
